// Kernelvm runs a statically linked program on Debian's cloud kernel in a
// small QEMU guest, so that the kernel datapath of Open vSwitch can be tested
// on machines whose own kernel has no openvswitch module and in containers.
//
//	go run ./e2e/kernelvm [-file HOST=GUEST]... PROGRAM [ARGUMENT]...
//
// It fetches the kernel that linux-image-cloud-amd64 depends on (apt-get
// download, unpacked into a cache, never installed), packs an initramfs with
// the machine's own Open vSwitch binaries, the libraries they need, the named
// files and PROGRAM, boots it and streams its console. Its exit code is
// PROGRAM's.
//
// The guest is emulated (TCG): /dev/kvm is missing in most containers, and on
// some machines it opens but never leaves the BIOS. No shell, no busybox and
// no Python take part: /init is e2e/kernelvm/guestinit.
package main

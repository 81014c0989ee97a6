// Package ociimage assembles container images from files of this machine,
// without a container engine: a list says what is in the image, and the result
// is an OCI layout in a tar file, which `ctr images import`, `kind load
// image-archive` and `docker load` accept, or a directory for a Dockerfile.
//
// # Lists
//
// One directive a line; # begins a comment.
//
//	name REFERENCE                full name of the image
//	package NAME...               Debian packages that the files below come from
//	program NAME|PATH [TARGET]    an executable with its shared libraries; NAME is looked up in PATH and goes to /usr/bin
//	file PATH [TARGET]            a file, with its mode
//	link TARGET PATH...           symbolic links at PATH
//	busybox                       busybox as /bin/busybox and a link for each of its applets that nothing else provides
//	dir PATH...                   empty directories
//	entrypoint WORD...            what the container runs
//	cmd WORD...                   its default arguments
//
// A relative PATH is one of the source tree. The package lines are for whoever
// installs: the assembler only takes what is there.
package ociimage

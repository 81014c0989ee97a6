package linux

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// ethtoolValue is struct ethtool_value of linux/ethtool.h.
type ethtoolValue struct{ cmd, data uint32 }

// disableTXChecksum turns TX checksum offload of an interface of the thread's
// namespace off and reads it back: some drivers answer well and change nothing.
func disableTXChecksum(ifName string) error {
	v := ethtoolValue{cmd: unix.ETHTOOL_STXCSUM}
	if err := ethtool(ifName, &v); err != nil {
		return fmt.Errorf("turn TX checksum offload off: %w", err)
	}
	on, err := txChecksum(ifName)
	if err != nil {
		return err
	}
	if on {
		return fmt.Errorf("TX checksum offload stays on; with the userspace datapath TCP would stall: the kernel does not let it be changed (try ethtool -K %s tx off)", ifName)
	}
	return nil
}

func txChecksum(ifName string) (on bool, err error) {
	v := ethtoolValue{cmd: unix.ETHTOOL_GTXCSUM}
	if err := ethtool(ifName, &v); err != nil {
		return false, fmt.Errorf("read TX checksum offload: %w", err)
	}
	return v.data != 0, nil
}

func ethtool(ifName string, v *ethtoolValue) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("socket for ethtool: %w", err)
	}
	defer unix.Close(fd)
	// struct ifreq with ifr_data; the kernel copies sizeof(struct ifreq) bytes.
	var req struct {
		name [unix.IFNAMSIZ]byte
		data unsafe.Pointer
		_    [16]byte
	}
	copy(req.name[:unix.IFNAMSIZ-1], ifName)
	req.data = unsafe.Pointer(v)
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(&req))); errno != 0 {
		return fmt.Errorf("ethtool %s: %w", ifName, errno)
	}
	return nil
}

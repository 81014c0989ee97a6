package ethtool

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Offload is one that can be turned on and off.
type Offload struct {
	name     string
	get, set uint32 // commands of linux/ethtool.h
}

// Offloads that Open vSwitch's userspace datapath cannot live with.
var (
	// TXChecksum leaves checksums to hardware that a userspace switch is not.
	TXChecksum = Offload{"tx", unix.ETHTOOL_GTXCSUM, unix.ETHTOOL_STXCSUM}
	// GRO joins received packets to ones larger than the MTU.
	GRO = Offload{"gro", unix.ETHTOOL_GGRO, unix.ETHTOOL_SGRO}
)

// String returns the name that the command ethtool -K has for it.
func (o Offload) String() string { return o.name }

// Get tells whether the offload of an interface of the thread's namespace is on.
func Get(ifName string, o Offload) (on bool, err error) {
	v := value{cmd: o.get}
	if err := ioctl(ifName, &v); err != nil {
		return false, fmt.Errorf("read offload %s: %w", o, err)
	}
	return v.data != 0, nil
}

// Set turns the offload of an interface of the thread's namespace on or off and
// reads it back: some drivers answer well and change nothing.
func Set(ifName string, o Offload, on bool) error {
	v, word := value{cmd: o.set}, "off"
	if on {
		v.data, word = 1, "on"
	}
	if err := ioctl(ifName, &v); err != nil {
		return fmt.Errorf("turn offload %s %s: %w", o, word, err)
	}
	now, err := Get(ifName, o)
	if err == nil && now != on {
		err = fmt.Errorf("offload %s of %s does not turn %s: the driver does not let it be changed (try ethtool -K %s %s %s)", o, ifName, word, ifName, o, word)
	}
	return err
}

// value is struct ethtool_value of linux/ethtool.h.
type value struct{ cmd, data uint32 }

func ioctl(ifName string, v *value) error {
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

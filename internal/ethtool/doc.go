// Package ethtool reads and sets the offloads of network interfaces, through the
// ioctl that every kernel has.
package ethtool

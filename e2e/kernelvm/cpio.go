package main

import (
	"bufio"
	"fmt"
	"io"
	"path"
)

// File types of the newc format, as in stat(2).
const (
	cpioDir     = 0o040755
	cpioFile    = 0o100755
	cpioSymlink = 0o120777
	cpioChar    = 0o020600
)

// cpioWriter writes the "newc" archive that the kernel unpacks as initramfs
// (Documentation/driver-api/early-userspace/buffer-format.rst). The first
// error is kept; later calls do nothing.
type cpioWriter struct {
	w    *bufio.Writer
	n    int64
	ino  uint32
	seen map[string]bool
	err  error
}

func newCPIO(w io.Writer) *cpioWriter {
	return &cpioWriter{w: bufio.NewWriterSize(w, 1<<20), seen: map[string]bool{}}
}

// add writes one entry. The parents are made when they are missing.
func (c *cpioWriter) add(name string, mode uint32, data []byte) { c.entry(name, mode, 0, 0, data) }

func (c *cpioWriter) entry(name string, mode, major, minor uint32, data []byte) {
	name = path.Clean("/" + name)[1:]
	if c.err != nil || name == "" || c.seen[name] {
		return
	}
	if parent := path.Dir(name); parent != "." {
		c.add(parent, cpioDir, nil)
	}
	c.seen[name] = true
	c.raw(name, mode, major, minor, data)
}

func (c *cpioWriter) raw(name string, mode, major, minor uint32, data []byte) {
	c.ino++
	fields := [13]uint32{c.ino, mode, 0, 0, 1, 0, uint32(len(data)), 0, 0, major, minor, uint32(len(name) + 1), 0}
	c.printf("070701")
	for _, f := range fields {
		c.printf("%08x", f)
	}
	c.printf("%s\x00", name)
	c.pad()
	n, err := c.w.Write(data)
	c.keep(int64(n), err)
	c.pad()
}

func (c *cpioWriter) printf(format string, args ...any) {
	n, err := fmt.Fprintf(c.w, format, args...)
	c.keep(int64(n), err)
}

func (c *cpioWriter) pad() {
	for c.err == nil && c.n%4 != 0 {
		c.printf("\x00")
	}
}

func (c *cpioWriter) keep(n int64, err error) {
	c.n += n
	if c.err == nil {
		c.err = err
	}
}

// close ends the archive.
func (c *cpioWriter) close() error {
	c.raw("TRAILER!!!", 0, 0, 0, nil)
	c.keep(0, c.w.Flush())
	return c.err
}

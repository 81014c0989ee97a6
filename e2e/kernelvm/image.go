package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"

	"github.com/antrea-lite/podnet/internal/elfdeps"
)

// image fills an initramfs. The first error is kept until close.
type image struct {
	cpio *cpioWriter
	err  error
}

func newImage(w io.Writer) *image {
	i := &image{cpio: newCPIO(w)}
	// The kernel opens it for init's three descriptors before anything is mounted.
	i.cpio.entry("/dev/console", cpioChar, 5, 1, nil)
	return i
}

func (i *image) dirs(paths ...string) {
	for _, p := range paths {
		i.cpio.add(p, cpioDir, nil)
	}
}

func (i *image) symlink(path, target string) { i.cpio.add(path, cpioSymlink, []byte(target)) }

func (i *image) data(path string, b []byte) { i.cpio.add(path, cpioFile, b) }

// file copies a file of this machine, following symbolic links.
func (i *image) file(path, host string) {
	b, err := os.ReadFile(host)
	if err != nil {
		i.fail(err)
		return
	}
	i.data(path, b)
}

// program copies a command found in PATH to /usr/bin and the shared libraries
// that it needs to where its loader looks for them.
func (i *image) program(name string) {
	host, err := exec.LookPath(name)
	if err != nil {
		i.fail(fmt.Errorf("%w (run `make deps`)", err))
		return
	}
	i.file("/usr/bin/"+name, host)
	i.libraries(host)
}

// libraries copies the loader and the libraries that an ELF file needs.
func (i *image) libraries(host string) {
	files, err := elfdeps.Of(host)
	if err != nil {
		i.fail(err)
		return
	}
	for _, f := range files {
		i.file(f.Path, f.Host)
	}
}

func (i *image) fail(err error) {
	if i.err == nil {
		i.err = err
	}
}

func (i *image) close() error {
	if i.err != nil {
		return fmt.Errorf("initramfs: %w", i.err)
	}
	return i.cpio.close()
}

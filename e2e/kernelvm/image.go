package main

import (
	"debug/elf"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
)

// image fills an initramfs. The first error is kept until close.
type image struct {
	cpio *cpioWriter
	libs map[string]bool
	err  error
}

func newImage(w io.Writer) *image {
	i := &image{cpio: newCPIO(w), libs: map[string]bool{}}
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

// libraries copies what an ELF file names as interpreter and needed libraries, recursively.
func (i *image) libraries(host string) {
	f, err := elf.Open(host)
	if err != nil {
		i.fail(fmt.Errorf("%s: %w", host, err))
		return
	}
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type != elf.PT_INTERP {
			continue
		}
		raw, err := io.ReadAll(p.Open())
		if err != nil {
			i.fail(err)
			return
		}
		loader := string(raw[:max(0, len(raw)-1)]) // ends with a NUL byte
		i.file(loader, loader)
	}
	needed, err := f.ImportedLibraries()
	if err != nil {
		i.fail(fmt.Errorf("%s: %w", host, err))
		return
	}
	for _, lib := range needed {
		if i.libs[lib] {
			continue
		}
		i.libs[lib] = true
		found, err := findLibrary(lib)
		if err != nil {
			i.fail(fmt.Errorf("%s: %w", host, err))
			return
		}
		i.file("/usr/lib/x86_64-linux-gnu/"+lib, found)
		i.libraries(found)
	}
}

// findLibrary looks where Debian's loader looks by default.
func findLibrary(name string) (string, error) {
	dirs := []string{"/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/lib64", "/lib", "/usr/lib"}
	for _, dir := range dirs {
		path := filepath.Join(dir, name)
		if _, err := os.Stat(path); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("shared library %s not found in %v", name, dirs)
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

// Package elfdeps finds the shared libraries that a program needs on Debian, so
// that it can be packed into an image without a package manager.
package elfdeps

import (
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// File is a file that a program needs: Path is where its loader looks for it,
// Host where it is on this machine.
type File struct {
	Path, Host string
}

// Of lists the interpreter and the libraries of an ELF file, recursively, each
// once, sorted by Path. A static program needs none.
func Of(program string) ([]File, error) {
	found := map[string]string{}
	if err := collect(program, found); err != nil {
		return nil, err
	}
	files := make([]File, 0, len(found))
	for path, host := range found {
		files = append(files, File{Path: path, Host: host})
	}
	slices.SortFunc(files, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	return files, nil
}

func collect(host string, found map[string]string) error {
	f, err := elf.Open(host)
	if err != nil {
		return fmt.Errorf("%s: %w", host, err)
	}
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type != elf.PT_INTERP {
			continue
		}
		raw, err := io.ReadAll(p.Open())
		if err != nil {
			return fmt.Errorf("%s: interpreter: %w", host, err)
		}
		loader := string(raw[:max(0, len(raw)-1)]) // ends with a NUL byte
		found[loader] = loader
	}
	needed, err := f.ImportedLibraries()
	if err != nil {
		return fmt.Errorf("%s: libraries: %w", host, err)
	}
	for _, name := range needed {
		lib, err := find(name)
		if err != nil {
			return fmt.Errorf("%s: %w", host, err)
		}
		path := filepath.Join(target, name)
		if _, known := found[path]; known {
			continue
		}
		found[path] = lib
		if err := collect(lib, found); err != nil {
			return err
		}
	}
	return nil
}

// target is a directory that Debian's loader looks into by default.
const target = "/usr/lib/x86_64-linux-gnu"

// find looks where Debian's loader looks by default.
func find(name string) (string, error) {
	dirs := []string{"/lib/x86_64-linux-gnu", target, "/lib64", "/lib", "/usr/lib"}
	for _, dir := range dirs {
		path := filepath.Join(dir, name)
		_, err := os.Stat(path)
		if err == nil {
			return path, nil
		}
		if !errors.Is(err, os.ErrNotExist) {
			return "", err
		}
	}
	return "", fmt.Errorf("shared library %s not found in %v", name, dirs)
}

package ociimage

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/antrea-lite/podnet/internal/elfdeps"
)

// Image is what an image consists of.
type Image struct {
	Name       string // full reference
	Packages   []string
	Entrypoint []string
	Cmd        []string

	entries map[string]entry // by absolute path
	busybox bool
}

// entry is one member of the image: a file (host is set), a symbolic link (link
// is set), or an empty directory.
type entry struct {
	host string
	link string
}

// Read reads the list at path; relative paths in it count from root.
func Read(path, root string) (*Image, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	img, err := parse(f, root)
	if err != nil {
		return nil, fmt.Errorf("%s:%w", path, err)
	}
	return img, nil
}

func parse(r io.Reader, root string) (*Image, error) {
	img := &Image{entries: map[string]entry{}}
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		text, _, _ := strings.Cut(lines.Text(), "#")
		words := strings.Fields(text)
		if len(words) == 0 {
			continue
		}
		if err := img.directive(words[0], words[1:], root); err != nil {
			return nil, fmt.Errorf("%d: %s: %w", n, words[0], err)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	if img.Name == "" {
		return nil, fmt.Errorf("1: no line says the image's name")
	}
	if img.busybox {
		return img, img.applets()
	}
	return img, nil
}

func (i *Image) directive(word string, args []string, root string) error {
	least, most := 1, len(args)
	switch word {
	case "name":
		most = 1
	case "program", "file":
		most = 2
	case "link":
		least = 2
	case "busybox":
		least, most = 0, 0
	}
	if len(args) < least || len(args) > most {
		return fmt.Errorf("has %d arguments", len(args))
	}
	switch word {
	case "name":
		i.Name = args[0]
	case "package":
		i.Packages = append(i.Packages, args...)
	case "program":
		return i.program(args, root)
	case "file":
		return i.file(args, root)
	case "link":
		for _, path := range args[1:] {
			if err := i.add(path, entry{link: args[0]}); err != nil {
				return err
			}
		}
	case "busybox":
		i.busybox = true
	case "dir":
		for _, path := range args {
			if err := i.add(path, entry{}); err != nil {
				return err
			}
		}
	case "entrypoint":
		i.Entrypoint = args
	case "cmd":
		i.Cmd = args
	default:
		return fmt.Errorf("no such directive")
	}
	return nil
}

func (i *Image) program(args []string, root string) error {
	host, target := args[0], ""
	if !strings.Contains(host, "/") {
		found, err := exec.LookPath(host)
		if err != nil {
			return fmt.Errorf("%w: install its package (the list's package lines)", err)
		}
		host, target = found, "/usr/bin/"+args[0]
	}
	host = rooted(host, root)
	if target == "" {
		target = host
	}
	if len(args) == 2 {
		target = args[1]
	}
	if err := i.add(target, entry{host: host}); err != nil {
		return err
	}
	libs, err := elfdeps.Of(host)
	if err != nil {
		return err
	}
	for _, lib := range libs {
		if _, there := i.entries[lib.Path]; there {
			continue
		}
		if err := i.add(lib.Path, entry{host: lib.Host}); err != nil {
			return err
		}
	}
	return nil
}

func (i *Image) file(args []string, root string) error {
	host := rooted(args[0], root)
	target := host
	if len(args) == 2 {
		target = args[1]
	}
	return i.add(target, entry{host: host})
}

func rooted(path, root string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(root, path)
}

// applets adds busybox; what the list names itself goes before an applet.
func (i *Image) applets() error {
	host, err := exec.LookPath("busybox")
	if err != nil {
		return fmt.Errorf("%w: install the package busybox-static", err)
	}
	out, err := exec.Command(host, "--list").Output()
	if err != nil {
		return fmt.Errorf("busybox --list: %w", err)
	}
	taken := map[string]bool{"busybox": true}
	for path := range i.entries {
		taken[filepath.Base(path)] = true
	}
	if err := i.add("/bin/busybox", entry{host: host}); err != nil {
		return err
	}
	for _, applet := range strings.Fields(string(out)) {
		if taken[applet] {
			continue
		}
		if err := i.add("/bin/"+applet, entry{link: "busybox"}); err != nil {
			return err
		}
	}
	return nil
}

func (i *Image) add(path string, e entry) error {
	if !filepath.IsAbs(path) {
		return fmt.Errorf("%s: a path in the image begins with /", path)
	}
	path = filepath.Clean(path)
	if _, there := i.entries[path]; there {
		return fmt.Errorf("%s is in the image already", path)
	}
	if e.host != "" {
		info, err := os.Stat(e.host)
		if err != nil {
			return err
		}
		if !info.Mode().IsRegular() {
			return fmt.Errorf("%s is no regular file", e.host)
		}
	}
	i.entries[path] = e
	return nil
}

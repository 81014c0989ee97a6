package ociimage

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// tree makes files in a temporary directory.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o640); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func read(t *testing.T, root, list string) *Image {
	t.Helper()
	img, err := parse(strings.NewReader(list), root)
	if err != nil {
		t.Fatal(err)
	}
	return img
}

// members reads a tar: contents, or "-> TARGET", or "/" by name.
func members(t *testing.T, raw []byte) map[string]string {
	t.Helper()
	found := map[string]string{}
	tr := tar.NewReader(bytes.NewReader(raw))
	for {
		h, err := tr.Next()
		if err == io.EOF {
			return found
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(tr)
		if err != nil {
			t.Fatal(err)
		}
		switch h.Typeflag {
		case tar.TypeDir:
			found[h.Name] = "/"
		case tar.TypeSymlink:
			found[h.Name] = "-> " + h.Linkname
		default:
			found[h.Name] = string(content)
		}
	}
}

func TestArchiveHoldsWhatTheListSays(t *testing.T) {
	root := tree(t, map[string]string{"a": "content of a"})
	img := read(t, root, `
name example.org/x:1   # full name
package some-package
file a /usr/bin/a
link a /usr/bin/b
dir /tmp
entrypoint a run
cmd --fast
`)
	var archive bytes.Buffer
	if err := img.WriteTar(&archive); err != nil {
		t.Fatal(err)
	}
	layout := members(t, archive.Bytes())
	blob := func(d descriptor) string { return layout["blobs/"+strings.Replace(d.Digest, ":", "/", 1)] }

	var list index
	var man manifest
	var conf config
	for _, step := range []struct {
		into any
		from func() string
	}{
		{&list, func() string { return layout["index.json"] }},
		{&man, func() string { return blob(list.Manifests[0]) }},
		{&conf, func() string { return blob(man.Config) }},
	} {
		if err := json.Unmarshal([]byte(step.from()), step.into); err != nil {
			t.Fatalf("%q: %v", step.from(), err)
		}
	}
	if got := list.Manifests[0].Annotations["io.containerd.image.name"]; got != "example.org/x:1" {
		t.Errorf("name is %q", got)
	}
	if got := strings.Join(append(conf.Config.Entrypoint, conf.Config.Cmd...), " "); got != "a run --fast" {
		t.Errorf("command is %q", got)
	}
	if conf.RootFS.DiffIDs[0] != man.Layers[0].Digest {
		t.Error("the configuration names another layer than the manifest")
	}
	files := members(t, []byte(blob(man.Layers[0])))
	for name, want := range map[string]string{"usr/": "/", "usr/bin/": "/", "usr/bin/a": "content of a", "usr/bin/b": "-> a", "tmp/": "/"} {
		if files[name] != want {
			t.Errorf("%s is %q, want %q", name, files[name], want)
		}
	}
}

func TestEqualFilesMakeAnEqualArchive(t *testing.T) {
	root := tree(t, map[string]string{"a": "a", "b": "b"})
	var first, second bytes.Buffer
	if err := read(t, root, "name x\nfile a /a\nfile b /b\n").WriteTar(&first); err != nil {
		t.Fatal(err)
	}
	if err := read(t, root, "file b /b\nfile a /a\nname x\n").WriteTar(&second); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(first.Bytes(), second.Bytes()) {
		t.Error("the archives differ")
	}
}

func TestDirectoryHoldsWhatTheListSays(t *testing.T) {
	root, out := tree(t, map[string]string{"a": "content of a"}), t.TempDir()
	if err := read(t, root, "name x\nfile a /usr/bin/a\nlink bin/a /usr/b\ndir /tmp\n").WriteDir(out); err != nil {
		t.Fatal(err)
	}
	// Through the link, so that both are seen.
	if got, err := os.ReadFile(filepath.Join(out, "usr/b")); err != nil || string(got) != "content of a" {
		t.Errorf("usr/b: %q, %v", got, err)
	}
	for name, want := range map[string]os.FileMode{"usr/bin/a": 0o640, "tmp": 0o777 | os.ModeDir | os.ModeSticky} {
		info, err := os.Stat(filepath.Join(out, name))
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode() != want {
			t.Errorf("mode of %s is %s, want %s", name, info.Mode(), want)
		}
	}
}

func TestProgramBringsItsLibraries(t *testing.T) {
	img := read(t, "", "name x\nprogram dash /bin/sh\n")
	for _, path := range []string{"/bin/sh", "/usr/lib/x86_64-linux-gnu/libc.so.6"} {
		if _, there := img.entries[path]; !there {
			t.Errorf("%s is missing", path)
		}
	}
}

func TestAppletsGiveWayToWhatTheListNames(t *testing.T) {
	img := read(t, "", "name x\nbusybox\nprogram dash /bin/sh\n")
	if e := img.entries["/bin/sh"]; e.link != "" {
		t.Errorf("/bin/sh is a link to %s", e.link)
	}
	if e := img.entries["/bin/sleep"]; e.link != "busybox" {
		t.Errorf("/bin/sleep is %+v, want a link to busybox", e)
	}
}

func TestMistakesAreNamed(t *testing.T) {
	root := tree(t, map[string]string{"a": ""})
	for _, test := range []struct{ list, want string }{
		{"file a /a\n", "name"},
		{"name x\nfiel a /a\n", "2: fiel: no such directive"},
		{"name x\nfile\n", "2: file: has 0 arguments"},
		{"name x y\n", "1: name: has 2 arguments"},
		{"name x\nfile missing /a\n", "missing"},
		{"name x\nfile a relative\n", "relative"},
		{"name x\nfile a /a\nfile a /a\n", "3: file: /a is in the image already"},
		{"name x\nprogram no-such-program\n", "no-such-program"},
	} {
		_, err := parse(strings.NewReader(test.list), root)
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%q: error %v, want one with %q", test.list, err, test.want)
		}
	}
}

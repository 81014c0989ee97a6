package main

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestConsoleStopsAtTheMarker(t *testing.T) {
	var out bytes.Buffer
	calls := 0
	in := "=== RUN Test\r\nprints E2E-EXIT: 9 inside\r\n\r\nE2E-EXIT: 3\r\nreboot: Power down"
	code, found, err := console(strings.NewReader(in), &out, func() { calls++ })
	if err != nil || !found || code != 3 || calls != 1 {
		t.Fatalf("code %d found %v calls %d err %v, want 3 true 1 nil", code, found, calls, err)
	}
	if want := "=== RUN Test\nprints E2E-EXIT: 9 inside\n\n"; out.String() != want {
		t.Errorf("output %q, want %q", out.String(), want)
	}
}

func TestConsoleWithoutMarkerIsNoSuccess(t *testing.T) {
	_, found, err := console(strings.NewReader("PASS\nE2E-EXIT: \nE2E-EXIT: x\nKernel panic"), &bytes.Buffer{}, func() {})
	if found || err != nil {
		t.Fatalf("found %v err %v, want false nil", found, err)
	}
}

// The archive is walked by the format's own rules.
func TestArchiveIsReadable(t *testing.T) {
	var buf bytes.Buffer
	c := newCPIO(&buf)
	c.add("/a/b/c.txt", cpioFile, []byte("hello"))
	c.add("a/b/c.txt", cpioFile, []byte("a second entry of that name is dropped"))
	c.add("/link", cpioSymlink, []byte("/a/b"))
	c.entry("/dev/console", cpioChar, 5, 1, nil)
	if err := c.close(); err != nil {
		t.Fatal(err)
	}
	if buf.Len()%4 != 0 {
		t.Errorf("length %d is not padded to 4", buf.Len())
	}
	var names []string
	for raw := buf.Bytes(); len(raw) >= 110; {
		field := func(n int) int {
			var v uint32
			for _, b := range raw[6+8*n : 14+8*n] {
				v = v<<4 | uint32(strings.IndexByte("0123456789abcdef", b))
			}
			return int(v)
		}
		if string(raw[:6]) != "070701" {
			t.Fatalf("magic %q", raw[:6])
		}
		name := string(raw[110 : 110+field(11)-1])
		names = append(names, name)
		at := (110 + field(11) + 3) &^ 3
		if name == "a/b/c.txt" && string(raw[at:at+field(6)]) != "hello" {
			t.Errorf("content %q", raw[at:at+field(6)])
		}
		raw = raw[min(len(raw), (at+field(6)+3)&^3):]
	}
	want := []string{"a", "a/b", "a/b/c.txt", "link", "dev", "dev/console", "TRAILER!!!"}
	if !slices.Equal(names, want) {
		t.Errorf("entries %v, want %v", names, want)
	}
}

func TestModulesLoadAfterWhatTheyNeed(t *testing.T) {
	dir := t.TempDir()
	for name, depends := range map[string]string{"openvswitch": "nf-nat,libcrc32c,nsh", "nf-nat": "nf_conntrack", "nf-conntrack": "libcrc32c", "nsh": "", "veth": ""} {
		writeModule(t, filepath.Join(dir, "6.1", "kernel", name+".ko"), depends)
	}
	if err := os.WriteFile(filepath.Join(dir, "6.1", "modules.builtin"), []byte("kernel/lib/libcrc32c.ko\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	files, err := resolveModules(dir, []string{"openvswitch", "veth"})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range files {
		names = append(names, moduleName(filepath.Base(f)))
	}
	want := []string{"nf_conntrack", "nf_nat", "nsh", "openvswitch", "veth"}
	if !slices.Equal(names, want) {
		t.Errorf("order %v, want %v", names, want)
	}
	if _, err := resolveModules(dir, []string{"absent"}); err == nil || !strings.Contains(err.Error(), "absent") {
		t.Errorf("unknown module: %v", err)
	}
}

// writeModule makes the smallest ELF file with a .modinfo section.
func writeModule(t *testing.T, path, depends string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	info := []byte("license=GPL\x00depends=" + depends + "\x00name=x\x00")
	strtab := []byte("\x00.modinfo\x00.shstrtab\x00")
	var b bytes.Buffer
	b.Write([]byte{0x7f, 'E', 'L', 'F', 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0})
	put := func(vs ...any) {
		for _, v := range vs {
			if err := binary.Write(&b, binary.LittleEndian, v); err != nil {
				t.Fatal(err)
			}
		}
	}
	at := uint64(64 + len(info) + len(strtab))
	put(uint16(1), uint16(62), uint32(1), uint64(0), uint64(0), at, uint32(0), uint16(64), uint16(0), uint16(0), uint16(64), uint16(3), uint16(2))
	b.Write(info)
	b.Write(strtab)
	section := func(name, kind uint32, off, size uint64) {
		put(name, kind, uint64(0), uint64(0), off, size, uint32(0), uint32(0), uint64(1), uint64(0))
	}
	section(0, 0, 0, 0)
	section(1, 1, 64, uint64(len(info)))
	section(10, 3, 64+uint64(len(info)), uint64(len(strtab)))
	if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}

package main

import (
	"bytes"
	"os/exec"
	"testing"
)

func TestLibrariesOfAProgramAreFound(t *testing.T) {
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Fatal(err)
	}
	var buf bytes.Buffer
	img := newImage(&buf)
	img.program("sh")
	if err := img.close(); err != nil {
		t.Fatalf("%s: %v", sh, err)
	}
	if !bytes.Contains(buf.Bytes(), []byte("usr/lib/x86_64-linux-gnu/libc.so.6\x00")) {
		t.Error("the archive lacks libc.so.6")
	}
}

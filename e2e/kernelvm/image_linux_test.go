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
	if !img.libs["libc.so.6"] {
		t.Errorf("libraries %v lack libc.so.6", img.libs)
	}
}

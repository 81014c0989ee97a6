package build

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/antrea-lite/podnet/internal/ociimage"
)

// image assembles the image of a list, named from the top of the tree. That
// takes less than a second, so it is always made anew.
func (b *Builder) image(list string) (_ string, err error) {
	img, err := ociimage.Read(filepath.Join(b.Root, list), b.Root)
	if err != nil {
		return "", err
	}
	out := b.cache("images", strings.TrimSuffix(filepath.Base(list), ".list")+".tar")
	if err := os.MkdirAll(filepath.Dir(out), 0o755); err != nil {
		return "", err
	}
	f, err := os.Create(out)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	w := bufio.NewWriterSize(f, 1<<20)
	if err := img.WriteTar(w); err != nil {
		return "", err
	}
	return out, w.Flush()
}

const cniPlugins = "github.com/containernetworking/plugins"

// plugins builds the CNI plugins that distributions put on every node, at the
// version that the main module requires, but with the plugins' own go.mod.
func (b *Builder) plugins(ctx context.Context) (string, error) {
	list := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Version}}", cniPlugins)
	list.Dir = b.Root
	raw, err := list.Output()
	if err != nil {
		return "", fmt.Errorf("version of %s: %w", cniPlugins, err)
	}
	version := strings.TrimSpace(string(raw))
	dir := b.cache("cni")
	stamp := filepath.Join(dir, ".version")
	if old, err := os.ReadFile(stamp); err == nil && string(old) == version {
		return dir, nil
	}
	var packages []string
	for _, name := range []string{"main/bridge", "main/loopback", "ipam/host-local", "meta/portmap"} {
		packages = append(packages, cniPlugins+"/plugins/"+name+"@"+version)
	}
	b.Progress("building CNI plugins " + version)
	cmd := exec.CommandContext(ctx, "go", append([]string{"install", "-trimpath", "-ldflags=-s -w"}, packages...)...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOBIN="+dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go install: %w\n%s", err, out)
	}
	return dir, os.WriteFile(stamp, []byte(version), 0o644)
}

package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// metaPackage always depends on Debian's current cloud kernel. Its name alone
// is fixed here, so that a security update of the kernel needs no change.
const metaPackage = "linux-image-cloud-amd64"

// wantedModules is what the scenarios use; what these need is added.
func wantedModules() []string {
	return []string{"openvswitch", "vport-geneve", "veth", "tun", "nf_conntrack", "nf_defrag_ipv6"}
}

// kernel is an unpacked kernel package.
type kernel struct {
	image   string   // bzImage
	modules []string // files in loading order
}

// fetchKernel downloads and unpacks the kernel below cache, once per version,
// and orders the modules, extra ones among them.
func fetchKernel(ctx context.Context, cache string, extra []string) (kernel, error) {
	pkg, err := kernelPackage(ctx)
	if err != nil {
		return kernel{}, err
	}
	dir := filepath.Join(cache, pkg)
	if _, err := os.Stat(dir); err != nil {
		if err := download(ctx, pkg, dir); err != nil {
			return kernel{}, err
		}
	}
	images, err := filepath.Glob(filepath.Join(dir, "boot", "vmlinuz-*"))
	if err != nil || len(images) != 1 {
		return kernel{}, fmt.Errorf("%s: want one boot/vmlinuz-*, found %v; remove the directory and try again", dir, images)
	}
	modules, err := resolveModules(filepath.Join(dir, "lib", "modules"), append(wantedModules(), extra...))
	if err != nil {
		return kernel{}, err
	}
	return kernel{image: images[0], modules: modules}, nil
}

// kernelPackage asks apt's lists, and refreshes them when they know nothing.
func kernelPackage(ctx context.Context) (string, error) {
	for _, refresh := range []bool{false, true} {
		if refresh {
			if err := aptUpdate(ctx); err != nil {
				return "", err
			}
		}
		out, err := exec.CommandContext(ctx, "apt-cache", "show", "--no-all-versions", metaPackage).Output()
		if err != nil && ctx.Err() != nil {
			return "", ctx.Err()
		}
		for line := range strings.Lines(string(out)) {
			deps, ok := strings.CutPrefix(line, "Depends: ")
			if !ok {
				continue
			}
			for dep := range strings.SplitSeq(deps, ",") {
				name, _, _ := strings.Cut(strings.TrimSpace(dep), " ")
				if strings.HasPrefix(name, "linux-image-") {
					return name, nil
				}
			}
		}
	}
	return "", fmt.Errorf("apt knows no package %s: this needs Debian's main archive in sources.list", metaPackage)
}

// download unpacks pkg into dir, which appears whole or not at all.
func download(ctx context.Context, pkg, dir string) error {
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return err
	}
	tmp, err := os.MkdirTemp(filepath.Dir(dir), "fetch")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	fmt.Fprintf(os.Stderr, "kernelvm: downloading %s\n", pkg)
	if err := command(ctx, tmp, "apt-get", "download", "-q", pkg); err != nil {
		// Lists that are older than the archive name files that are gone.
		if err := aptUpdate(ctx); err != nil {
			return err
		}
		if err := command(ctx, tmp, "apt-get", "download", "-q", pkg); err != nil {
			return err
		}
	}
	debs, err := filepath.Glob(filepath.Join(tmp, "*.deb"))
	if err != nil || len(debs) != 1 {
		return fmt.Errorf("apt-get download %s: want one .deb, found %v", pkg, debs)
	}
	unpacked := filepath.Join(tmp, "unpacked")
	if err := command(ctx, "", "dpkg-deb", "-x", debs[0], unpacked); err != nil {
		return err
	}
	return os.Rename(unpacked, dir)
}

func aptUpdate(ctx context.Context) error { return command(ctx, "", "apt-get", "update", "-q") }

func command(ctx context.Context, dir, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		w := bufio.NewScanner(&out)
		var last []string
		for w.Scan() {
			last = append(last, w.Text())
		}
		return fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, strings.Join(last[max(0, len(last)-5):], "; "))
	}
	return nil
}

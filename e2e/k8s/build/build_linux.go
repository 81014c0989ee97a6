package build

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/antrea-lite/podnet/e2e/k8s/cluster"
)

// KubernetesVersion is what the components say they are; it has to be the one
// of kubeall's go.mod.
const KubernetesVersion = "v1.37.2"

// Builder builds. Root is the top of the source tree; what is built is kept
// below Root/.cache/k8s.
type Builder struct {
	Root string
	// Progress is told what is being done.
	Progress func(string)
}

// Cluster builds what every cluster needs. containerd is a directory with a
// containerd to use instead of building one; "" builds it.
func (b *Builder) Cluster(ctx context.Context, containerd string) (cluster.Parts, error) {
	var parts cluster.Parts
	var err error
	if parts.Kubeall, err = b.kubeall(ctx); err != nil {
		return parts, err
	}
	if parts.Containerd = containerd; containerd == "" {
		if parts.Containerd, err = b.module(ctx, product{dir: "containerd", packages: []string{
			"github.com/containerd/containerd/v2/cmd/containerd", "github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2",
			"github.com/containerd/containerd/v2/cmd/ctr"}}); err != nil {
			return parts, err
		}
	}
	if _, err = b.module(ctx, product{dir: "coredns", packages: []string{"."}}); err != nil {
		return parts, err
	}
	if parts.Plugins, err = b.plugins(ctx); err != nil {
		return parts, err
	}
	for _, list := range []string{"e2e/k8s/images/pause.list", "e2e/k8s/images/testpod.list", "e2e/k8s/images/coredns.list",
		"deploy/images/agent.list", "deploy/images/openvswitch.list"} {
		path, err := b.image(list)
		if err != nil {
			return parts, err
		}
		parts.Images = append(parts.Images, path)
	}
	return parts, nil
}

// Upstream builds the upstream tests and the images that their Pods run: all of
// them, or agnhost alone, with which most of the tests are content.
func (b *Builder) Upstream(ctx context.Context, all bool) (dir string, images []string, err error) {
	const upstreamImages = "k8s.io/kubernetes/test/images/"
	dir, err = b.module(ctx, product{dir: "conformance", test: "conformance.test", stamped: true, packages: []string{
		"github.com/onsi/ginkgo/v2/ginkgo", upstreamImages + "agnhost", upstreamImages + "regression-issue-74839"},
		files: []string{upstreamImages + "agnhost/porter/localhost.crt", upstreamImages + "agnhost/porter/localhost.key"}})
	if err != nil {
		return "", nil, err
	}
	lists := []string{"agnhost"}
	if all {
		lists = append(lists, "busybox", "glibc-dns-testing", "regression-issue-74839", "nginx", "distroless-iptables")
	}
	for _, list := range lists {
		image, err := b.image("e2e/k8s/images/upstream/" + list + ".list")
		if err != nil {
			return "", nil, err
		}
		images = append(images, image)
	}
	return dir, images, nil
}

func (b *Builder) kubeall(ctx context.Context) (string, error) {
	dir, err := b.module(ctx, product{dir: "kubeall", packages: []string{"."}, stamped: true, slow: "5 minutes on two cores"})
	if err != nil {
		return "", err
	}
	for _, name := range []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kube-proxy", "kubectl"} {
		if err := os.Symlink("kubeall", filepath.Join(dir, name)); err != nil && !errors.Is(err, fs.ErrExist) {
			return "", err
		}
	}
	return dir, nil
}

// cache is where what is built is kept.
func (b *Builder) cache(elements ...string) string {
	return filepath.Join(append([]string{b.Root, ".cache", "k8s"}, elements...)...)
}

// product is what one of the modules beside this package yields.
type product struct {
	dir      string   // of the module, below e2e/k8s
	packages []string // to build
	test     string   // name of the module's own test binary; "" builds none
	files    []string // of packages, to be copied
	stamped  bool     // programs that tell Kubernetes' version
	slow     string   // how long it takes when nothing is cached
}

// module builds a module's programs unless they are there already, and returns
// the directory that has them.
func (b *Builder) module(ctx context.Context, p product) (string, error) {
	src := filepath.Join(b.Root, "e2e", "k8s", p.dir)
	out := b.cache(p.dir)
	flags := []string{"-trimpath", "-gcflags=all=-dwarf=false", "-ldflags=-s -w" + p.stamps()}
	key, err := keyOf(src, slices.Concat([]string{runtime.Version(), p.test}, p.packages, p.files, flags))
	if err != nil {
		return "", err
	}
	stamp := filepath.Join(out, ".key")
	if old, err := os.ReadFile(stamp); err == nil && string(old) == key {
		return out, nil
	}
	if err := errors.Join(os.RemoveAll(out), os.MkdirAll(out, 0o755)); err != nil {
		return "", err
	}
	note := ""
	if p.slow != "" {
		note = ", about " + p.slow + " when nothing is cached"
	}
	b.Progress(fmt.Sprintf("building %s%s", p.dir, note))
	start := time.Now()
	if err := b.goTool(ctx, src, append(append([]string{"build", "-v", "-o", out + "/"}, flags...), p.packages...)); err != nil {
		return "", err
	}
	if p.test != "" {
		if err := b.goTool(ctx, src, append(append([]string{"test", "-c", "-o", filepath.Join(out, p.test)}, flags...), ".")); err != nil {
			return "", err
		}
	}
	for _, file := range p.files {
		if err := b.copyOf(ctx, src, file, out); err != nil {
			return "", err
		}
	}
	b.Progress(fmt.Sprintf("built %s in %s", p.dir, time.Since(start).Round(time.Second)))
	return out, os.WriteFile(stamp, []byte(key), 0o644)
}

// copyOf copies a file that lies beside a package's sources to a directory.
func (b *Builder) copyOf(ctx context.Context, module, file, to string) error {
	pkg, name := path.Split(file)
	list := exec.CommandContext(ctx, "go", "list", "-f", "{{.Dir}}", path.Clean(pkg))
	list.Dir, list.Env = module, moduleEnv()
	dir, err := list.Output()
	if err != nil {
		return fmt.Errorf("directory of %s: %w", pkg, err)
	}
	content, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(dir)), name))
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(to, name), content, 0o644)
}

// stamps are linker flags for Kubernetes' version, which its own build scripts
// set: the API server would call itself v0.0.0-master else.
func (p product) stamps() string {
	if !p.stamped {
		return ""
	}
	major, rest, _ := strings.Cut(strings.TrimPrefix(KubernetesVersion, "v"), ".")
	minor, _, _ := strings.Cut(rest, ".")
	var flags strings.Builder
	for _, pkg := range []string{"k8s.io/component-base/version", "k8s.io/client-go/pkg/version"} {
		fmt.Fprintf(&flags, " -X %[1]s.gitVersion=%[2]s -X %[1]s.gitMajor=%[3]s -X %[1]s.gitMinor=%[4]s -X %[1]s.gitTreeState=clean"+
			" -X %[1]s.gitCommit=0000000000000000000000000000000000000000", pkg, KubernetesVersion, major, minor)
	}
	return flags.String()
}

// keyOf is a digest of a module's files and of what else decides the result.
func keyOf(dir string, further []string) (string, error) {
	sum := sha256.New()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		fmt.Fprintf(sum, "%s %d\n%s", name, len(content), content)
		return err
	})
	fmt.Fprintf(sum, "%q", further)
	return fmt.Sprintf("%x\n", sum.Sum(nil)), err
}

// goTool runs the go command in a module and reports now and then how far it is.
func (b *Builder) goTool(ctx context.Context, dir string, args []string) error {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	cmd.Env = moduleEnv()
	counter := newPackageCounter(b.Progress)
	defer counter.stop()
	cmd.Stdout, cmd.Stderr = counter, counter
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("go %s in %s: %w\n%s", args[0], dir, err, counter.tail())
	}
	return nil
}

// moduleEnv is the go command's environment in one of the modules. cgo would make
// programs that need the machine's libraries, and take longer.
func moduleEnv() []string {
	return append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-mod=readonly", "GOWORK=off")
}

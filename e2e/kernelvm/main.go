package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/antrea-lite/podnet/e2e/kernelvm/guest"
)

type options struct {
	cache   string
	timeout time.Duration
	memory  int
	cpus    int
	verbose bool
	files   fileList
	modules nameList
	program string
	args    []string
}

// fileList is the repeatable flag -file HOST=GUEST.
type fileList [][2]string

func (f *fileList) String() string { return fmt.Sprint([][2]string(*f)) }

func (f *fileList) Set(s string) error {
	host, inGuest, ok := strings.Cut(s, "=")
	if !ok || host == "" || !strings.HasPrefix(inGuest, "/") {
		return fmt.Errorf("%q: want HOST=GUEST with an absolute path in the guest", s)
	}
	*f = append(*f, [2]string{host, inGuest})
	return nil
}

// nameList is the repeatable flag -module NAME.
type nameList []string

func (l *nameList) String() string { return strings.Join(*l, ",") }

func (l *nameList) Set(s string) error {
	*l = append(*l, s)
	return nil
}

func main() {
	var o options
	flag.StringVar(&o.cache, "cache", ".cache/kernelvm", "directory that keeps the unpacked kernel between runs")
	flag.DurationVar(&o.timeout, "timeout", 15*time.Minute, "the guest is killed after this time")
	flag.IntVar(&o.memory, "memory", 2048, "memory of the guest in MiB")
	flag.IntVar(&o.cpus, "cpus", 2, "processors of the guest")
	flag.BoolVar(&o.verbose, "v", false, "show the kernel's messages too")
	flag.Var(&o.files, "file", "put a file into the guest: HOST=GUEST, repeatable")
	flag.Var(&o.modules, "module", "load one more kernel module in the guest, repeatable")
	flag.Usage = func() {
		fmt.Fprintf(flag.CommandLine.Output(), "usage: kernelvm [flags] PROGRAM [ARGUMENT]...\n\nRuns a static program on Debian's cloud kernel in QEMU.\n\n")
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() == 0 {
		flag.Usage()
		os.Exit(2)
	}
	o.program, o.args = flag.Arg(0), flag.Args()[1:]

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code, err := run(ctx, o)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "kernelvm:", err)
		code = max(code, 1)
	}
	os.Exit(code)
}

func run(ctx context.Context, o options) (int, error) {
	if runtime.GOARCH != "amd64" {
		return 1, fmt.Errorf("the guest is amd64 only, this machine is %s", runtime.GOARCH)
	}
	kernel, err := fetchKernel(ctx, o.cache, o.modules)
	if err != nil {
		return 1, err
	}
	work, err := os.MkdirTemp("", "kernelvm")
	if err != nil {
		return 1, err
	}
	defer os.RemoveAll(work)
	initrd := filepath.Join(work, "initrd")
	if err := buildImage(ctx, o, kernel, initrd); err != nil {
		return 1, err
	}
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	return boot(ctx, o, kernel.image, initrd)
}

// buildImage writes the initramfs.
func buildImage(ctx context.Context, o options, k kernel, path string) (err error) {
	init := path + ".init"
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", init, "github.com/antrea-lite/podnet/e2e/kernelvm/guestinit")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build the guest's init: %w: %s", err, out)
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()

	img := newImage(f)
	img.dirs("/proc", "/sys", "/dev", "/run", "/tmp", "/root", "/var", "/etc")
	img.symlink("/var/run", "/run")
	img.file("/init", init)
	img.file("/program", o.program)
	for _, pair := range o.files {
		img.file(pair[1], pair[0])
	}
	for _, tool := range []string{"ovsdb-tool", "ovsdb-server", "ovs-vswitchd", "ovs-vsctl", "ovs-ofctl", "ovs-appctl"} {
		img.program(tool)
	}
	img.file("/usr/share/openvswitch/vswitch.ovsschema", "/usr/share/openvswitch/vswitch.ovsschema")

	conf := guest.Config{Program: "/program", Args: o.args}
	for _, m := range k.modules {
		inGuest := "/modules/" + filepath.Base(m)
		img.file(inGuest, m)
		conf.Modules = append(conf.Modules, inGuest)
	}
	raw, err := json.Marshal(conf)
	if err != nil {
		return err
	}
	img.data(guest.ConfigPath, raw)
	return img.close()
}

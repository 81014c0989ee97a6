package wine

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"
)

const wine64 = "/usr/lib/wine/wine64"

// prefix is a Wine prefix with its server, which is in this process's network
// namespace: Wine's sockets are made by the server.
type prefix string

func newPrefix(t *testing.T) prefix {
	t.Helper()
	p := prefix(t.TempDir())
	if out, err := exec.Command(options.prefix, string(p)).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", options.prefix, err, out)
	}
	t.Cleanup(func() {
		if out, err := exec.Command(options.prefix, "-r", string(p)).CombinedOutput(); err != nil {
			t.Errorf("%s -r: %v\n%s", options.prefix, err, out)
		}
	})
	return p
}

// env is the environment of a Windows program.
func (p prefix) env(more ...string) []string {
	return append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + string(p), "WINEPREFIX=" + string(p), "WINEDEBUG=-all", "WINELOADER=" + wine64}, more...)
}

func (p prefix) command(ctx context.Context, env []string, exe string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, wine64, append([]string{exe}, args...)...)
	cmd.Env = env
	return cmd
}

// windows is the name of a Linux path in Windows programs.
func windows(path string) string { return `Z:` + strings.ReplaceAll(path, "/", `\`) }

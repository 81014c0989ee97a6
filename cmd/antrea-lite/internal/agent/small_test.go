package agent

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/antrea-lite/podnet/cmd/antrea-lite/internal/config"
	"github.com/antrea-lite/podnet/vswitch"
)

func TestOlder(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"2.12.9", "2.13.0", true}, {"2.13.0", "2.13.0", false}, {"2.13", "2.13.0", false}, {"3.1.0", "2.13.0", false},
		{"2.13.0-rc1", "2.13.0", false}, {"6.1.0-17-cloud-amd64", "4.18.0", false}, {"4.4", "4.18.0", true}, {"", "1.0.0", true}, {"10.0.0", "9.9.9", false},
	} {
		if got := Older(c.a, c.b); got != c.want {
			t.Errorf("Older(%q, %q) = %v", c.a, c.b, got)
		}
	}
	for _, c := range []struct {
		info vswitch.Info
		old  bool
	}{
		{vswitch.Info{OVSVersion: "2.5.0"}, true}, {vswitch.Info{OVSVersion: "3.1.0"}, false},
		{vswitch.Info{DBSchema: "7.16.1"}, true}, {vswitch.Info{DBSchema: "8.3.1"}, false}, {vswitch.Info{}, false},
		{vswitch.Info{OVSVersion: "2.17.0", DBSchema: "7.0.0"}, false}, // the program counts, not the file it found
	} {
		if err := OVSTooOld(c.info); (err != nil) != c.old {
			t.Errorf("%+v: %v", c.info, err)
		}
	}
}

// TestCNIConf: the file is valid, never half there, and goes only when it would
// send Pods to a node that is not set up.
func TestCNIConf(t *testing.T) {
	conf := config.Default()
	conf.CNIConfDir, conf.CNISocket = filepath.Join(t.TempDir(), "net.d"), "/run/a.sock"
	first := newCNIConf(conf, "boot1")
	for range 2 { // the second time nothing is to be done
		if err := first.removeOld(); err != nil {
			t.Fatal(err)
		}
		if err := first.install(); err != nil {
			t.Fatal(err)
		}
	}
	b, err := os.ReadFile(first.path())
	if err != nil || !json.Valid(b) {
		t.Fatalf("%v %s", err, b)
	}
	if files, _ := os.ReadDir(conf.CNIConfDir); len(files) != 1 {
		t.Errorf("files %v", files)
	}
	updated, moved := *conf, *conf
	updated.Kubernetes.NodeName = "n1"
	moved.CNISocket = "/run/b.sock"
	for _, test := range []struct {
		name  string
		conf  *cniConf
		stays bool
	}{
		{"the same agent", newCNIConf(conf, "boot1"), true},
		{"another version or other settings", newCNIConf(&updated, "boot1"), true},
		{"another boot", newCNIConf(conf, "boot2"), false},
		{"another socket", newCNIConf(&moved, "boot1"), false},
	} {
		if err := first.install(); err != nil {
			t.Fatal(err)
		}
		if err := test.conf.removeOld(); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(first.path()); (err == nil) != test.stays {
			t.Errorf("%s: stays %v, want %v", test.name, err == nil, test.stays)
		}
	}
	// What an agent without stamps left.
	if err := os.WriteFile(first.path(), []byte(`{"name":"antrea-lite"}`), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := first.removeOld(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(first.path()); !os.IsNotExist(err) {
		t.Errorf("a file without a stamp: %v", err)
	}
}

func TestBootStampLivesWithTheStateDirectory(t *testing.T) {
	conf := config.Default()
	conf.StateDir = t.TempDir()
	first, err := bootStamp(conf)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := bootStamp(conf); err != nil || again != first {
		t.Errorf("again: %q %v, want %q", again, err, first)
	}
	if err := os.WriteFile(filepath.Join(conf.StateDir, "boot"), []byte("another boot/x"), 0o600); err != nil {
		t.Fatal(err)
	}
	other, err := bootStamp(conf)
	if err != nil || other == first {
		t.Errorf("after another boot: %q %v", other, err)
	}
	conf.StateDir = t.TempDir()
	if fresh, err := bootStamp(conf); err != nil || fresh == other {
		t.Errorf("in a new directory: %q %v", fresh, err)
	}
}

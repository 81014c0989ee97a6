package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/antrea-lite/podnet/cmd/antrea-lite/internal/api"
	"github.com/antrea-lite/podnet/cmd/internal/cniapi"
)

// TestEveryStateAnswers asks every question in every state, from before Open vSwitch to after it is gone.
func TestEveryStateAnswers(t *testing.T) {
	n := newNode(t)
	for _, stop := range []func() error{n.sw.StopVswitchd, n.sw.StopDB} {
		if err := stop(); err != nil {
			t.Fatal(err)
		}
	}
	n.namespace("early")
	n.conf.CNIConfDir = filepath.Join(n.dir, "net.d")
	ask := func(when string, ready bool) {
		t.Helper()
		wantReady := http.StatusOK
		if !ready {
			wantReady = http.StatusServiceUnavailable
		}
		for path, want := range map[string]int{"/healthz": 200, "/metrics": 200, "/readyz": wantReady, "/nowhere": 404} {
			if code, body := n.page(path); code != want {
				t.Errorf("%s: %s answered %d, want %d: %s", when, path, code, want, body)
			}
		}
		var s api.Status
		if err := n.get(api.PathStatus, "", &s); err != nil || s.Ready != ready {
			t.Errorf("%s: status %+v %v", when, s, err)
		}
		var ports []api.Port
		if err := n.get(api.PathPorts, "", &ports); err != nil {
			t.Errorf("%s: ports: %v", when, err)
		}
		var findings []api.Finding
		if err := n.get(api.PathCheck, "", &findings); err != nil || slices.ContainsFunc(findings, func(f api.Finding) bool { return f.Level == api.Fail }) == ready {
			t.Errorf("%s: check %+v %v", when, findings, err)
		}
		var flows []api.Flows
		wantCode(t, when+": flows", n.get(api.PathFlows, "nobody", &flows), cniapi.CodeUnknown, "nobody")
		_, err := n.cni("STATUS", "", "")
		if ready {
			if err != nil {
				t.Errorf("%s: STATUS: %v", when, err)
			}
			return
		}
		var e *cniapi.Error
		if !errors.As(err, &e) || e.Code != cniapi.CodeUnavailable && e.Code != cniapi.CodeLimited {
			t.Errorf("%s: STATUS: %v", when, err)
		}
	}
	confFile := filepath.Join(n.conf.CNIConfDir, confName)
	n.start()
	ask("no database", false)
	_, err := n.cni("ADD", "early", "")
	wantCode(t, "ADD without a database", err, cniapi.CodeTryAgain, "starting", n.sw.DBSock())
	_, err = n.cni("DEL", "early", "")
	wantCode(t, "DEL without a database", err, cniapi.CodeTryAgain, "starting")
	if err := n.sw.StartDB(); err != nil {
		t.Fatal(err)
	}
	ask("no vswitchd", false)
	if _, err := os.Stat(confFile); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the CNI configuration is there before the agent is ready: %v", err)
	}
	if err := n.sw.StartVswitchd(); err != nil {
		t.Fatal(err)
	}
	n.until("ready", func() error { _, err := n.cni("STATUS", "", ""); return err })
	ask("well", true)
	n.until("the CNI configuration is installed", func() error {
		b, err := os.ReadFile(confFile)
		if err == nil && !json.Valid(b) {
			err = fmt.Errorf("no JSON: %s", b)
		}
		return err
	})
	if _, err := n.cni("ADD", "early", ""); err != nil {
		t.Error(err)
	}
	n.unplug("early")
	if err := n.sw.StopVswitchd(); err != nil {
		t.Fatal(err)
	}
	n.until("the loss is noticed", func() error {
		if code, _ := n.page("/readyz"); code == http.StatusOK {
			return errors.New("still ready")
		}
		return nil
	})
	ask("vswitchd gone", false)
	if err := n.sw.StopDB(); err != nil {
		t.Fatal(err)
	}
	ask("all gone", false)
	if err := n.sw.StartDB(); err != nil {
		t.Fatal(err)
	}
	if err := n.sw.StartVswitchd(); err != nil {
		t.Fatal(err)
	}
	n.until("ready again", func() error { _, err := n.cni("STATUS", "", ""); return err })
}

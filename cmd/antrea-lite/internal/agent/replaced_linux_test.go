package agent

import (
	"strings"
	"testing"
	"time"

	"github.com/antrea-lite/podnet/cmd/antrea-lite/internal/config"
	"github.com/antrea-lite/podnet/e2e/lab"
)

// TestPortReplacedBehindTheAgent: somebody deletes a Pod's port and adds it
// again with the same marks. It is another row, with another number.
func TestPortReplacedBehindTheAgent(t *testing.T) {
	n := newNode(t)
	n.conf.SyncPeriod = config.Duration(time.Second)
	n.startReady()
	a, _ := n.plug("a", "")
	b, _ := n.plug("b", "")
	port, err := n.sw.Vsctl("--bare", "--columns=name", "find", "port", "external_ids:container-id=a")
	if err != nil {
		t.Fatal(err)
	}
	marks, err := n.sw.Vsctl("get", "port", port, "external_ids")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := n.sw.Vsctl("del-port", n.conf.Bridge, port); err != nil {
		t.Fatal(err)
	}
	set := "external_ids=" + strings.ReplaceAll(marks, ", ", ",")
	if _, err := n.sw.Vsctl("add-port", n.conf.Bridge, port, "--", "set", "port", port, set); err != nil {
		t.Fatal(err)
	}
	n.until("the new row is adopted", func() error {
		_, err := lab.Ping("/run/netns/a", a, b, 56, time.Second)
		return err
	})
	n.unplug("a", "b")
	n.nothingLeft()
}

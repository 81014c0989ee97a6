package vswitchtest_test

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/go-logr/logr"
	"github.com/ovn-org/libovsdb/client"
	"github.com/ovn-org/libovsdb/model"
	"github.com/ovn-org/libovsdb/ovsdb"

	"github.com/antrea-lite/podnet/vswitch/vswitchtest"
)

// TestLibovsdbClientHangsOnASilentLink is the evidence for decision 007: it
// fails as soon as the fault is gone, and vswitch should then use the
// library's client again. vswitch's own test of the same silence is
// TestBlackHole.
func TestLibovsdbClientHangsOnASilentLink(t *testing.T) {
	type bridge struct {
		UUID string `ovsdb:"_uuid"`
		Name string `ovsdb:"name"`
	}
	s := vswitchtest.Start(t)
	proxy := vswitchtest.StartProxy(t, filepath.Join(s.Dir, "relay.sock"), s.DBSock())
	m, err := model.NewClientDBModel("Open_vSwitch", map[string]model.Model{"Bridge": &bridge{}})
	if err != nil {
		t.Fatal(err)
	}
	quiet := logr.Discard()
	const probe = 100 * time.Millisecond
	c, err := client.NewOVSDBClient(m, client.WithEndpoint(proxy.Endpoint()), client.WithLogger(&quiet),
		client.WithInactivityCheck(probe, time.Second, backoff.NewConstantBackOff(probe)))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := c.MonitorAll(t.Context()); err != nil {
		t.Fatal(err)
	}
	sel := ovsdb.Operation{Op: "select", Table: "Bridge"}
	if _, err := c.Transact(t.Context(), sel); err != nil {
		t.Fatalf("before the silence: %v", err)
	}

	proxy.BlackHole(true)
	returned := make(chan error, 2)
	go func() {
		_, err := c.Transact(context.WithoutCancel(t.Context()), sel)
		returned <- err
	}()
	time.AfterFunc(10*probe, func() {
		proxy.BlackHole(false) // new connections work again
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), probe)
		defer cancel()
		_, err := c.Transact(ctx, sel)
		returned <- err
	})
	select {
	case err := <-returned:
		t.Errorf("a call returned (%v): libovsdb's client recovers from a silent link now; see docs/decisions/007-libovsdb-without-its-client.md", err)
	case <-time.After(30 * probe):
		// Neither the call in flight, nor the one whose context ended 19 probes ago.
	}
	proxy.BreakAll() // sets the hanging calls free
	for range 2 {
		<-returned
	}
	c.Close()
}

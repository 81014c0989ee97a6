package fakehns

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// client speaks as the DLLs do.
type client struct {
	t    *testing.T
	addr string
}

type answer struct {
	code       uint32
	handle     uint64
	props, res string
}

func start(t *testing.T) (*Server, *client) {
	t.Helper()
	s := New()
	addr, err := s.Start("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s, &client{t, addr}
}

func (c *client) try(op string, h uint64, id string, args ...string) (answer, error) {
	var body bytes.Buffer
	for _, a := range args {
		body.WriteString(a + "\x00")
	}
	// The DLLs close after each call, too.
	hc := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	r, err := hc.Post(fmt.Sprintf("http://%s/hns/%s?h=%d&id=%s&pid=1", c.addr, op, h, id), "", &body)
	if err != nil {
		return answer{}, err
	}
	defer r.Body.Close()
	all, err := io.ReadAll(r.Body)
	if err != nil {
		return answer{}, err
	}
	if r.StatusCode != http.StatusOK {
		return answer{}, errors.New(r.Status)
	}
	line, rest, _ := strings.Cut(string(all), "\n")
	var a answer
	var code int32
	var p, q int
	if _, err := fmt.Sscan(line, &code, &a.handle, &p, &q); err != nil {
		return answer{}, fmt.Errorf("%q: %w", line, err)
	}
	a.code = uint32(code)
	if p >= 0 {
		a.props, rest = rest[:p], rest[p:]
	}
	if q >= 0 {
		a.res = rest[:q]
	}
	return a, nil
}

func (c *client) call(op string, h uint64, id string, args ...string) answer {
	c.t.Helper()
	a, err := c.try(op, h, id, args...)
	if err != nil {
		c.t.Fatalf("%s: %v", op, err)
	}
	return a
}

// ok demands success.
func (c *client) ok(op string, h uint64, id string, args ...string) answer {
	c.t.Helper()
	a := c.call(op, h, id, args...)
	if a.code != 0 || a.res != "" {
		c.t.Fatalf("%s: code %#x, %s", op, a.code, a.res)
	}
	return a
}

// refused demands that code.
func (c *client) refused(code uint32, op string, h uint64, id string, args ...string) {
	c.t.Helper()
	if a := c.call(op, h, id, args...); a.code != code || !strings.Contains(a.res, fmt.Sprint(code)) {
		c.t.Fatalf("%s: code %#x, %s; want %#x", op, a.code, a.res, code)
	}
}

func (c *client) document(k kind, h uint64) Object {
	c.t.Helper()
	var o Object
	if err := json.Unmarshal([]byte(c.ok("HcnQuery"+string(k)+"Properties", h, "", "").props), &o); err != nil {
		c.t.Fatal(err)
	}
	return o
}

// network returns the handle of a new one with 10.0.0.0/24.
func (c *client) network(name string) uint64 {
	c.t.Helper()
	return c.ok("HcnCreateNetwork", 0, noID, fmt.Sprintf(
		`{"Name":%q,"Ipams":[{"Subnets":[{"IpAddressPrefix":"10.0.0.0/24"}]}]}`, name)).handle
}

func endpointJSON(name, ip string) string {
	return fmt.Sprintf(`{"Name":%q,"IpConfigurations":[{"IpAddress":%q,"PrefixLength":24}]}`, name, ip)
}

func attachJSON(request, id string) string {
	return fmt.Sprintf(`{"ResourceType":"Endpoint","RequestType":%q,"Settings":{"EndpointId":%q}}`, request, id)
}

func TestAPodsLife(t *testing.T) {
	s, c := start(t)
	n := c.network("pods")
	e := c.ok("HcnCreateEndpoint", n, noID, endpointJSON("a", "10.0.0.2")).handle
	id := c.document(endpoint, e).ID()
	if mac, err := net.ParseMAC(c.document(endpoint, e).text("MacAddress")); err != nil || len(mac) != 6 {
		t.Errorf("address %v, %v", mac, err)
	}
	ns := c.ok("HcnCreateNamespace", 0, noID, `{"Type":"Host"}`).handle
	if _, err := s.StartContainer(id); err == nil {
		t.Error("an endpoint outside a namespace got an adapter")
	}
	c.ok("HcnModifyNamespace", ns, "", attachJSON("Add", id))
	c.refused(AlreadyAttached, "HcnModifyNamespace", ns, "", attachJSON("Add", strings.ToUpper(id)))
	other := c.ok("HcnCreateNamespace", 0, noID, `{}`).handle
	c.refused(InOtherNamespace, "HcnModifyNamespace", other, "", attachJSON("Add", id))
	if got := c.document(endpoint, e).id("HostComputeNamespace"); got != c.document(namespace, ns).ID() {
		t.Errorf("endpoint is in %q", got)
	}
	a, err := s.StartContainer(id)
	if err != nil || a.Name != "vEthernet (a)" || a.Compartment < 2 || len(a.Addrs) != 1 {
		t.Errorf("adapter %+v, %v", a, err)
	}
	if !strings.HasSuffix(s.adapterLines(), " 10.0.0.2/24 vEthernet (a)\n") {
		t.Errorf("adapters %q", s.adapterLines())
	}
	c.ok("HcnDeleteEndpoint", 0, id)
	if s.adapterLines() != "" {
		t.Error("the adapter outlived the endpoint")
	}
	if r := c.document(namespace, ns).list("Resources"); len(r) != 0 {
		t.Errorf("the namespace still has %v", r)
	}
	c.refused(ElementNotFound, "HcnQueryEndpointProperties", e, "", "")
	c.refused(ElementNotFound, "HcnDeleteEndpoint", 0, id)
	c.refused(ElementNotFound, "HcnOpenEndpoint", 0, id)
	c.ok("HcnCloseEndpoint", e, "")
	c.refused(InvalidHandle, "HcnCloseEndpoint", e, "")
	if s.OpenHandles() != 3 {
		t.Errorf("%d handles are open", s.OpenHandles())
	}
}

func TestRefusals(t *testing.T) {
	s, c := start(t)
	n := c.network("pods")
	c.refused(NetworkExists, "HcnCreateNetwork", 0, noID, `{"Name":"pods"}`)
	c.ok("HcnCreateEndpoint", n, noID, endpointJSON("a", "10.0.0.2"))
	for _, x := range []struct {
		code uint32
		json string
	}{
		{AddressInvalid, endpointJSON("b", "10.0.0.2")},
		{InvalidIP, endpointJSON("b", "10.0.1.2")},
		{InvalidIP, endpointJSON("b", "ten")},
		{InvalidJSON, `{`},
	} {
		c.refused(x.code, "HcnCreateEndpoint", n, noID, x.json)
	}
	c.refused(InvalidHandle, "HcnCreateEndpoint", 7, noID, `{}`)
	c.refused(NotImplemented, "HcnCreateGuestNetworkService", 0, noID, `{}`)
	if len(s.Endpoints()) != 1 || s.Calls("HcnCreateEndpoint") != 6 {
		t.Errorf("%d endpoints after %d calls", len(s.Endpoints()), s.Calls("HcnCreateEndpoint"))
	}
	s.SetNotFound(EndpointNotFound)
	c.refused(EndpointNotFound, "HcnDeleteEndpoint", 0, "11111111-0000-0000-0000-000000000000")
	ns := c.ok("HcnCreateNamespace", 0, noID, `{}`).handle
	c.refused(EndpointNotFound, "HcnModifyNamespace", ns, "", attachJSON("Remove", s.Endpoints()[0].ID()))
}

func TestFilters(t *testing.T) {
	s, c := start(t)
	n, m := c.network("one"), c.network("two")
	c.ok("HcnCreateEndpoint", n, noID, endpointJSON("a", "10.0.0.2"))
	b := c.ok("HcnCreateEndpoint", m, noID, endpointJSON("b", "10.0.0.2")).handle
	id := c.document(endpoint, b).ID()
	for _, filter := range []string{
		`{"Name":"b"}`, fmt.Sprintf(`{"ID":%q}`, strings.ToUpper(id)),
		fmt.Sprintf(`{"VirtualNetwork":%q}`, c.document(network, m).ID()),
	} {
		q, err := json.Marshal(map[string]any{"Filter": filter})
		if err != nil {
			t.Fatal(err)
		}
		if got := c.ok("HcnEnumerateEndpoints", 0, "", string(q)).props; got != fmt.Sprintf("[%q]", id) {
			t.Errorf("%s: %s", filter, got)
		}
	}
	s.SetUpperIDs(true)
	if got := c.ok("HcnEnumerateEndpoints", 0, "", "").props; strings.Count(got, ",") != 1 || got != strings.ToUpper(got) {
		t.Errorf("all, upper case: %s", got)
	}
	s.SetUpperIDs(false)
	c.ok("HcnDeleteNetwork", 0, c.document(network, m).ID())
	if e := s.Endpoints(); len(e) != 1 || e[0].Name() != "a" {
		t.Errorf("after their network: %v", e)
	}
}

func TestStates(t *testing.T) {
	s, c := start(t)
	e := c.ok("HcnCreateEndpoint", c.network("pods"), noID, endpointJSON("a", "10.0.0.2")).handle
	id := c.document(endpoint, e).ID()
	state := func() int {
		t.Helper()
		var r struct{ Output Object }
		if err := json.Unmarshal([]byte(c.ok("HNSCall", 0, "", "GET", "/endpoints/"+id, "").props), &r); err != nil {
			t.Fatal(err)
		}
		return r.Output.number("State")
	}
	if got := state(); got != StateCreated {
		t.Errorf("a new one: %d", got)
	}
	ns := c.ok("HcnCreateNamespace", 0, noID, `{}`).handle
	c.ok("HcnModifyNamespace", ns, "", attachJSON("Add", id))
	if _, err := s.StartContainer(id); err != nil {
		t.Fatal(err)
	}
	if got := state(); got != StateAttached {
		t.Errorf("with its container: %d", got)
	}
	if err := s.SetState(id, StateSharing); err != nil {
		t.Fatal(err)
	}
	if got := state(); got != StateSharing {
		t.Errorf("set: %d", got)
	}
}

func TestRestartForgetsAll(t *testing.T) {
	s, c := start(t)
	n := c.network("pods")
	c.ok("HcnCreateEndpoint", n, noID, endpointJSON("a", "10.0.0.2"))
	s.SetAdapter(Adapter{Name: "Ethernet"})
	s.SetAdapter(Adapter{Name: "vEthernet (a)", Compartment: 2})
	s.Restart()
	if len(s.Networks())+len(s.Endpoints())+len(s.Namespaces())+s.OpenHandles() != 0 {
		t.Error("something is left")
	}
	if got := s.adapterLines(); !strings.HasSuffix(got, " - Ethernet\n") || strings.Count(got, "\n") != 1 {
		t.Errorf("adapters %q", got)
	}
	c.refused(InvalidHandle, "HcnQueryNetworkProperties", n, "", "")
}

func TestFaults(t *testing.T) {
	s, c := start(t)
	e := c.ok("HcnCreateEndpoint", c.network("pods"), noID, endpointJSON("a", "10.0.0.2")).handle
	id := c.document(endpoint, e).ID()

	s.Intercept(First(Refuse("HcnOpenEndpoint", Busy, "The requested resource is in use. "), Delay("HcnEnumerateEndpoints", time.Millisecond)))
	c.refused(Busy, "HcnOpenEndpoint", 0, id)
	c.ok("HcnEnumerateEndpoints", 0, "", "")

	release, cancel := context.WithCancel(t.Context())
	defer cancel()
	hung := make(chan string, 1)
	hang := Hang(release, "HcnDeleteEndpoint")
	s.Intercept(func(ctx context.Context, c Call) *Reply {
		if c.Op == "HcnDeleteEndpoint" {
			hung <- c.ID
		}
		return hang(ctx, c)
	})
	type result struct {
		a   answer
		err error
	}
	deleted := make(chan result, 1)
	del := func() {
		a, err := c.try("HcnDeleteEndpoint", 0, id)
		deleted <- result{a, err}
	}
	go del()
	if got := <-hung; got != id {
		t.Fatalf("the call is for %s", got)
	}
	c.ok("HcnEnumerateEndpoints", 0, "", "") // others go on
	if len(s.Endpoints()) != 1 {
		t.Error("a hung call was carried out")
	}
	cancel()
	if r := <-deleted; r.err != nil || r.a.code != 0 || len(s.Endpoints()) != 0 {
		t.Errorf("released: %+v, %v", r, s.Endpoints())
	}

	// A server that stops breaks calls off, those that hang, too.
	s.Intercept(func(ctx context.Context, c Call) *Reply {
		hung <- c.ID
		return Hang(t.Context(), c.Op)(ctx, c)
	})
	go del()
	<-hung
	s.Close()
	if r := <-deleted; r.err == nil {
		t.Errorf("answered by a server that is closed: %+v", r.a)
	}
	if _, err := c.try("HcnDeleteEndpoint", 0, id); err == nil {
		t.Error("a server that is closed answers")
	}
	s.Intercept(nil)
	addr, err := s.Start(c.addr)
	if err != nil || addr != c.addr {
		t.Fatalf("again: %s, %v", addr, err)
	}
	c.refused(ElementNotFound, "HcnDeleteEndpoint", 0, id)
}

func TestOtherProgramsOfTheNode(t *testing.T) {
	s, c := start(t)
	n, err := s.CreateNetwork(`{"Name":"pods"}`)
	if err != nil {
		t.Fatal(err)
	}
	e, err := s.CreateEndpoint(n, endpointJSON("a", "10.0.0.2"))
	if err != nil || s.Endpoint("a").ID() != e || s.Endpoint("b") != nil {
		t.Fatalf("endpoint %s, %v; %v", e, err, s.Endpoints())
	}
	if _, err := s.CreateEndpoint(n, endpointJSON("b", "10.0.0.2")); err == nil || !strings.Contains(err.Error(), "reserved") {
		t.Errorf("address taken: %v", err)
	}
	ns, err := s.CreateNamespace()
	if err != nil {
		t.Fatal(err)
	}
	h := c.ok("HcnOpenNamespace", 0, ns).handle
	c.ok("HcnModifyNamespace", h, "", attachJSON("Add", e))
	c.ok("HcnCloseNamespace", h, "")
	for _, id := range []string{ns, e, n} {
		if err := s.Delete(strings.ToUpper(id)); err != nil {
			t.Error(err)
		}
	}
	if err := s.Delete(n); err == nil || len(s.Networks()) != 0 || s.OpenHandles() != 0 {
		t.Errorf("%v, %d handles", err, s.OpenHandles())
	}
}

package fakehns

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/uuid"
)

type kind string

const (
	network   kind = "Network"
	endpoint  kind = "Endpoint"
	namespace kind = "Namespace"
)

// Load balancers and routes are kept without conditions, for hcsshim's own tests.
var kinds = [...]kind{network, endpoint, namespace, "LoadBalancer", "SdnRoute"}

const noID = "00000000-0000-0000-0000-000000000000"

// Object is a network, endpoint or namespace, as its JSON document.
type Object map[string]any

func (o Object) text(field string) string { s, _ := o[field].(string); return s }

// id is a GUID in the form in which objects are kept.
func (o Object) id(field string) string { return strings.ToLower(o.text(field)) }

func (o Object) number(field string) int {
	switch n := o[field].(type) {
	case float64: // read from JSON
		return int(n)
	case int:
		return n
	}
	return 0
}

func (o Object) list(field string) []Object {
	l, _ := o[field].([]any)
	var out []Object
	for _, v := range l {
		switch v := v.(type) {
		case map[string]any:
			out = append(out, v)
		case Object:
			out = append(out, v)
		}
	}
	return out
}

func (o Object) object(field string) Object { m, _ := o[field].(map[string]any); return m }

// Networks, Endpoints and Namespaces return copies of what there is, by id.
func (s *Server) Networks() []Object   { return s.all(network) }
func (s *Server) Endpoints() []Object  { return s.all(endpoint) }
func (s *Server) Namespaces() []Object { return s.all(namespace) }

func (s *Server) all(k kind) []Object {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []Object
	for _, id := range slices.Sorted(maps.Keys(s.objects[k])) {
		out = append(out, maps.Clone(s.objects[k][id]))
	}
	return out
}

// ID returns an object's GUID, lower case.
func (o Object) ID() string { return o.id("ID") }

// Name returns an object's name.
func (o Object) Name() string { return o.text("Name") }

// do carries a call out. s.mu is held.
func (s *Server) do(c Call) *Reply {
	if c.Op == "HNSCall" {
		return s.first(c)
	}
	verb, k, ok := splitOp(c.Op)
	if !ok {
		return Fail(NotImplemented, "Not implemented ")
	}
	switch verb {
	case "Enumerate":
		return s.enumerate(k, c.arg(0))
	case "Open":
		if s.objects[k][c.ID] == nil {
			return s.gone()
		}
		return &Reply{Handle: s.open(k, c.ID)}
	case "Create":
		return s.create(k, c)
	case "Delete":
		return s.delete(k, c.ID)
	case "Close":
		if _, ok := s.handles[c.Handle]; !ok {
			return badHandle()
		}
		delete(s.handles, c.Handle)
		return done()
	}
	h, ok := s.handles[c.Handle]
	if !ok || h.kind != k {
		return badHandle()
	}
	o := s.objects[k][h.id]
	switch {
	case o == nil:
		return s.gone()
	case verb == "Query":
		return properties(o)
	default:
		return s.modify(k, h.id, o, c.arg(0))
	}
}

// splitOp takes HcnQueryEndpointProperties apart.
func splitOp(op string) (verb string, k kind, ok bool) {
	rest, _ := strings.CutPrefix(op, "Hcn")
	for _, verb := range []string{"Enumerate", "Open", "Create", "Delete", "Close", "Query", "Modify"} {
		name, ok := strings.CutPrefix(rest, verb)
		if !ok {
			continue
		}
		switch verb {
		case "Enumerate":
			name = strings.TrimSuffix(name, "s")
		case "Query":
			name = strings.TrimSuffix(name, "Properties")
		}
		return verb, kind(name), slices.Contains(kinds[:], kind(name))
	}
	return "", "", false
}

// enumerate answers with the ids of those that match the query's filter, which
// is JSON within JSON.
func (s *Server) enumerate(k kind, query string) *Reply {
	var q struct{ Filter string }
	var filter map[string]string
	if query != "" {
		if err := json.Unmarshal([]byte(query), &q); err != nil {
			return Fail(InvalidJSON, err.Error())
		}
	}
	if q.Filter != "" {
		if err := json.Unmarshal([]byte(q.Filter), &filter); err != nil {
			return Fail(InvalidJSON, err.Error())
		}
	}
	ids := []string{}
	for _, id := range slices.Sorted(maps.Keys(s.objects[k])) {
		if matches(s.objects[k][id], filter) {
			ids = append(ids, s.shown(id))
		}
	}
	return properties(ids)
}

func matches(o Object, filter map[string]string) bool {
	for field, want := range filter {
		switch field {
		case "ID":
			if o.ID() != strings.ToLower(want) {
				return false
			}
		case "VirtualNetwork":
			if o.id("HostComputeNetwork") != strings.ToLower(want) {
				return false
			}
		default:
			if o.text(field) != want {
				return false
			}
		}
	}
	return true
}

// create takes the id from the argument or from the document, or makes one.
func (s *Server) create(k kind, c Call) *Reply {
	var o Object
	if err := json.Unmarshal([]byte(c.arg(0)), &o); err != nil || o == nil {
		return Fail(InvalidJSON, fmt.Sprint("The JSON document is invalid. ", err))
	}
	id := c.ID
	if id == noID || id == "" {
		id = o.ID()
	}
	if id == "" {
		id = uuid.NewString()
	}
	if s.objects[k][id] != nil {
		return Fail(ObjectExists, "The object already exists. ")
	}
	o["ID"] = s.shown(id)
	var refused *Reply
	switch k {
	case network:
		refused = s.newNetwork(o)
	case endpoint:
		refused = s.newEndpoint(o, c.Handle)
	case namespace:
		s.compartments++
		o["NamespaceId"] = s.compartments
		o["Resources"] = []any{}
	}
	if refused != nil {
		return refused
	}
	s.objects[k][id] = o
	return &Reply{Handle: s.open(k, id)}
}

// delete takes what depends on the object with it: a network its endpoints,
// an endpoint its adapter and its place in a namespace.
func (s *Server) delete(k kind, id string) *Reply {
	o := s.objects[k][id]
	if o == nil {
		return s.gone()
	}
	switch k {
	case network:
		for eid, e := range s.objects[endpoint] {
			if e.id("HostComputeNetwork") == id {
				s.delete(endpoint, eid)
			}
		}
	case endpoint:
		if ns := s.objects[namespace][o.id("HostComputeNamespace")]; ns != nil {
			leave(ns, id)
		}
		if a, ok := s.adapters[adapterName(o)]; ok && a.Compartment > 1 {
			delete(s.adapters, a.Name)
		}
	case namespace:
		for _, e := range s.objects[endpoint] {
			if e.id("HostComputeNamespace") == id {
				delete(e, "HostComputeNamespace")
			}
		}
	}
	delete(s.objects[k], id)
	return done()
}

func (s *Server) open(k kind, id string) uint64 {
	s.last++
	s.handles[s.last] = handle{k, id}
	return s.last
}

// shown is an id as answers have it.
func (s *Server) shown(id string) string {
	if s.upperIDs {
		return strings.ToUpper(id)
	}
	return id
}

func (s *Server) gone() *Reply { return Fail(s.notFound, "Element not found. ") }

func badHandle() *Reply { return Fail(InvalidHandle, "The handle is invalid. ") }

// first answers the first version of the API, of which hcsshim needs the version.
func (s *Server) first(c Call) *Reply {
	method, path := c.arg(0), c.arg(1)
	answer := func(output any) *Reply {
		return properties(map[string]any{"Success": true, "Output": output})
	}
	switch {
	case method == "GET" && path == "/globals/version":
		return answer(map[string]int{"Major": s.version[0], "Minor": s.version[1]})
	case strings.HasPrefix(path, "/networks/"):
		if output, ok := s.firstNetwork(c); ok {
			return answer(output)
		}
		return properties(map[string]any{"Success": false, "Error": "Element not found. ", "ErrorCode": s.notFound})
	case method == "GET" && strings.HasPrefix(path, "/endpoints/"):
		if id := strings.ToLower(strings.TrimPrefix(path, "/endpoints/")); id != "" {
			e := s.objects[endpoint][id]
			if e == nil {
				return properties(map[string]any{"Success": false, "Error": "Element not found. ", "ErrorCode": s.notFound})
			}
			return answer(s.firstEndpoint(e))
		}
		all := []Object{}
		for _, id := range slices.Sorted(maps.Keys(s.objects[endpoint])) {
			all = append(all, s.firstEndpoint(s.objects[endpoint][id]))
		}
		return answer(all)
	}
	return properties(map[string]any{"Success": false, "Error": fmt.Sprintf("no %s %s here ", method, path)})
}

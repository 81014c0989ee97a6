package fakehns

import (
	"encoding/json"
	"fmt"
	"strings"
)

// The functions here change the service without a DLL: what other programs of a
// node do, such as the container runtime or an administrator.

// CreateNetwork makes a network out of its JSON document and returns its id.
func (s *Server) CreateNetwork(document string) (string, error) {
	return s.direct("HcnCreateNetwork", 0, document)
}

// CreateNamespace makes a namespace, as the container runtime does for a Pod.
func (s *Server) CreateNamespace() (string, error) {
	return s.direct("HcnCreateNamespace", 0, `{"Type":"Host"}`)
}

// CreateEndpoint makes an endpoint on a network.
func (s *Server) CreateEndpoint(networkID, document string) (string, error) {
	s.mu.Lock()
	h := s.open(network, strings.ToLower(networkID))
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		delete(s.handles, h)
		s.mu.Unlock()
	}()
	return s.direct("HcnCreateEndpoint", h, document)
}

func (s *Server) direct(op string, h uint64, document string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.do(Call{Op: op, ID: noID, Handle: h, Args: []string{document}})
	if r.Code != 0 {
		return "", fmt.Errorf("fakehns: %s: %s", op, *r.Result)
	}
	id := s.handles[r.Handle].id
	delete(s.handles, r.Handle)
	return id, nil
}

// Delete removes the network, endpoint or namespace of that id.
func (s *Server) Delete(id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	id = strings.ToLower(id)
	for _, k := range kinds {
		if s.objects[k][id] != nil {
			s.delete(k, id)
			return nil
		}
	}
	return fmt.Errorf("fakehns: nothing has the id %s", id)
}

// Endpoint returns the endpoint of that name, or nil.
func (s *Server) Endpoint(name string) Object {
	for _, e := range s.Endpoints() {
		if e.Name() == name {
			return e
		}
	}
	return nil
}

// String returns the document.
func (o Object) String() string {
	b, err := json.Marshal(o)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

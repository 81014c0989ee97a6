package fakehns

import (
	"context"
	"net"
	"net/http"
	"sync"
)

// Server is a fake host network service. All methods may be called at any time
// and concurrently. Make one with New.
type Server struct {
	mu      sync.Mutex
	objects map[kind]map[string]Object // by id, lower case
	handles map[uint64]handle
	last    uint64 // handle given out
	// Compartments are numbered; 1 is the host's.
	compartments int
	adapters     map[string]Adapter
	calls        map[string]int
	intercept    Interceptor
	version      [2]int
	notFound     uint32
	upperIDs     bool
	states       map[string]int  // by endpoint, where a test has set one
	extended     map[string]bool // by network: Open vSwitch's extension is enabled

	http    *http.Server
	served  chan struct{}
	running sync.WaitGroup // calls
}

// A handle keeps pointing at an id when its object is gone.
type handle struct {
	kind kind
	id   string
}

// New returns a service without any object, of version 15.4 (Windows Server 2022).
func New() *Server {
	s := &Server{adapters: map[string]Adapter{}, calls: map[string]int{}, version: [2]int{15, 4}, notFound: ElementNotFound}
	s.forget()
	s.last = 0x1000
	return s
}

// Start serves at addr, "127.0.0.1:0" for a free port, and returns the address
// that belongs in FAKE_HNS_ADDR. It may be called again after Close.
func (s *Server) Start(addr string) (string, error) {
	ln, err := net.Listen("tcp4", addr)
	if err != nil {
		return "", err
	}
	srv := &http.Server{Handler: s}
	served := make(chan struct{})
	s.mu.Lock()
	s.http, s.served = srv, served
	s.mu.Unlock()
	go func() {
		defer close(served)
		srv.Serve(ln)
	}()
	return ln.Addr().String(), nil
}

// Close stops serving: calls fail from now on as they do when the service is
// stopped, those under way, too. It waits for interceptors to see the end of
// their context. The objects stay; see Restart.
func (s *Server) Close() error {
	s.mu.Lock()
	srv, served := s.http, s.served
	s.http = nil
	s.mu.Unlock()
	if srv == nil {
		return nil
	}
	err := srv.Close()
	<-served
	s.running.Wait()
	return err
}

// Restart forgets networks, endpoints, namespaces and handles, and the adapters
// of other compartments, as a crash of the service and the loss of its store do.
func (s *Server) Restart() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forget()
	for name, a := range s.adapters {
		if a.Compartment > 1 {
			delete(s.adapters, name)
		}
	}
}

func (s *Server) forget() {
	s.objects = map[kind]map[string]Object{}
	for _, k := range kinds {
		s.objects[k] = map[string]Object{}
	}
	s.handles = map[uint64]handle{}
	s.states = map[string]int{}
	s.extended = map[string]bool{}
	s.compartments = 1
}

// Interceptor sees a call before it is carried out. The context ends when the
// server is closed or the calling process is gone. A reply that is not nil is
// the answer; with nil the call is carried out.
type Interceptor func(ctx context.Context, c Call) *Reply

// Intercept has f see each call before it is carried out, the listing of
// adapters (Op "Adapters") among them. f may wait, count, and change what the
// service knows. There is one f at a time; nil ends it. Calls that f holds
// already stay with it.
func (s *Server) Intercept(f Interceptor) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.intercept = f
}

// SetVersion sets what the service says it is: below 9.2 hcsshim takes it for one
// without the second version of the API. A process asks once and remembers.
func (s *Server) SetVersion(major, minor int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version = [2]int{major, minor}
}

// SetNotFound sets the code for an id that is unknown: ElementNotFound, which
// has been seen for namespaces, or a code of the kind, as EndpointNotFound.
func (s *Server) SetNotFound(code uint32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.notFound = code
}

// SetUpperIDs makes ids in answers upper case, as some calls of Windows do.
func (s *Server) SetUpperIDs(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.upperIDs = on
}

// Calls returns how often an operation has been called ("HcnDeleteEndpoint").
func (s *Server) Calls(op string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls[op]
}

// OpenHandles returns how many handles have been opened and not closed.
func (s *Server) OpenHandles() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.handles)
}

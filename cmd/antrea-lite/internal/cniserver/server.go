// Package cniserver is the agent's half of the conversation with the CNI plugin
// (package cniapi): it checks requests, passes them to a Network and words the
// errors. An ADD whose result the plugin could not pass on is undone.
package cniserver

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	"k8s.io/klog/v2"

	"github.com/antrea-lite/podnet/cmd/internal/cniapi"
	"github.com/antrea-lite/podnet/ifstore"
	"github.com/antrea-lite/podnet/podnet"
)

const (
	maxBody = 4 << 20 // GC names every attachment of the node
	// undoTimeout bounds the removal of an interface whose ADD was not delivered.
	undoTimeout = time.Minute
)

// Network does the work. Methods may be called concurrently.
type Network interface {
	Add(ctx context.Context, network string, req podnet.Request) (ifstore.Interface, error)
	// Delete and Check get CNI_NETNS, too: on Windows it says whose network a container has.
	Delete(ctx context.Context, key ifstore.Key, netNS string) error
	Check(ctx context.Context, key ifstore.Key, netNS string, want *cniapi.Want) error
	// GC removes the interfaces of that network that are not in valid.
	GC(ctx context.Context, network string, valid []ifstore.Key) error
}

// Gate tells whether calls can be served.
type Gate interface {
	// Started returns nil once the agent knows what was there before it started.
	Started() error
	// Ready returns nil when an ADD can be served, else the answer to STATUS.
	Ready() *cniapi.Error
}

// Config configures a Server.
type Config struct {
	Network Network
	Gate    Gate
	// Observe, when set, is told of every call that ended: verb in CNI's words, outcome "ok" or the error's code.
	Observe func(verb, outcome string, took time.Duration)
}

// Server serves the verbs.
type Server struct {
	conf Config
	adds keyLock
}

// New returns a Server.
func New(conf Config) *Server {
	if conf.Observe == nil {
		conf.Observe = func(string, string, time.Duration) {}
	}
	return &Server{conf: conf}
}

// Register adds the verbs to mux.
func (s *Server) Register(mux *http.ServeMux) {
	mux.HandleFunc("POST "+cniapi.PathAdd, s.add)
	mux.HandleFunc("POST "+cniapi.PathDelete, s.simple("DEL", func(ctx context.Context, req *cniapi.Request) error {
		return s.conf.Network.Delete(ctx, key(req.Attachment), req.NetNS)
	}))
	mux.HandleFunc("POST "+cniapi.PathCheck, s.simple("CHECK", func(ctx context.Context, req *cniapi.Request) error {
		return s.conf.Network.Check(ctx, key(req.Attachment), req.NetNS, req.Want)
	}))
	mux.HandleFunc("POST "+cniapi.PathGC, s.simple("GC", func(ctx context.Context, req *cniapi.Request) error {
		valid := make([]ifstore.Key, len(req.Valid))
		for i, a := range req.Valid {
			valid[i] = key(a)
		}
		return s.conf.Network.GC(ctx, req.Network, valid)
	}))
	mux.HandleFunc("POST "+cniapi.PathStatus, s.simple("STATUS", func(context.Context, *cniapi.Request) error {
		// Through an interface variable a nil pointer would be an error.
		if e := s.conf.Gate.Ready(); e != nil {
			return e
		}
		return nil
	}))
}

// simple serves a verb without an answer of its own.
func (s *Server) simple(verb string, do func(context.Context, *cniapi.Request) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		start := time.Now()
		req, err := decode(r.Body)
		if err == nil {
			err = s.gate(verb)
		}
		if err == nil {
			err = checkKey(verb, req)
		}
		if err != nil {
			s.fail(r.Context(), w, verb, start, req, err)
			return
		}
		// The runtime repeats what it does not get an answer to, and half a DEL
		// helps nobody; so a caller that leaves does not stop the work.
		ctx, cancel := deadline(context.WithoutCancel(r.Context()), req)
		defer cancel()
		if err := do(ctx, req); err != nil {
			s.fail(ctx, w, verb, start, req, err)
			return
		}
		s.conf.Observe(verb, "ok", time.Since(start))
		reply(w, http.StatusOK, struct{}{})
	}
}

// gate refuses what cannot be answered before the agent has looked around: to a
// DEL it would have to say "unknown, so done" of a Pod that is there.
func (s *Server) gate(verb string) error {
	if verb == "STATUS" {
		return nil
	}
	if err := s.conf.Gate.Started(); err != nil {
		return &cniapi.Error{Code: cniapi.CodeTryAgain, Msg: fmt.Sprintf("the antrea-lite agent is starting: %v", err),
			Details: "the call may be repeated; `antrea-lite status` shows how far it is"}
	}
	return nil
}

func (s *Server) fail(ctx context.Context, w http.ResponseWriter, verb string, start time.Time, req *cniapi.Request, err error) {
	e := wireError(verb, req, time.Since(start), err)
	s.conf.Observe(verb, fmt.Sprint(e.Code), time.Since(start))
	klog.FromContext(ctx).V(2).Info("CNI call failed", "verb", verb, "code", e.Code, "err", e.Msg)
	status := http.StatusInternalServerError
	switch {
	case e.Code < 10:
		status = http.StatusBadRequest
	case e.Code < 100:
		status = http.StatusServiceUnavailable
	}
	reply(w, status, e)
}

func decode(body io.Reader) (*cniapi.Request, error) {
	req := &cniapi.Request{}
	if err := json.NewDecoder(io.LimitReader(body, maxBody)).Decode(req); err != nil {
		return req, &cniapi.Error{Code: cniapi.CodeDecoding, Msg: fmt.Sprintf("the request is not understood: %v", err),
			Details: "use the antrea-lite-cni binary of the agent's version"}
	}
	return req, nil
}

// reply writes a JSON answer with its length, which the plugin relies on.
func reply(w http.ResponseWriter, status int, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", fmt.Sprint(len(b)))
	w.WriteHeader(status)
	_, err = w.Write(b)
	return err
}

func key(a cniapi.Attachment) ifstore.Key {
	return ifstore.Key{ContainerID: a.ContainerID, IfName: a.IfName}
}

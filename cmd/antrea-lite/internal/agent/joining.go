package agent

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"sync"
	"sync/atomic"

	"github.com/antrea-lite/podnet/cmd/antrea-lite/internal/api"
	"github.com/antrea-lite/podnet/cmd/antrea-lite/internal/cniserver"
	"github.com/antrea-lite/podnet/cmd/antrea-lite/internal/health"
	"github.com/antrea-lite/podnet/cmd/internal/cniapi"
)

// joining answers for an agent that does not know its Node's ranges yet, and so
// cannot be made. It implements cniserver.Gate. say may be called at any time.
type joining struct {
	agent  *agent
	health *health.Health

	mu  sync.Mutex
	why error
}

func newJoining(a *agent) *joining {
	j := &joining{agent: a, why: errors.New("the agent does not know its node yet")}
	j.health = health.New(health.Part{Name: "node", Check: j.Started, Remedy: "the agent goes on asking; Pods wait for it"})
	return j
}

// say takes what the agent waits for.
func (j *joining) say(why error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.why = why
}

// Started implements cniserver.Gate.
func (j *joining) Started() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.why
}

// Ready implements cniserver.Gate.
func (j *joining) Ready() *cniapi.Error { return j.health.Ready() }

func (j *joining) pageHandler() http.Handler { return j.agent.pageHandler(j.health) }

// socketHandler refuses every call with the reason; to status and check it is the answer.
func (j *joining) socketHandler() http.Handler {
	mux := http.NewServeMux()
	// No call gets past the gate, so there is no Network.
	cniserver.New(cniserver.Config{Gate: j, Observe: j.agent.metrics.Call}).Register(mux)
	mux.HandleFunc("GET "+api.PathStatus, j.status)
	mux.HandleFunc("GET "+api.PathCheck, func(w http.ResponseWriter, _ *http.Request) { write(w, http.StatusOK, findings(j.health)) })
	for _, path := range []string{api.PathPorts, api.PathFlows, api.PathEvents} {
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, _ *http.Request) {
			write(w, http.StatusServiceUnavailable, &cniapi.Error{Code: cniapi.CodeTryAgain, Msg: fmt.Sprintf("the antrea-lite agent is starting: %v", j.Started())})
		})
	}
	return mux
}

func (j *joining) status(w http.ResponseWriter, _ *http.Request) {
	a := j.agent
	write(w, http.StatusOK, api.Status{
		Version: a.version, PID: os.Getpid(), Started: a.started, Parts: j.health.States(), Ports: map[string]int{},
		Bridge: api.Bridge{Name: a.conf.Bridge, Datapath: a.conf.Datapath}, Gateway: api.Gateway{Name: a.conf.Gateway.Name},
		Sessions: api.Sessions{OVSDB: api.Session{Endpoint: a.conf.OVSDB}, OpenFlow: api.Session{Endpoint: a.conf.OpenFlowEndpoint()}},
	})
}

// handoff passes requests on to the handler that was set last.
type handoff struct{ current atomic.Pointer[http.Handler] }

func newHandoff(first http.Handler) *handoff {
	h := &handoff{}
	h.set(first)
	return h
}

func (h *handoff) set(next http.Handler) { h.current.Store(&next) }

// ServeHTTP implements http.Handler.
func (h *handoff) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	(*h.current.Load()).ServeHTTP(w, r)
}

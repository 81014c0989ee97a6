// Package health turns the states of the agent's parts into /healthz, /readyz
// and the answer to CNI's STATUS. It asks the parts at the moment of the
// question, so there is nothing to keep in step.
package health

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/antrea-lite/podnet/cmd/internal/cniapi"
)

// Part is one thing that must be well before an ADD can be served, or that an
// operator should know of.
type Part struct {
	Name string
	// Check returns nil or why the part is not well. It must not block.
	Check func() error
	// Limits tells that existing containers suffer, too, while the part is not well (STATUS code 51).
	Limits bool
	// Advises tells that the part is shown and keeps the agent from nothing.
	Advises bool
	// Remedy is what an operator can do, where the reason does not say it.
	Remedy string
}

// State is the state of a part at one moment.
type State struct {
	Name   string `json:"name"`
	OK     bool   `json:"ok"`
	Reason string `json:"reason,omitempty"`
	Remedy string `json:"remedy,omitempty"`
	// Advises: the agent is ready all the same.
	Advises bool `json:"advises,omitempty"`

	limits bool
}

// Health asks parts. It is immutable.
type Health struct{ parts []Part }

// New returns a Health of these parts, shown in this order.
func New(parts ...Part) *Health { return &Health{parts: parts} }

// States asks every part.
func (h *Health) States() []State {
	out := make([]State, len(h.parts))
	for i, p := range h.parts {
		out[i] = State{Name: p.Name, OK: true, Advises: p.Advises, limits: p.Limits}
		if err := p.Check(); err != nil {
			// Joined errors have lines; a state is one.
			out[i].OK, out[i].Reason, out[i].Remedy = false, strings.ReplaceAll(err.Error(), "\n", "; "), p.Remedy
		}
	}
	return out
}

// Ready answers CNI's STATUS: nil, or code 50 or 51 with every reason.
func (h *Health) Ready() *cniapi.Error {
	e := &cniapi.Error{Code: cniapi.CodeUnavailable, Details: "`antrea-lite check` on the node says what to do"}
	var reasons []string
	for _, s := range h.States() {
		if s.OK || s.Advises {
			continue
		}
		if s.limits {
			e.Code = cniapi.CodeLimited
		}
		reasons = append(reasons, s.Name+": "+s.Reason)
	}
	if reasons == nil {
		return nil
	}
	e.Msg = "the antrea-lite agent cannot plug in Pods now: " + strings.Join(reasons, "; ")
	return e
}

// Healthz answers 200 as long as the process answers at all, and shows the
// parts. A missing switch is a state that the agent recovers from by itself;
// restarting the agent, which is what probes on /healthz lead to, would not help.
func (h *Health) Healthz(w http.ResponseWriter, r *http.Request) {
	h.write(w, r, http.StatusOK, h.States())
}

// Readyz answers 200 when an ADD can be served, else 503.
func (h *Health) Readyz(w http.ResponseWriter, r *http.Request) {
	states, status := h.States(), http.StatusOK
	for _, s := range states {
		if !s.OK && !s.Advises {
			status = http.StatusServiceUnavailable
		}
	}
	h.write(w, r, status, states)
}

// write answers in JSON when asked to by Accept or ?format=json, else in lines of text.
func (h *Health) write(w http.ResponseWriter, r *http.Request, status int, states []State) {
	if r.URL.Query().Get("format") == "json" || strings.Contains(r.Header.Get("Accept"), "application/json") {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		// An error here means that the client has gone.
		_ = json.NewEncoder(w).Encode(struct {
			OK    bool    `json:"ok"`
			Parts []State `json:"parts"`
		}{status == http.StatusOK, states})
		return
	}
	var b strings.Builder
	for _, s := range states {
		switch {
		case s.OK:
			fmt.Fprintf(&b, "[+] %s: ok\n", s.Name)
		case s.Advises:
			fmt.Fprintf(&b, "[!] %s: %s\n", s.Name, s.Reason)
		default:
			fmt.Fprintf(&b, "[-] %s: %s\n", s.Name, s.Reason)
		}
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(b.String()))
}

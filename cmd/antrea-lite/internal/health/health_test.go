package health

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestStates(t *testing.T) {
	var db, of error
	h := New(Part{Name: "ovsdb", Check: func() error { return db }}, Part{Name: "openflow", Check: func() error { return of }, Limits: true})
	for _, c := range []struct {
		name   string
		db, of error
		code   uint // of STATUS; 0: ready
		words  []string
	}{
		{"all well", nil, nil, 0, nil},
		{"no database", errors.New("db away"), nil, 50, []string{"ovsdb: db away"}},
		{"no switch", nil, errors.New("of away"), 51, []string{"openflow: of away"}},
		{"neither", errors.New("db away"), errors.New("of away"), 51, []string{"db away", "of away"}},
	} {
		db, of = c.db, c.of
		e := h.Ready()
		if (e == nil) != (c.code == 0) || e != nil && e.Code != c.code {
			t.Errorf("%s: %v, want %d", c.name, e, c.code)
		}
		for _, w := range c.words {
			if !strings.Contains(e.Msg, w) {
				t.Errorf("%s: %q does not say %q", c.name, e.Msg, w)
			}
		}
		wantReady := http.StatusOK
		if c.code != 0 {
			wantReady = http.StatusServiceUnavailable
		}
		for _, page := range []struct {
			handler http.HandlerFunc
			status  int
		}{{h.Healthz, http.StatusOK}, {h.Readyz, wantReady}} {
			for _, url := range []string{"/x", "/x?format=json"} {
				w := httptest.NewRecorder()
				page.handler(w, httptest.NewRequest(http.MethodGet, url, nil))
				if w.Code != page.status {
					t.Errorf("%s: status %d, want %d", c.name, w.Code, page.status)
				}
				if strings.Contains(url, "json") {
					var got struct{ Parts []State }
					if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || len(got.Parts) != 2 || got.Parts[0].OK != (c.db == nil) {
						t.Errorf("%s: %v %s", c.name, err, w.Body)
					}
				} else if n := strings.Count(w.Body.String(), "\n"); n != 2 {
					t.Errorf("%s: %d lines: %s", c.name, n, w.Body)
				}
			}
		}
	}
}

// What only advises is shown, with every line of its reason, and keeps nobody from anything.
func TestAdvice(t *testing.T) {
	h := New(Part{Name: "ovsdb", Check: func() error { return nil }},
		Part{Name: "other nodes", Check: func() error { return errors.Join(errors.New("n2 is far"), errors.New("n3 is far")) }, Advises: true, Remedy: "bring them near"})
	if e := h.Ready(); e != nil {
		t.Errorf("not ready: %v", e)
	}
	w := httptest.NewRecorder()
	h.Readyz(w, httptest.NewRequest(http.MethodGet, "/readyz", nil))
	if want := "[+] ovsdb: ok\n[!] other nodes: n2 is far; n3 is far\n"; w.Code != http.StatusOK || w.Body.String() != want {
		t.Errorf("status %d, %q, want %q", w.Code, w.Body, want)
	}
	if s := h.States()[1]; s.OK || !s.Advises || s.Remedy != "bring them near" {
		t.Errorf("state %+v", s)
	}
}

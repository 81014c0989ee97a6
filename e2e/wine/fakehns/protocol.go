package fakehns

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
)

// Call is one call into the DLLs.
type Call struct {
	// Op is the name of the function, "HcnDeleteEndpoint", "HNSCall"; or "Adapters".
	Op string
	// ID is the GUID argument in lower case, "" without.
	ID string
	// Handle is the handle argument, 0 without.
	Handle uint64
	// Flags are those of GetAdaptersAddresses for "Adapters".
	Flags uint64
	// Args are the string arguments.
	Args []string
	// PID is the calling process's, as Windows numbers them.
	PID int
}

func (c Call) arg(i int) string {
	if i < len(c.Args) {
		return c.Args[i]
	}
	return ""
}

// Reply is what the function returns. A nil text is a NULL pointer.
type Reply struct {
	Code       uint32 // HRESULT
	Handle     uint64
	Properties *string
	Result     *string
}

// ServeHTTP answers the DLLs; e2e/wine/dll/transport.c says how they ask.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	op, ok := strings.CutPrefix(r.URL.Path, "/hns/")
	if !ok || op == "" {
		http.NotFound(w, r)
		return
	}
	c, err := parse(op, r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	s.running.Add(1)
	defer s.running.Done()
	reply := s.answer(r.Context(), c)
	switch {
	case c.Op != "Adapters":
		writeReply(w, reply)
	case reply != nil: // the list has no place for a code: the DLL leaves ours out
		http.Error(w, "refused", http.StatusServiceUnavailable)
	default:
		io.WriteString(w, s.adapterLines())
	}
}

func writeReply(w io.Writer, r *Reply) {
	texts, lengths := "", [2]int{-1, -1}
	for i, t := range []*string{r.Properties, r.Result} {
		if t != nil {
			texts += *t
			lengths[i] = len(*t)
		}
	}
	fmt.Fprintf(w, "%d %d %d %d\n%s", int32(r.Code), r.Handle, lengths[0], lengths[1], texts)
}

func parse(op string, r *http.Request) (Call, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return Call{}, err
	}
	q := r.URL.Query()
	c := Call{Op: op, ID: strings.ToLower(q.Get("id"))}
	for _, f := range []struct {
		name string
		to   *uint64
	}{{"h", &c.Handle}, {"flags", &c.Flags}} {
		if v := q.Get(f.name); v != "" {
			if *f.to, err = strconv.ParseUint(v, 10, 64); err != nil {
				return Call{}, fmt.Errorf("%s: %w", f.name, err)
			}
		}
	}
	if v := q.Get("pid"); v != "" {
		if c.PID, err = strconv.Atoi(v); err != nil {
			return Call{}, fmt.Errorf("pid: %w", err)
		}
	}
	if len(body) > 0 {
		for a := range bytes.SplitSeq(bytes.TrimSuffix(body, []byte{0}), []byte{0}) {
			c.Args = append(c.Args, string(a))
		}
	}
	return c, nil
}

// answer gives the call to the interceptor, then carries it out. It is nil for
// "Adapters" unless the interceptor answers.
func (s *Server) answer(ctx context.Context, c Call) *Reply {
	s.mu.Lock()
	s.calls[c.Op]++
	f := s.intercept
	s.mu.Unlock()
	if f != nil {
		if r := f(ctx, c); r != nil {
			return r
		}
	}
	if c.Op == "Adapters" {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.do(c)
}

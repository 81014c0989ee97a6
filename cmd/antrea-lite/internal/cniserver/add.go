package cniserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"k8s.io/klog/v2"

	"github.com/antrea-lite/podnet/cmd/internal/cniapi"
	"github.com/antrea-lite/podnet/ifstore"
)

// errClientGone is why an ADD is given up.
var errClientGone = errors.New("the plugin went away before it had the result")

// add serves ADD. The request's body stays open until the plugin has printed
// the result; when it breaks off, at whatever moment, the interface goes again.
// The key stays locked for that long, so that a repeated ADD neither gets an
// interface that is about to be undone nor has its own undone.
func (s *Server) add(w http.ResponseWriter, r *http.Request) {
	start := time.Now()
	if err := http.NewResponseController(w).EnableFullDuplex(); err != nil {
		s.fail(r.Context(), w, "ADD", start, &cniapi.Request{}, err)
		return
	}
	req, err := decode(r.Body)
	if err == nil {
		err = s.gate("ADD")
	}
	if err == nil {
		err = checkKey("ADD", req)
	}
	if err != nil {
		s.fail(r.Context(), w, "ADD", start, req, err)
		return
	}
	podReq, err := translate(req)
	if err != nil {
		s.fail(r.Context(), w, "ADD", start, req, err)
		return
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	confirm := watch(w, r, cancel)
	defer confirm.stop()

	work, stop := deadline(ctx, req)
	defer stop()
	unlock, err := s.adds.lock(work, podReq.Key)
	if err != nil {
		s.fail(ctx, w, "ADD", start, req, err)
		return
	}
	defer unlock()
	iface, err := s.conf.Network.Add(work, req.Network, podReq)
	if err != nil {
		s.fail(ctx, w, "ADD", start, req, err)
		return
	}
	s.conf.Observe("ADD", "ok", time.Since(start))
	err = reply(w, http.StatusOK, answer(iface))
	if err == nil {
		err = http.NewResponseController(w).Flush()
	}
	if err == nil {
		err = confirm.wait(ctx)
	}
	// What existed before this call was delivered by another, and the interface of
	// a sandbox whose network this container shares is not its own.
	if err != nil && iface.Key == podReq.Key && !iface.Created.Before(start) {
		s.undo(ctx, iface, err)
	}
}

// confirmation is the rest of a request's body: its end is the plugin's
// confirmation, its breaking off cancels the call.
type confirmation struct {
	rc   *http.ResponseController
	done chan struct{} // closed when the body has ended or broken off
	err  error         // which of the two, to be read after done
}

// watch reads the rest of the body until stop.
func watch(w http.ResponseWriter, r *http.Request, cancel context.CancelFunc) *confirmation {
	c := &confirmation{rc: http.NewResponseController(w), done: make(chan struct{})}
	go func() {
		defer close(c.done)
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			c.err = err
			cancel()
		}
	}()
	return c
}

// wait returns nil once the plugin has confirmed, and errClientGone when it went
// without. ctx ends with either of the plugin and the agent. When it is the
// agent there is nothing to undo: the interface is in OVSDB, and the next agent
// sweeps it if its container is gone.
func (c *confirmation) wait(ctx context.Context) error {
	select {
	case <-c.done:
	case <-ctx.Done():
		c.stop()
	}
	if c.err == nil || errors.Is(c.err, os.ErrDeadlineExceeded) {
		return nil
	}
	return fmt.Errorf("%w: %w", errClientGone, c.err)
}

// stop ends the reader. net/http closes the body after the handler and would
// wait for a Read that is under way.
func (c *confirmation) stop() {
	if err := c.rc.SetReadDeadline(time.Now()); err == nil {
		<-c.done
	}
}

func (s *Server) undo(ctx context.Context, iface ifstore.Interface, cause error) {
	log := klog.FromContext(ctx).WithValues("pod", iface.Pod.String(), "interface", iface.Key.String())
	log.Info("The result of ADD did not arrive, undoing it", "cause", cause)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTimeout)
	defer cancel()
	if err := s.conf.Network.Delete(ctx, iface.Key, iface.NetNS); err != nil {
		log.Error(err, "Cannot undo the ADD; the sweep for dead containers will")
	}
}

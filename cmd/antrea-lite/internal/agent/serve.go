package agent

import (
	"context"
	"errors"
	"log"
	"net"
	"net/http"
	"strings"
	"time"

	"k8s.io/klog/v2"
)

// shutdownTime is what calls under way get when the agent is told to stop: an
// ADD to be undone, a DEL to finish.
const shutdownTime = 8 * time.Second

// serve runs an HTTP server on l until ctx ends, and then waits for the calls
// under way for a while. Their contexts derive from ctx.
func serve(ctx context.Context, l net.Listener, handler http.Handler) error {
	srv := &http.Server{
		Handler:           handler,
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          log.New(logWriter{klog.FromContext(ctx)}, "", 0),
	}
	done := make(chan error, 1)
	go func() { done <- srv.Serve(l) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTime)
	defer cancel()
	err := srv.Shutdown(limit)
	if err != nil {
		err = errors.Join(err, srv.Close())
	}
	if serveErr := <-done; !errors.Is(serveErr, http.ErrServerClosed) {
		err = errors.Join(err, serveErr)
	}
	return err
}

// logWriter passes net/http's complaints about single connections on.
type logWriter struct{ logger klog.Logger }

func (w logWriter) Write(b []byte) (int, error) {
	w.logger.V(2).Info("HTTP server", "message", strings.TrimSpace(string(b)))
	return len(b), nil
}

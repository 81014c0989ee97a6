package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"syscall"
	"time"

	"github.com/antrea-lite/podnet/cmd/internal/cniapi"
)

// Client asks an agent. Close idle connections by dropping it.
type Client struct {
	socket string
	http   *http.Client
}

// NewClient returns a Client of the agent behind a unix socket or a named pipe.
func NewClient(socket string) *Client {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) { return cniapi.Dial(ctx, socket) }
	return &Client{socket: socket, http: &http.Client{
		Timeout: 30 * time.Second, Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}}}
}

// ErrNoAgent is wrapped when nobody answers on the socket.
var ErrNoAgent = errors.New("the agent is not running")

// Get asks for path and decodes the answer into v.
func (c *Client) Get(ctx context.Context, path string, query url.Values, v any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://agent"+path+"?"+query.Encode(), nil)
	if err != nil {
		return err
	}
	resp, err := c.http.Do(req)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("%w: nobody answers on %s: start `antrea-lite agent`, or name its socket with --cni-socket or --config", ErrNoAgent, c.socket)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("no permission to open the agent's socket %s: run as root", c.socket)
	case err != nil:
		return fmt.Errorf("ask the agent at %s: %w", c.socket, err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return fmt.Errorf("ask the agent at %s: %w", c.socket, err)
	}
	if resp.StatusCode != http.StatusOK {
		var e cniapi.Error
		if json.Unmarshal(body, &e) == nil && e.Msg != "" {
			return &e
		}
		return fmt.Errorf("the agent at %s answered %s", c.socket, resp.Status)
	}
	return json.Unmarshal(body, v)
}

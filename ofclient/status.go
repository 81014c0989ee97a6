package ofclient

import "time"

// Status is a snapshot for health checks and `antrea-lite status`.
type Status struct {
	Connected  bool      // a session exists and the switch spoke OpenFlow 1.5
	Ready      bool      // its ports are listed and the replay is done: Apply does not wait
	Since      time.Time // when Connected or Ready last changed
	LastError  string    // why the latest attempt or session ended; kept until the next one ends
	DatapathID uint64    // of the bridge; 0 before the first session
	Reconnects int       // sessions established after the first
}

// Status returns how the client stands. It never blocks on the switch.
func (c *Client) Status() Status {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.status
}

package ofclient

// Retained returns how many entries are kept for ports: names that w has not
// told, ports of the session, names that the watches were told.
func (c *Client) Retained(w *PortWatch) (waiting, ports, known int) {
	c.mu.Lock()
	conn := c.conn
	c.mu.Unlock()
	if conn != nil {
		conn.ports.mu.Lock()
		ports = len(conn.ports.set.byNumber)
		conn.ports.mu.Unlock()
	}
	c.hub.mu.Lock()
	defer c.hub.mu.Unlock()
	return len(w.order), ports, len(c.hub.known)
}

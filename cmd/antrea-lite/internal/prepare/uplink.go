package prepare

import (
	"net"
)

// DefaultAdapter returns the name of the adapter that the default route leads
// out of, "" when there is none. Nothing is sent: connecting a UDP socket only
// asks the system for the route (192.0.2.1 and 2001:db8::1 are for documentation).
func DefaultAdapter() (string, error) {
	for _, there := range []string{"192.0.2.1:9", "[2001:db8::1]:9"} {
		conn, err := net.Dial("udp", there)
		if err != nil {
			continue // no route of this family
		}
		own := conn.LocalAddr().(*net.UDPAddr).IP
		conn.Close()
		interfaces, err := net.Interfaces()
		if err != nil {
			return "", err
		}
		for _, i := range interfaces {
			addrs, err := i.Addrs()
			if err != nil {
				continue // it went meanwhile
			}
			for _, a := range addrs {
				if n, ok := a.(*net.IPNet); ok && n.IP.Equal(own) {
					return i.Name, nil
				}
			}
		}
	}
	return "", nil
}

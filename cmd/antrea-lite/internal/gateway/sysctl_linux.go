package gateway

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Setting is one kernel setting as it has to be.
type Setting struct {
	Path  string // below /proc/sys
	Value string
	Why   string
}

// Settings returns what the gateway needs, in the order of application.
func Settings(gateway string, v4, v6 bool) []Setting {
	var s []Setting
	if v4 {
		conf := "net/ipv4/conf/"
		s = append(s,
			Setting{"net/ipv4/ip_forward", "1", "the node routes between Pods and the rest of the world"},
			Setting{conf + gateway + "/forwarding", "1", "the gateway is a router"},
			// The kernel sends redirects if either of the two is set.
			Setting{conf + "all/send_redirects", "0", "Pods must not be told to bypass the gateway"},
			Setting{conf + gateway + "/send_redirects", "0", "Pods must not be told to bypass the gateway"},
			// The kernel uses the larger of all and this: loose mode, because replies may come in by another way.
			Setting{conf + gateway + "/rp_filter", "2", "replies of Services may come in by another interface"},
		)
	}
	if v6 {
		conf := "net/ipv6/conf/"
		s = append(s,
			Setting{conf + gateway + "/accept_ra", "0", "a Pod must not become the node's router"},
			// ovs-vswitchd may take a new tap down for a moment, when it writes flags back that it read before it was up.
			Setting{conf + gateway + "/keep_addr_on_down", "1", "the gateway must not lose its addresses when it goes down for a moment"},
			Setting{conf + "all/forwarding", "1", "the node routes between Pods and the rest of the world"},
			Setting{conf + gateway + "/forwarding", "1", "the gateway is a router"},
		)
	}
	return s
}

const procSys = "/proc/sys"

// Read returns the present value.
func (s Setting) Read() (string, error) {
	b, err := os.ReadFile(filepath.Join(procSys, s.Path))
	if errors.Is(err, fs.ErrNotExist) && strings.HasPrefix(s.Path, "net/ipv6/") {
		return "", fmt.Errorf("kernel setting %s does not exist: IPv6 is off in this kernel; turn it on or take the IPv6 range out of podCIDRs", s.Path)
	}
	if err != nil {
		return "", fmt.Errorf("kernel setting: %w", err)
	}
	return strings.TrimSpace(string(b)), nil
}

// apply writes the value only when it differs, and reads it back.
func (s Setting) apply() (changed bool, err error) {
	now, err := s.Read()
	if err != nil || now == s.Value {
		return false, err
	}
	if err := os.WriteFile(filepath.Join(procSys, s.Path), []byte(s.Value), 0o644); err != nil {
		return false, fmt.Errorf("kernel setting %s: cannot change %q to %q, which is needed because %s: %w; run the agent as root with a writable /proc/sys", s.Path, now, s.Value, s.Why, err)
	}
	now, err = s.Read()
	if err == nil && now != s.Value {
		err = fmt.Errorf("kernel setting %s: is %q right after %q was written; something else sets it", s.Path, now, s.Value)
	}
	return true, err
}

// keepRouterAdvertisements raises accept_ra from 1 to 2 on every other
// interface before forwarding is turned on: with forwarding the kernel takes 1
// for "no", and the node would lose its own default route.
func keepRouterAdvertisements(gateway string) error {
	base := filepath.Join(procSys, "net/ipv6/conf")
	forwarding, err := Setting{Path: "net/ipv6/conf/all/forwarding"}.Read()
	if err != nil || forwarding == "1" {
		return err
	}
	dirs, err := os.ReadDir(base)
	if err != nil {
		return fmt.Errorf("kernel settings: %w", err)
	}
	for _, d := range dirs {
		if d.Name() == gateway || d.Name() == "all" || d.Name() == "default" || d.Name() == "lo" {
			continue
		}
		s := Setting{Path: "net/ipv6/conf/" + d.Name() + "/accept_ra", Value: "2", Why: "the node must go on to hear its routers"}
		now, err := s.Read()
		if err != nil || now != "1" {
			continue // the interface went meanwhile, or does not listen to routers anyway
		}
		if _, err := s.apply(); err != nil {
			return err
		}
	}
	return nil
}

package fakehns

import (
	"encoding/json"
	"strings"
)

// ovsExtension is the id of Open vSwitch's extension.
const ovsExtension = "583CC151-73EC-4A6A-8B47-578297AD7623"

// firstNetwork is the part of HNS' first interface that knows the extensions of
// a network's switch. Those of a new network are disabled.
func (s *Server) firstNetwork(c Call) (output any, ok bool) {
	id := strings.ToLower(strings.TrimPrefix(c.arg(1), "/networks/"))
	o := s.objects[network][id]
	if o == nil {
		return nil, false
	}
	if c.arg(0) == "POST" {
		var change struct {
			Extensions []struct {
				ID        string `json:"Id"`
				IsEnabled bool
			}
		}
		if err := json.Unmarshal([]byte(c.arg(2)), &change); err != nil {
			return nil, false
		}
		for _, x := range change.Extensions {
			if strings.EqualFold(x.ID, ovsExtension) {
				s.extended[id] = x.IsEnabled
			}
		}
	}
	return Object{"ID": o["ID"], "Name": o["Name"], "Type": o["Type"], "Extensions": []Object{
		{"Id": "E7C3B2F0-F3C5-48DF-AF2B-10FED6D72E7A", "IsEnabled": false, "Name": "Microsoft Windows Filtering Platform"},
		{"Id": ovsExtension, "IsEnabled": s.extended[id], "Name": "Open vSwitch Extension"},
	}}, true
}

// Extended reports whether Open vSwitch's extension is enabled in that network's switch.
func (s *Server) Extended(networkID string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.extended[strings.ToLower(networkID)]
}

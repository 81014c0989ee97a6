package windows

import (
	"encoding/hex"
	"fmt"
	"strings"
)

// GUID names an object of HNS: a network, an endpoint or a namespace. The zero
// GUID stands for none. HNS writes GUIDs in either case, so they are compared
// as values, never as text.
type GUID [16]byte

// guidDashes are the positions of the dashes in xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx.
var guidDashes = [...]int{8, 13, 18, 23}

const guidLen = 36

// ParseGUID reads the form 5f0b1190-63be-4e0c-b974-bd0f55675a42, in either case,
// with or without braces.
func ParseGUID(s string) (GUID, error) {
	var g GUID
	text := s
	if inner, ok := strings.CutPrefix(text, "{"); ok {
		if text, ok = strings.CutSuffix(inner, "}"); !ok {
			return g, fmt.Errorf("GUID %q: its brace is not closed", s)
		}
	}
	if len(text) != guidLen {
		return g, fmt.Errorf("GUID %q has %d characters; want the form 5f0b1190-63be-4e0c-b974-bd0f55675a42", s, len(text))
	}
	for _, i := range guidDashes {
		if text[i] != '-' {
			return g, fmt.Errorf("GUID %q has no dash at position %d; want the form 5f0b1190-63be-4e0c-b974-bd0f55675a42", s, i+1)
		}
	}
	raw, err := hex.DecodeString(strings.ReplaceAll(text, "-", ""))
	if err != nil || len(raw) != len(g) {
		return g, fmt.Errorf("GUID %q is not made of 32 hexadecimal digits", s)
	}
	copy(g[:], raw)
	return g, nil
}

// String returns the form that ParseGUID reads, in lower case and without braces.
func (g GUID) String() string {
	return fmt.Sprintf("%x-%x-%x-%x-%x", g[:4], g[4:6], g[6:8], g[8:10], g[10:])
}

// IsZero reports whether g is the zero GUID.
func (g GUID) IsZero() bool { return g == GUID{} }

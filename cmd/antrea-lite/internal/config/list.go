package config

import (
	"fmt"
	"strings"
)

// List is a list of strings; as a flag its items are separated by commas.
type List []string

// Set implements pflag.Value: the flag replaces what the file said.
func (l *List) Set(s string) error {
	*l = nil
	for item := range strings.SplitSeq(s, ",") {
		item = strings.TrimSpace(item)
		if item == "" {
			return fmt.Errorf("%q has an empty item", s)
		}
		*l = append(*l, item)
	}
	return nil
}

// String implements pflag.Value.
func (l List) String() string { return strings.Join(l, ",") }

// Type implements pflag.Value.
func (l *List) Type() string { return "list" }

package windows

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// differences is an error for everything that is not as it should be. It is one
// line of text, as that is what CNI shows.
type differences []error

func (d *differences) add(format string, args ...any) { *d = append(*d, fmt.Errorf(format, args...)) }

// err returns nil when there is no difference.
func (d differences) err() error {
	d = slices.DeleteFunc(slices.Clone(d), func(err error) bool { return err == nil })
	switch len(d) {
	case 0:
		return nil
	case 1:
		return d[0]
	}
	return d
}

func (d differences) Error() string {
	texts := make([]string, len(d))
	for i, err := range d {
		texts[i] = err.Error()
	}
	return strings.Join(texts, "; ")
}

func (d differences) Unwrap() []error { return d }

// addresses compares sets of addresses.
func (d *differences) addresses(have, want []netip.Prefix) {
	for _, a := range want {
		if !slices.Contains(have, a) {
			d.add("address %v is missing", a)
		}
	}
	for _, a := range have {
		if !slices.Contains(want, a) {
			d.add("address %v is not its own", a)
		}
	}
}

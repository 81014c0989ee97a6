package linux

import (
	"fmt"
	"strings"
)

// differences is an error for everything that is not as recorded. It is one
// line of text, as that is what CNI shows.
type differences []error

func (d *differences) add(format string, args ...any) { *d = append(*d, fmt.Errorf(format, args...)) }

// err returns nil when there is no difference.
func (d differences) err() error {
	var found differences
	for _, err := range d {
		if err != nil {
			found = append(found, err)
		}
	}
	switch len(found) {
	case 0:
		return nil
	case 1:
		return found[0]
	}
	return found
}

func (d differences) Error() string {
	texts := make([]string, len(d))
	for i, err := range d {
		texts[i] = err.Error()
	}
	return strings.Join(texts, "; ")
}

func (d differences) Unwrap() []error { return d }

package level

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// script runs a loop whose looks end as listed, nil after that, for a time. It
// returns when the looks were, and what was news.
func script(t *testing.T, l *Loop, lasts time.Duration, ends ...error) (at []time.Duration, news []error, err error) {
	t.Helper()
	begin := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), lasts)
	defer cancel()
	err = l.Run(ctx, func(context.Context) error {
		at = append(at, time.Since(begin))
		if n := len(at); n <= len(ends) {
			return ends[n-1]
		}
		return nil
	}, func(err error) { news = append(news, err) })
	return at, news, err
}

func TestLooks(t *testing.T) {
	const ms = time.Millisecond
	a, b := errors.New("a"), errors.New("b")
	for _, test := range []struct {
		name string
		ends []error
		at   []time.Duration
		news []error
		err  error
	}{
		{"all well", nil, []time.Duration{0, time.Minute}, []error{nil}, nil},
		{"failures, with pauses that grow", []error{a, a, b}, []time.Duration{0, 200 * ms, 600 * ms, 1400 * ms, time.Minute + 1400*ms}, []error{a, b, nil}, nil},
		{"a success in between", []error{a, nil, a}, []time.Duration{0, 200 * ms, time.Minute + 200*ms, time.Minute + 400*ms}, []error{a, nil, a, nil}, nil},
		{"nothing known yet", []error{ErrNotYet}, []time.Duration{0, time.Minute}, []error{nil}, nil},
		{"a fault for good", []error{a, Permanent(b)}, []time.Duration{0, 200 * ms}, []error{a, b}, b},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				at, news, err := script(t, New(time.Minute), 90*time.Second, test.ends...)
				same := slices.EqualFunc(news, test.news, func(x, y error) bool { return errors.Is(x, y) && (x == nil) == (y == nil) })
				if !slices.Equal(at, test.at) || !same || !errors.Is(err, test.err) || (err == nil) != (test.err == nil) {
					t.Errorf("looks at %v, want %v; news %v, want %v; ended with %v, want %v", at, test.at, news, test.news, err, test.err)
				}
			})
		})
	}
}

func TestWakeAndLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(time.Hour)
		if _, looked := l.Last(); looked {
			t.Error("it has looked before Run")
		}
		l.Wake()
		l.Wake() // one token holds both
		time.AfterFunc(time.Second, l.Wake)
		at, _, _ := script(t, l, time.Minute)
		if want := []time.Duration{0, 0, time.Second}; !slices.Equal(at, want) {
			t.Errorf("looks at %v, want %v", at, want)
		}
		if err, looked := l.Last(); err != nil || !looked {
			t.Errorf("last %v, looked %v", err, looked)
		}
	})
}

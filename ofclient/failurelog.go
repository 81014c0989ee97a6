package ofclient

import (
	"time"

	"k8s.io/klog/v2"
)

// logPeriod is how often a failure that repeats is logged.
const logPeriod = time.Minute

// failureLog logs repeated failures of one kind at most once per logPeriod,
// with the number it kept back: a switch that is away for ten minutes
// must not fill a disk. It is for one goroutine.
type failureLog struct {
	logger klog.Logger
	kinds  map[string]*failures
}

type failures struct {
	last     time.Time
	withheld int
}

func (l *failureLog) failed(err error, kind string) {
	if l.kinds == nil {
		l.kinds = make(map[string]*failures)
	}
	f := l.kinds[kind]
	if f == nil {
		f = &failures{}
		l.kinds[kind] = f
	}
	now := time.Now()
	if !f.last.IsZero() && now.Sub(f.last) < logPeriod {
		f.withheld++
		return
	}
	l.logger.Error(err, kind, "sameWithheld", f.withheld)
	f.last, f.withheld = now, 0
}

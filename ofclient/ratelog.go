package ofclient

import (
	"time"

	"k8s.io/klog/v2"
)

// logPeriod is how often the same thing is logged while it repeats.
const logPeriod = time.Minute

// rateLog logs what may repeat at most once per logPeriod and message, with
// the number of times it kept silent: a switch that is away for ten minutes or
// flaps must not fill a disk. It is for one goroutine.
type rateLog struct {
	logger klog.Logger
	kinds  map[string]*repeats
}

type repeats struct {
	last     time.Time
	withheld int
}

// failed logs an error that somebody handles by trying again.
func (l *rateLog) failed(err error, message string) {
	if withheld, ok := l.allow(message); ok {
		l.logger.Error(err, message, "sameWithheld", withheld)
	}
}

func (l *rateLog) info(message string, keysAndValues ...any) {
	if withheld, ok := l.allow(message); ok {
		l.logger.Info(message, append(keysAndValues, "sameWithheld", withheld)...)
	}
}

func (l *rateLog) allow(message string) (withheld int, ok bool) {
	if l.kinds == nil {
		l.kinds = make(map[string]*repeats)
	}
	r := l.kinds[message]
	if r == nil {
		r = &repeats{}
		l.kinds[message] = r
	}
	now := time.Now()
	if !r.last.IsZero() && now.Sub(r.last) < logPeriod {
		r.withheld++
		return 0, false
	}
	withheld = r.withheld
	r.last, r.withheld = now, 0
	return withheld, true
}

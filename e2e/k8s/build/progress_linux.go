package build

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"time"
)

// reportEvery is how often a long build says that it goes on.
const reportEvery = 20 * time.Second

// packageCounter reads what go build -v prints, a line for each package that is
// compiled, and tells their number from time to time.
type packageCounter struct {
	progress func(string)
	quit     chan struct{}
	done     chan struct{}

	mu    sync.Mutex
	count int
	last  []string // lines, for when it fails
	part  []byte
}

func newPackageCounter(progress func(string)) *packageCounter {
	c := &packageCounter{progress: progress, quit: make(chan struct{}), done: make(chan struct{})}
	go c.report()
	return c
}

func (c *packageCounter) report() {
	defer close(c.done)
	start := time.Now()
	ticks := time.NewTicker(reportEvery)
	defer ticks.Stop()
	for {
		select {
		case <-c.quit:
			return
		case <-ticks.C:
			c.mu.Lock()
			count := c.count
			c.mu.Unlock()
			text := "  " + time.Since(start).Round(time.Second).String()
			// go test -c does not tell.
			if count > 0 {
				text += fmt.Sprintf(": %d packages compiled", count)
			}
			c.progress(text)
		}
	}
}

func (c *packageCounter) stop() {
	close(c.quit)
	<-c.done
}

// Write implements io.Writer.
func (c *packageCounter) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.part = append(c.part, p...)
	for {
		line, rest, whole := bytes.Cut(c.part, []byte("\n"))
		if !whole {
			return len(p), nil
		}
		c.part = rest
		if !bytes.Contains(line, []byte(" ")) {
			c.count++
		}
		c.last = append(c.last, string(line))
		c.last = c.last[max(0, len(c.last)-20):]
	}
}

func (c *packageCounter) tail() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return strings.Join(c.last, "\n")
}

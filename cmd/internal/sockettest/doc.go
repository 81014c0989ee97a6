// Package sockettest names sockets for tests on any system.
package sockettest

import "go.uber.org/goleak"

// Lasting excuses the one goroutine that go-winio starts with the first pipe and never ends.
func Lasting() goleak.Option {
	return goleak.IgnoreAnyFunction("github.com/Microsoft/go-winio.ioCompletionProcessor")
}

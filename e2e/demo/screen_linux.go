package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/term"
)

// screen prints the story; colours are used on a terminal only.
type screen struct {
	w      io.Writer
	colour bool
}

func newScreen(f *os.File) *screen {
	return &screen{w: f, colour: term.IsTerminal(int(f.Fd())) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"}
}

func (s *screen) paint(code, text string) string {
	if !s.colour {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

// title begins a part of the story.
func (s *screen) title(format string, args ...any) {
	fmt.Fprintf(s.w, "\n%s\n", s.paint("1;36", fmt.Sprintf(format, args...)))
}

// note explains.
func (s *screen) note(format string, args ...any) {
	fmt.Fprintf(s.w, "    %s\n", s.paint("2", fmt.Sprintf(format, args...)))
}

// ok reports a step that went well.
func (s *screen) ok(format string, args ...any) {
	fmt.Fprintf(s.w, "  %s %s\n", s.paint("32", "ok"), fmt.Sprintf(format, args...))
}

// fail reports a step that did not.
func (s *screen) fail(what string, err error) {
	fmt.Fprintf(s.w, "  %s %s: %v\n", s.paint("1;31", "FAILED"), what, err)
}

// block prints the output of a command, indented.
func (s *screen) block(text string) {
	for line := range strings.Lines(text) {
		fmt.Fprintf(s.w, "      %s\n", strings.TrimRight(line, "\n"))
	}
}

// short words a duration for reading.
func short(d time.Duration) string {
	switch {
	case d < time.Millisecond:
		return d.Round(10 * time.Microsecond).String()
	case d < time.Second:
		return d.Round(100 * time.Microsecond).String()
	}
	return d.Round(10 * time.Millisecond).String()
}

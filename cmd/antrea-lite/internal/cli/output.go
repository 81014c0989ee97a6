package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// output prints results: a table for people, JSON for programs.
type output struct {
	w      io.Writer
	format string
}

const (
	formatTable = "table"
	formatWide  = "wide"
	formatJSON  = "json"
)

func (o *output) flag(cmd *cobra.Command, formats ...string) {
	cmd.Flags().StringVarP(&o.format, "output", "o", formatTable, "format: "+strings.Join(formats, ", "))
	cmd.PreRunE = func(*cobra.Command, []string) error {
		for _, f := range formats {
			if o.format == f {
				return nil
			}
		}
		return fmt.Errorf("--output %q is unknown: use %s", o.format, strings.Join(formats, ", "))
	}
}

func (o *output) json(v any) error {
	e := json.NewEncoder(o.w)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// colour is an ANSI sequence.
type colour string

const (
	plain  colour = ""
	bold   colour = "\x1b[1m"
	red    colour = "\x1b[31m"
	green  colour = "\x1b[32m"
	yellow colour = "\x1b[33m"
	reset         = "\x1b[0m"
)

// cell is one field of a table.
type cell struct {
	text  string
	paint colour
}

func text(s string) cell { return cell{text: s} }

// paints tells whether colours may be used: on a terminal, unless NO_COLOR is set (no-color.org).
func (o *output) paints() bool {
	f, ok := o.w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd())) && os.Getenv("NO_COLOR") == ""
}

func (o *output) painted(c cell, width int) string {
	pad := strings.Repeat(" ", max(0, width-utf8.RuneCountInString(c.text)))
	if c.paint == plain || !o.paints() {
		return c.text + pad
	}
	return string(c.paint) + c.text + reset + pad
}

// table prints rows under a header, columns as wide as their widest field.
func (o *output) table(header []string, rows [][]cell) error {
	width := make([]int, len(header))
	head := make([]cell, len(header))
	for i, h := range header {
		head[i] = cell{h, bold}
	}
	all := append([][]cell{head}, rows...)
	for _, row := range all {
		for i, c := range row {
			width[i] = max(width[i], utf8.RuneCountInString(c.text))
		}
	}
	var b strings.Builder
	for _, row := range all {
		for i, c := range row {
			if i == len(row)-1 {
				b.WriteString(strings.TrimRight(o.painted(c, 0), " "))
				break
			}
			b.WriteString(o.painted(c, width[i]) + "  ")
		}
		b.WriteByte('\n')
	}
	_, err := io.WriteString(o.w, b.String())
	return err
}

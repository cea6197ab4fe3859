package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"strings"
)

// formatFlags are the flags that choose how lines are shown.
type formatFlags struct {
	output string // "": by where they go
	utc    bool
}

// declare declares the flags; rows: for what pipes make, too.
func (f *formatFlags) declare(flags *flag.FlagSet, rows bool) {
	names := []string{"text", "json", "csv"}
	if rows {
		names = append(names, "table", "chart")
	}
	wordFlag(flags, "o", "print `FORMAT`: "+strings.Join(names, ", ")+"; json is an object a line (default: for people on a terminal, json elsewhere)",
		func(word string) { f.output = word }, names...)
	flags.BoolVar(&f.utc, "utc", false, "show times in UTC instead of local time")
}

// A lineWriter prints canonical lines, or rows that pipes make of them. It is not safe for
// concurrent use.
type lineWriter struct {
	out      *bufio.Writer
	format   string
	terminal bool
	grouped  bool // rows come at the end
	view     renderer
	width    int // of the terminal; 0: unknown

	begun   bool
	columns []string
	table   *table // nil: another format
	buf     []byte
}

// writer chooses the format: for people on a terminal, as stored elsewhere. Colors need
// a terminal, and NO_COLOR unset or empty.
func (f *formatFlags) writer(stdout *stream) *lineWriter {
	w := &lineWriter{format: f.output, terminal: stdout.terminal, view: renderer{utc: f.utc}}
	switch {
	case w.format == "" && !w.terminal:
		w.format = "json"
	case w.format == "", w.format == "text", w.format == "table", w.format == "chart":
		if w.terminal {
			w.width = stdout.width()
		}
		stdout, w.view.color = stdout.colored()
	}
	w.out = bufio.NewWriterSize(stdout, 64<<10)
	return w
}

// begin tells what comes: rows with these columns, or lines.
func (w *lineWriter) begin(columns []string) error {
	w.begun, w.columns = true, columns
	if columns == nil {
		w.columns = lineColumns
	}
	t := &table{renderer: &w.view, columns: w.columns, width: w.width, hold: w.grouped}
	switch w.format {
	case "csv":
		w.buf = appendCSV(w.buf[:0], w.columns)
		_, err := w.out.Write(w.buf)
		return err
	case "":
		if columns == nil {
			w.format = "text"
			return nil
		}
		if w.table = t; w.grouped {
			t.bars = barsIfFit
		}
	case "chart":
		w.table, t.bars, t.hold = t, barsAlways, true
	case "table":
		w.table = t
	case "text":
		w.view.bare = columns != nil
	}
	return nil
}

// write prints one line or row. It may stay in the buffer until flush, or in a table until
// end.
func (w *lineWriter) write(line []byte) error {
	if !w.begun {
		if err := w.begin(nil); err != nil {
			return err
		}
	}
	switch {
	case w.format == "csv":
		var record []string
		for _, c := range cells(w.columns, line) {
			record = append(record, c.text)
		}
		line = appendCSV(w.buf[:0], record)
		w.buf = line
	case w.table != nil:
		w.table.add(line)
		return nil
	case w.format == "text":
		w.buf = w.view.appendLine(w.buf[:0], line)
		line = w.buf
	}
	_, err := w.out.Write(line)
	if err == nil && !bytes.HasSuffix(line, []byte("\n")) {
		err = w.out.WriteByte('\n')
	}
	return err
}

// marked is write with a mark before a line for people.
func (w *lineWriter) marked(mark string, line []byte) error {
	if !w.begun {
		if err := w.begin(nil); err != nil {
			return err
		}
	}
	if w.format == "text" {
		if _, err := w.out.WriteString(mark); err != nil {
			return err
		}
	}
	return w.write(line)
}

// separate prints what is between groups of lines for people.
func (w *lineWriter) separate() error {
	if w.format != "text" {
		return nil
	}
	_, err := w.out.WriteString("--\n")
	return err
}

func (w *lineWriter) flush() error {
	if w.table != nil {
		w.buf = w.table.flush(w.buf[:0])
		if _, err := w.out.Write(w.buf); err != nil {
			return err
		}
	}
	return w.out.Flush()
}

// end prints what a table has waited for.
func (w *lineWriter) end() error {
	if w.table != nil {
		w.table.hold = false
	}
	return w.flush()
}

// appendCSV appends a record as RFC 4180 has it. Unlike encoding/csv it leaves the line ends
// in a field as they are.
func appendCSV(dst []byte, record []string) []byte {
	for i, field := range record {
		if i > 0 {
			dst = append(dst, ',')
		}
		if strings.ContainsAny(field, ",\"\r\n") || len(record) == 1 && field == "" {
			field = `"` + strings.ReplaceAll(field, `"`, `""`) + `"`
		}
		dst = append(dst, field...)
	}
	return append(dst, "\r\n"...)
}

// show prints text for people or, with -o json, v.
func (c *call) show(v any, text string) error {
	if c.json {
		return printJSON(c.stdout, v)
	}
	_, err := io.WriteString(c.stdout, text)
	return err
}

// say writes a line for people to stderr; with -o json it is the message of an object.
func (c *call) say(format string, args ...any) {
	text := fmt.Sprintf(format, args...) + "\n"
	if c.json {
		text = jsonLine(map[string]string{"message": strings.TrimSpace(text)})
	}
	_, _ = io.WriteString(c.stderr, text) // there is nowhere to say that it failed
}

// tellOf writes text to stdout as tell does or, with -o json, v in one line.
func (c *call) tellOf(v any, text string) {
	if c.json {
		text = jsonLine(v)
	}
	tell(c.stdout, "%s", text)
}

// jsonLine returns v, which can be marshaled, and a line end.
func jsonLine(v any) string {
	text, _ := json.Marshal(v)
	return string(text) + "\n"
}

// printJSON prints v for programs and people.
func printJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

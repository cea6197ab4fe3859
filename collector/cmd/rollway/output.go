package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"flag"
	"io"
)

// formatFlags are the flags that choose how lines are shown.
type formatFlags struct {
	json, text, utc bool
}

func (f *formatFlags) declare(flags *flag.FlagSet) {
	flags.BoolVar(&f.json, "json", false, "print lines as stored, on a terminal too")
	flags.BoolVar(&f.text, "text", false, "print lines for people, into a pipe or a file too")
	flags.BoolVar(&f.utc, "utc", false, "show times in UTC instead of local time")
}

// A lineWriter prints canonical lines, for people or as stored. It is not safe for
// concurrent use.
type lineWriter struct {
	out  *bufio.Writer
	text *renderer // nil: as stored
	buf  []byte
}

// writer chooses the format: for people on a terminal, as stored elsewhere. Colors need
// a terminal, and NO_COLOR unset or empty.
func (f *formatFlags) writer(stdout *stream) (*lineWriter, error) {
	if f.json && f.text {
		return nil, usagef("-json and -text exclude each other")
	}
	w := new(lineWriter)
	if f.text || stdout.terminal && !f.json {
		w.text = &renderer{utc: f.utc}
		stdout, w.text.color = stdout.colored()
	}
	w.out = bufio.NewWriterSize(stdout, 64<<10)
	return w, nil
}

// write prints one line. The line may stay in the buffer until flush.
func (w *lineWriter) write(line []byte) error {
	if w.text != nil {
		w.buf = w.text.appendLine(w.buf[:0], line)
		line = w.buf
	}
	_, err := w.out.Write(line)
	if err == nil && !bytes.HasSuffix(line, []byte("\n")) {
		err = w.out.WriteByte('\n')
	}
	return err
}

func (w *lineWriter) flush() error { return w.out.Flush() }

// copyLines prints the lines of r and returns their number. It flushes before it waits
// for r.
func (w *lineWriter) copyLines(r io.Reader) (n int, err error) {
	in := bufio.NewReaderSize(r, 64<<10)
	for ; ; n++ {
		line, err := in.ReadBytes('\n')
		if err == io.EOF && len(line) == 0 {
			return n, w.flush()
		}
		if err == io.EOF {
			err = io.ErrUnexpectedEOF // do not show a torn line as if it were whole
		}
		if err == nil {
			err = w.write(line)
		}
		if err != nil || in.Buffered() == 0 {
			if err := w.flush(); err != nil {
				return n, err
			}
		}
		if err != nil {
			return n, err
		}
	}
}

// show prints text for people or, with -json, v.
func show(w io.Writer, asJSON bool, v any, text string) error {
	if asJSON {
		return printJSON(w, v)
	}
	_, err := io.WriteString(w, text)
	return err
}

// printJSON prints v for programs and people.
func printJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

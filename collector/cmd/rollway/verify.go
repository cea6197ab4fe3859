package main

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/rollway/rollway/collector/journal"
	"github.com/rollway/rollway/internal/framed"
)

var verifyCommand = &command{
	name:    "verify",
	summary: "check log files and framed segments for damage",
	args:    "FILE…",
	help: `
Reads each FILE to its end and says what it is and whether it is sound.

Of text, packed by gzip or zstd or not, it counts lines and bytes. Bytes 0 are
damage: they are what a lost block, or a file that was cut under its writer,
looks like. With -json so is every line that is not a JSON object in UTF-8.
Blank lines and spaces before line ends are padding, and no damage.

Of a framed segment it checks every record against its checksum. What is lost
is counted, to the record wherever something sound follows. What an earlier use
of the same file has left behind the end is not looked at.

A last line without its end, and a last batch that is not complete, are no
damage: a writer is at work, or was killed. With -closed they are. FILE may also
be the folder of a collector's journal.

The exit status is 1 if there is damage or a FILE cannot be read.

Examples:
  rollway verify /var/log/payment.log
  rollway verify -json -closed /var/log/payment.log.*.gz
  rollway verify /var/log/payment/*.seg
`,
	setup: setupVerify,
}

// verifyFlags are the flags of verify.
type verifyFlags struct {
	json    bool
	closed  bool
	maxLine int // bytes; 0: no limit
}

func setupVerify(flags *flag.FlagSet) func(*call, []string) error {
	v := &verifyFlags{}
	flags.BoolVar(&v.json, "json", false, "each line of text must be a JSON object in UTF-8")
	flags.BoolVar(&v.closed, "closed", false, "the files are complete: a torn end is damage too")
	sizeFlag(flags, &v.maxLine, "max-line", "a line longer than this `SIZE` is damage (default: no limit)")
	return func(c *call, args []string) error {
		if len(args) == 0 {
			return usagef("FILE is missing")
		}
		if v.maxLine < 0 {
			return usagef("-max-line must not be negative")
		}
		return v.run(c, args)
	}
}

// report is what came of one file.
type report struct {
	what    string // of what kind and size
	notes   []string
	damaged bool
}

// add notes something if it is so.
func (r *report) add(so, damage bool, format string, args ...any) {
	if so {
		r.notes = append(r.notes, fmt.Sprintf(format, args...))
		r.damaged = r.damaged || damage
	}
}

// print writes the report of the file name.
func (r *report) print(w io.Writer, name string) error {
	state := "sound"
	if r.damaged {
		state = "damaged"
	}
	text := fmt.Sprintf("%s: %s: %s\n", appendPlain(nil, name), r.what, state)
	if len(r.notes) > 0 {
		text += "  " + strings.Join(r.notes, "\n  ") + "\n"
	}
	_, err := io.WriteString(w, text)
	return err
}

// run checks all files. One that cannot be read does not keep it from the
// others.
func (v *verifyFlags) run(c *call, names []string) error {
	out := bufio.NewWriter(c.stdout)
	bad := 0
	for _, name := range names {
		r, err := v.check(name)
		switch {
		case err != nil:
			if err := out.Flush(); err != nil {
				return err
			}
			c.say("rollway verify: %v", err)
			bad++
			continue
		case r.damaged:
			bad++
		}
		if err := r.print(out, name); err != nil {
			return err
		}
	}
	if err := out.Flush(); err != nil {
		return err
	}
	if bad == 0 {
		return nil
	}
	if len(names) > 1 {
		c.say("rollway verify: %d of %s not sound", bad, plural(len(names), "file"))
	}
	return errSaid
}

// check reads one file.
func (v *verifyFlags) check(name string) (report, error) {
	if info, err := os.Stat(name); err == nil && info.IsDir() && isJournal(name) {
		return v.checkJournal(name)
	}
	l, err := openLog(name)
	if err != nil {
		return report{}, err
	}
	defer l.close()
	if l.kind == kindFramed {
		return v.checkFramed(l)
	}
	t := textCheck{json: v.json, maxLine: v.maxLine}
	err = t.scan(l.text.text)
	r := t.report(v.closed)
	if err != nil && l.text.unpacker == nil {
		return report{}, fmt.Errorf("%s: %w", name, err)
	}
	r.add(err != nil, true, "cannot be unpacked any further: %v", err)
	return r, nil
}

func (v *verifyFlags) checkFramed(l *logFile) (report, error) {
	var r report
	seg, err := framed.NewReader(l.file, l.size, framed.Options{CheckOnly: true})
	for err == nil {
		_, err = seg.Next()
	}
	switch {
	case errors.Is(err, io.EOF):
	case errors.Is(err, framed.ErrNotSegment): // it only began like one
		r.what = "framed segment"
		r.add(true, true, "no header and no batch can be read")
		return r, nil
	default:
		return r, fmt.Errorf("%s: %w", l.name, err)
	}
	s := seg.Summary()
	r.what = fmt.Sprintf("framed segment%s, %s, %s in %s", begun(s.Header),
		plural(int(s.Records), "record"), byteCount(s.RecordBytes), pluralOf(s.Batches, "batch", "batches"))
	for _, f := range seg.Findings() {
		r.add(true, f.Kind != framed.TornTail || v.closed, "%v", f)
	}
	if more := s.Findings - len(r.notes); more > 0 {
		r.add(true, s.Damage > 0, "and %d more such places", more)
	}
	r.add(s.Lost > 0, false, "lost in all: %s", plural(int(s.Lost), "record"))
	r.add(!s.Complete, v.closed, "it was not ended: its writer is at work, or was killed")
	return r, nil
}

// begun says when a segment was begun, if its header does.
func begun(h framed.Header) string {
	if h.Created.IsZero() {
		return ""
	}
	return " begun " + h.Created.UTC().Format("2006-01-02T15:04:05Z")
}

func (v *verifyFlags) checkJournal(dir string) (report, error) {
	found, err := journal.Verify(dir)
	if err != nil {
		return report{}, err
	}
	r := report{what: fmt.Sprintf("journal of a collector, %s, %s in %s",
		lines(int(found.Records)), byteCount(found.Bytes), plural(found.Segments, "segment"))}
	for _, f := range found.Findings {
		r.add(true, v.closed && f.Kind == journal.TornTail, "%v", f)
	}
	r.damaged = r.damaged || !found.Sound()
	return r, nil
}

package main

import (
	"bufio"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/rollway/rollway/collector/journal"
	"github.com/rollway/rollway/internal/recordlog"
)

var verifyCommand = &command{
	name:    "verify",
	summary: "check log files for damage",
	args:    "FILE…",
	help: `
Reads each FILE to its end and says what it is and whether it is sound.

It counts the lines and bytes of text, which gzip or zstd may have compressed.
NUL bytes are damage: a lost block looks like that, and a file that was
truncated under its writer. With -json so is every line that is not a JSON
object in UTF-8. Blank lines and spaces before line ends are padding, and no
damage.

A last line without its end is no damage: a writer is at work, or was killed.
With -closed it is. FILE may also be the folder of a collector's journal.

The exit status is 1 if there is damage or a FILE cannot be read.

Examples:
  rollway verify /var/log/payment.log
  rollway verify -json -closed /var/log/payment.log.*.gz
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
	text, err := openLog(name)
	if err != nil {
		return report{}, err
	}
	defer text.Close()
	t := textCheck{json: v.json, maxLine: v.maxLine}
	err = t.scan(text.text)
	r := t.report(v.closed)
	if err != nil && text.unpacker == nil {
		return report{}, fmt.Errorf("%s: %w", name, err)
	}
	r.add(err != nil, true, "cannot be unpacked any further: %v", err)
	return r, nil
}

func (v *verifyFlags) checkJournal(dir string) (report, error) {
	found, err := journal.Verify(dir)
	if err != nil {
		return report{}, err
	}
	r := report{what: fmt.Sprintf("journal of a collector, %s, %s in %s",
		lines(int(found.Records)), byteCount(found.Bytes), plural(found.Segments, "segment"))}
	for _, f := range found.Findings {
		r.add(true, v.closed && f.Kind == recordlog.TornTail, "%v", f)
	}
	r.damaged = r.damaged || !found.Sound()
	return r, nil
}

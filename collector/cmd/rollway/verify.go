package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"path/filepath"

	"github.com/rollway/rollway/collector/backup"
	"github.com/rollway/rollway/collector/journal"
	"github.com/rollway/rollway/internal/disk"
	"github.com/rollway/rollway/internal/recordlog"
	"github.com/rollway/rollway/internal/slabfile"
)

var verifyCommand = &command{
	name:    "verify",
	summary: "check log files for damage",
	args:    "FILE|FOLDER…",
	needs:   "FILE",
	most:    -1,
	help: `
Reads each FILE to its end and says what it is and whether it is sound. FILE is
text, which gzip or zstd may have compressed, or any file that Rollway writes:
a backup too.
FOLDER is a collector's data folder or the journal in it, or a spool: each file
in it is listed. Nothing is locked or changed: a process may be writing. What a
collector has found in its journal stays damage, over restarts, until you look
at it and acknowledge it with -acknowledge: it is then no damage to verify, to
the collector's metrics and its log.

In text NUL bytes are damage: a lost block looks like that, and a file that was
truncated under its writer. With -json so is every line that is not a JSON
object in UTF-8. Blank lines and spaces before line ends are padding, and no
damage. A last line without an end is damage with -closed only: a writer may be
at work, or was killed.

With -o json there is an object a line for each FILE: file, what, notes, and
state, which is sound, damaged or unreadable.

The exit status is 1 if there is damage or a FILE cannot be read.

Examples:
  rollway verify /var/log/payment.log
  rollway verify -json -closed /var/log/payment.log.*.gz
  rollway verify /var/lib/rollway
`,
	setup: setupVerify,
}

type verifyFlags struct {
	json    bool
	closed  bool
	ack     bool
	maxLine int64 // bytes; 0: no limit
}

func setupVerify(flags *flag.FlagSet) action {
	v := &verifyFlags{}
	flags.BoolVar(&v.json, "json", false, "each line of text must be a JSON object in UTF-8")
	flags.BoolVar(&v.closed, "closed", false, "the files are complete: a torn end is damage too")
	flags.BoolVar(&v.ack, "acknowledge", false, "of a journal: what is found now is known, and no damage later")
	sizeFlag(flags, &v.maxLine, "max-line", "a line longer than this `SIZE` is damage (default: no limit)")
	return v.run
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

// run checks all files, even if some cannot be read.
func (v *verifyFlags) run(c *call, names []string) error {
	bad := 0
	for _, name := range names {
		r, err := v.check(name)
		if err != nil {
			c.say("rollway verify: %v", err)
			r = report{what: err.Error()}
			bad++
			if !c.json {
				continue
			}
		}
		state := "sound"
		if r.damaged {
			state = "damaged"
			bad++
		} else if err != nil {
			state = "unreadable"
		}
		text := fmt.Sprintf("%s: %s: %s\n", appendPlain(nil, name), r.what, state)
		for _, note := range r.notes {
			text += "  " + note + "\n"
		}
		if c.json {
			text = jsonLine(struct {
				File  string   `json:"file"`
				State string   `json:"state"`
				What  string   `json:"what"`
				Notes []string `json:"notes,omitempty"`
			}{name, state, r.what, r.notes})
		}
		if _, err := io.WriteString(c.stdout, text); err != nil {
			return err
		}
	}
	if bad == 0 {
		return nil
	}
	if len(names) > 1 {
		c.say("rollway verify: %d of %s not sound", bad, plural(len(names), "file"))
	}
	return errSaid
}

func (v *verifyFlags) check(name string) (r report, err error) {
	s, err := identify(name)
	switch {
	case err != nil:
	case s.journal != "":
		return v.checkJournal(s.journal)
	case s.spool != nil:
		var n, size int64
		for _, file := range s.spool {
			found, err := recordlog.Inspect(disk.Real{}, file)
			n, size = n+found.Records, size+found.Bytes
			r.add(err != nil, true, "%s: %v", filepath.Base(file), err)
			r.add(err == nil, false, "%s: %s", filepath.Base(file), describe(found))
			v.find(&r, found.Findings)
		}
		r.what = fmt.Sprintf("spool, %s, %s", lines(int(n)), byteCount(size))
	case s.kind == recordlog.SlabFile:
		return checkSlabs(name)
	case s.kind != 0:
		var found recordlog.Report
		found, err = recordlog.Inspect(disk.Real{}, name)
		r.what = describe(found)
		v.find(&r, found.Findings)
	case s.backup:
		return checkBackup(name)
	default:
		return v.checkText(name)
	}
	return r, err
}

// checkBackup reads a backup.
func checkBackup(name string) (report, error) {
	f, info, err := openRegular(name)
	if err != nil {
		return report{}, err
	}
	defer f.Close() // only read from
	found, err := backup.Read(f, info.Size(), "")
	if err != nil {
		return report{what: "backup", notes: []string{err.Error()}, damaged: true}, nil
	}
	r := report{what: describeBackup(found)}
	for _, note := range found.Findings {
		r.add(true, true, "as it was in the collector: %s", note)
	}
	return r, nil
}

func (v *verifyFlags) find(r *report, list []recordlog.Finding) {
	for _, f := range list {
		r.add(true, !f.Harmless() || v.closed && f.Kind == recordlog.TornTail, "%v", f)
	}
}

func (v *verifyFlags) checkJournal(dir string) (report, error) {
	found, err := journal.Audit(dir, journal.AuditOptions{})
	if err != nil {
		return report{}, err
	}
	r := report{what: fmt.Sprintf("journal of a collector, %s, %s in %s",
		lines(int(found.Records)), byteCount(found.Bytes), plural(len(found.List), "segment"))}
	for _, s := range found.List {
		state := "open segment"
		switch {
		case s.Packed:
			state = "packed segment"
		case s.Sealed:
			state = "sealed segment"
		}
		r.add(true, false, "%s: %s, %s", s.File, state, records(s.Records, s.First, s.End, s.Bytes))
	}
	if m, err := recordlog.Inspect(disk.Real{}, filepath.Join(dir, "MANIFEST")); err == nil && len(m.Findings) == 0 {
		r.add(true, false, "MANIFEST: %s of %s", m.Kind, plural(int(m.Records), "segment"))
	}
	for _, c := range found.Cursors {
		r.add(true, c.Error != "", "cursors/%s: %s at offset %d %s", c.Name, recordlog.JournalCursor, c.Offset, c.Error)
	}
	v.find(&r, found.Findings)
	for _, f := range found.Acknowledged {
		r.add(true, false, "acknowledged: %v", f)
	}
	if v.ack {
		if err := journal.Acknowledge(dir, &found); err != nil {
			return report{}, err
		}
		r.add(r.damaged, false, "acknowledged now; the next verify says if anything is new")
		r.damaged = false
	}
	return r, nil
}

// records says how many lines there are and which.
func records(n int64, first, end uint64, size int64) string {
	text := fmt.Sprintf("%s, %s", lines(int(n)), byteCount(size))
	if end > first {
		text += fmt.Sprintf(", offsets %d to %d", first, end-1)
	}
	return text
}

// describe says what a file of records is.
func describe(r recordlog.Report) string {
	switch r.Kind {
	case recordlog.Manifest:
		return fmt.Sprintf("%s of %s, %s", r.Kind, plural(int(r.Records), "segment"), byteCount(r.Bytes))
	case recordlog.JournalCursor, recordlog.SpoolCursor:
		return fmt.Sprintf("%s at offset %d", r.Kind, r.First)
	}
	kind := r.Kind.String()
	if r.Sealed {
		kind = "sealed " + kind
	}
	return kind + ", " + records(r.Records, r.First, r.End, r.Bytes)
}

// checkSlabs says what a slab file has to be recovered.
func checkSlabs(name string) (report, error) {
	f, err := slabfile.Open(name, slabfile.Options{ReadOnly: true})
	switch {
	case errors.Is(err, slabfile.ErrLocked):
		return report{what: "slab file", notes: []string{"its process runs, so it was not read"}}, nil
	case errors.Is(err, slabfile.ErrDamaged):
		return report{what: "slab file", notes: []string{err.Error()}, damaged: true}, nil
	case err != nil:
		return report{}, err
	}
	defer f.Close() // only read from
	var r report
	n, size := 0, 0
	for b, err := range f.Pending() {
		if err != nil {
			return report{}, err
		}
		n, size = n+bytes.Count(b.Data, []byte{'\n'}), size+len(b.Data)
		r.add(b.Problem != nil, true, "%v", b.Problem)
	}
	r.what = fmt.Sprintf("slab file, %s, %s not delivered", lines(n), byteCount(int64(size)))
	return r, nil
}

package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/rollway/rollway/collector/journal"
	"github.com/rollway/rollway/collector/query"
	"github.com/rollway/rollway/internal/recordlog"
	"github.com/rollway/rollway/internal/slabfile"
)

var catCommand = &command{
	name:    "cat",
	summary: "print log files",
	args:    "FILE|FOLDER…",
	needs:   "FILE",
	most:    -1,
	help: `
Prints the lines of each FILE: text, which gzip or zstd may have compressed, a
segment of a journal or of a spool, or what a slab file has to be recovered.
FOLDER is a collector's data folder or the journal in it, or a spool; its lines
come in the order of their offsets. Nothing is locked: a collector may run.

What cannot be read is left out and described on stderr; the exit status is then
1. A last line without an end is printed, and is no failure.

-where takes an expression as 'rollway query' does, -since and -until take a
time (2026-05-28T12:40:00Z, 2026-05-28, yesterday) or a duration before now
(90s, 1h, 7d). They match lines that are JSON objects as Rollway writes them.

On a terminal lines are formatted for people, with local times. Into a pipe or a
file they are written as stored.

Examples:
  rollway cat /var/log/payment*.log* -where 'level>=warn' -since 1h
  rollway cat /var/log/payment.log.3.gz -o csv
  rollway cat /var/lib/rollway | jq .msg
`,
	setup: setupCat,
}

type catFlags struct {
	format       formatFlags
	where        string
	since, until time.Time
}

func setupCat(flags *flag.FlagSet) action {
	f := &catFlags{}
	f.format.declare(flags, false)
	flags.StringVar(&f.where, "where", "", "only lines that `EXPRESSION` matches")
	timeFlag(flags, &f.since, "since", "only lines from this `TIME` on, or this long ago")
	timeFlag(flags, &f.until, "until", "only lines before this `TIME`, or this long ago")
	return func(c *call, args []string) error {
		matches, err := f.filter()
		if err != nil {
			return usagef("%v", err)
		}
		out := f.format.writer(c.stdout)
		p := &printer{call: c, out: out, matches: matches}
		for _, name := range args {
			if err := p.print(name); err != nil {
				return err
			}
		}
		if p.failed {
			return errSaid
		}
		return nil
	}
}

// filter returns what the flags ask of a line; nil: nothing.
func (f *catFlags) filter() (func(line []byte) bool, error) {
	var terms []string
	if f.where != "" {
		if _, err := query.Parse(f.where); err != nil {
			return nil, fmt.Errorf("-where: %w", err)
		}
		terms = append(terms, "("+f.where+")")
	}
	if !f.since.IsZero() {
		terms = append(terms, "time>="+strconv.Quote(f.since.Format(time.RFC3339Nano)))
	}
	if !f.until.IsZero() {
		terms = append(terms, "time<"+strconv.Quote(f.until.Format(time.RFC3339Nano)))
	}
	if terms == nil {
		return nil, nil
	}
	q, err := query.Parse(strings.Join(terms, " "))
	if err != nil {
		return nil, err
	}
	return q.Match, nil
}

// A printer prints files. It is used by one goroutine.
type printer struct {
	*call
	out     *lineWriter
	matches func(line []byte) bool // nil: all
	failed  bool
}

// print prints one file or folder. It returns an error of stdout only.
func (p *printer) print(name string) error {
	s, err := identify(name)
	switch {
	case err != nil:
		p.fail(err)
	case s.journal != "":
		return p.frames(s.journal, func(f func(journal.Frame) error) ([]journal.Finding, error) {
			return journal.EachFrame(s.journal, 0, f)
		})
	case s.spool != nil:
		for _, file := range s.spool {
			if filepath.Ext(file) != ".spool" {
				continue
			}
			if err := p.segment(file, recordlog.SpoolSegment); err != nil {
				return err
			}
		}
	case s.kind == recordlog.JournalSegment, s.kind == recordlog.SpoolSegment:
		return p.segment(name, s.kind)
	case s.kind == recordlog.SlabFile:
		return p.slabs(name)
	case s.kind != 0:
		p.fail(fmt.Errorf("%s is a %s and has no lines", name, s.kind))
	default:
		return p.text(name)
	}
	return nil
}

func (p *printer) segment(name string, kind recordlog.Kind) error {
	return p.frames(name, func(f func(journal.Frame) error) ([]journal.Finding, error) {
		return journal.EachFrameOf(name, kind, f)
	})
}

// frames prints the lines that each gives, and says what it has found.
func (p *printer) frames(name string, each func(func(journal.Frame) error) ([]journal.Finding, error)) error {
	var stdout error
	found, err := each(func(f journal.Frame) error {
		stdout = p.printLines(f.Lines)
		return stdout
	})
	if stdout == nil {
		stdout = p.out.flush()
	}
	if stdout == nil && err != nil {
		p.fail(fmt.Errorf("%s: %w", name, err))
	}
	for _, f := range found {
		if !f.Harmless() {
			p.fail(f)
		}
	}
	return stdout
}

// slabs prints what a slab file has to be recovered.
func (p *printer) slabs(name string) error {
	f, err := slabfile.Open(name, slabfile.Options{ReadOnly: true})
	if err != nil {
		p.fail(err)
		return nil
	}
	defer f.Close() // only read from
	for b, err := range f.Pending() {
		if err == nil {
			err = b.Problem
		}
		if err != nil {
			p.fail(fmt.Errorf("%s: %w", name, err))
		}
		if err := p.printLines(b.Data); err != nil {
			return err
		}
	}
	return p.out.flush()
}

func (p *printer) printLines(text []byte) error {
	for line := range bytes.Lines(text) {
		if err := p.line(line); err != nil {
			return err
		}
	}
	return nil
}

func (p *printer) fail(err any) {
	p.say("rollway cat: %v", err)
	p.failed = true
}

// text prints a file of text. It ends at a last line without an end: what is appended
// meanwhile begins within a line.
func (p *printer) text(name string) error {
	text, err := openLog(name)
	if err != nil {
		p.fail(err)
		return nil
	}
	defer text.Close()
	for err == nil && text.tailStart < 0 {
		var line textLine
		line, err = text.next(wholeLine)
		switch {
		case errors.Is(err, io.EOF):
		case err != nil:
			p.fail(err)
		case line.tooLong > 0:
			p.fail(fmt.Errorf("%s: line %s is left out: it is %s long", name, count(text.lines), byteCount(line.tooLong)))
		default:
			if err := p.line(line.text); err != nil {
				return err
			}
		}
	}
	if text.tailStart >= 0 {
		p.say("%s: the last line has no end", name)
	}
	return p.out.flush()
}

func (p *printer) line(line []byte) error {
	if p.matches != nil && !p.matches(bytes.TrimSuffix(line, []byte("\n"))) {
		return nil
	}
	return p.out.write(line)
}

package main

import (
	"bytes"
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"github.com/rollway/rollway/collector/query"
	"github.com/rollway/rollway/internal/framed"
)

var catCommand = &command{
	name:    "cat",
	summary: "print log files and framed segments",
	args:    "FILE…",
	help: `
Prints the records of framed segments, one a line, and the lines of text files,
packed by gzip or zstd or not. Framed segments that are named next to each other
are printed in the order in which their writer began them, whatever their names;
a record that stands in two of them, because a write was repeated, once.

What cannot be read is left out and described on stderr; the exit status is then
1. A last batch that is not complete, or a last line without its end, is no
failure: its writer is at work, or was killed. What is there of it is printed.

-where takes an expression as 'rollway query' does and prints the lines that it
matches; -since and -until take a time (2026-05-28T12:40:00Z, 2026-05-28,
yesterday) or a duration back from now (90s, 1h, 7d). All three look at lines
that are JSON objects as Rollway writes them.

On a terminal lines are shown for people, with local time; into a pipe or a file
they go as they are stored.

Examples:
  rollway cat /var/log/payment/*.seg | jq .msg
  rollway cat /var/log/payment/*.seg -where 'level>=warn' -since 1h
  rollway cat /var/log/payment.log.3.gz -text
`,
	setup: setupCat,
}

// catFlags are the flags of cat.
type catFlags struct {
	format              formatFlags
	where, since, until string
}

func setupCat(flags *flag.FlagSet) func(*call, []string) error {
	f := &catFlags{}
	f.format.declare(flags)
	flags.StringVar(&f.where, "where", "", "only lines that `EXPRESSION` matches")
	flags.StringVar(&f.since, "since", "", "only lines from this `TIME` on, or this long ago")
	flags.StringVar(&f.until, "until", "", "only lines before this `TIME`, or this long ago")
	return func(c *call, args []string) error {
		if len(args) == 0 {
			return usagef("FILE is missing")
		}
		matches, err := f.filter(time.Now())
		if err != nil {
			return usagef("%v", err)
		}
		out, err := f.format.writer(c.stdout)
		if err != nil {
			return err
		}
		p := &printer{call: c, out: out, matches: matches, had: map[uint64]int{}}
		return p.run(args)
	}
}

// filter returns what the flags ask of a line; nil: nothing.
func (f *catFlags) filter(now time.Time) (func(line []byte) bool, error) {
	expr := f.where
	if expr != "" {
		if _, err := query.Parse(expr); err != nil {
			return nil, fmt.Errorf("-where: %w", err)
		}
		expr = "(" + expr + ")"
	}
	for _, bound := range []struct{ name, op, value string }{{"since", ">=", f.since}, {"until", "<", f.until}} {
		if bound.value == "" {
			continue
		}
		t, err := query.ParseTime(bound.value, now)
		if err != nil {
			return nil, fmt.Errorf("-%s: %w", bound.name, err)
		}
		expr += " time" + bound.op + strconv.Quote(t.Format(time.RFC3339Nano))
	}
	if expr == "" {
		return nil, nil
	}
	q, err := query.Parse(expr)
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
	had     map[uint64]int         // by batch: up to which offset in it records were printed without a gap
	order   []uint64               // of had, oldest first
	failed  bool
}

// maxHad is how many batches a printer remembers. A repeated batch is near: it
// was being written when the disk failed.
const maxHad = 4096

// run prints all files. One that cannot be read does not keep it from the
// others.
func (p *printer) run(names []string) error {
	var segments []*segment // that come next to each other
	defer func() { closeAll(segments) }()
	for _, name := range names {
		l, err := openLog(name)
		switch {
		case err != nil:
			p.fail(err)
		case l.kind == kindFramed:
			if s := p.openSegment(l); s != nil {
				segments = append(segments, s)
			}
			continue
		}
		err = p.printSegments(segments)
		segments = nil
		if l != nil && err == nil {
			err = p.printText(l)
		}
		if l != nil {
			l.close()
		}
		if err != nil {
			return err
		}
	}
	err := p.printSegments(segments)
	segments = nil
	if err == nil && p.failed {
		err = errSaid
	}
	return err
}

// fail says what could not be printed.
func (p *printer) fail(err error) {
	p.say("rollway cat: %v", err)
	p.failed = true
}

// segment is an open framed segment.
type segment struct {
	name   string
	header framed.Header
	close  func()
	read   func() (*framed.Reader, error)
}

// openSegment returns nil for one that cannot be read.
func (p *printer) openSegment(l *logFile) *segment {
	open := func() (*framed.Reader, error) { return framed.NewReader(l.file, l.size, framed.Options{}) }
	r, err := open()
	if err != nil {
		p.fail(fmt.Errorf("%s: %w", l.name, err))
		l.close()
		return nil
	}
	return &segment{name: l.name, header: r.Summary().Header, close: l.close, read: open}
}

func closeAll(segments []*segment) {
	for _, s := range segments {
		s.close()
	}
}

// printSegments prints segments in the order in which they were begun, and
// closes them.
func (p *printer) printSegments(segments []*segment) error {
	defer closeAll(segments)
	slices.SortStableFunc(segments, func(a, b *segment) int {
		return cmp.Or(cmp.Compare(a.header.Generation, b.header.Generation), a.header.Created.Compare(b.header.Created))
	})
	for _, s := range segments {
		if err := p.printSegment(s); err != nil {
			return err
		}
	}
	return nil
}

// printSegment returns an error of stdout only.
func (p *printer) printSegment(s *segment) error {
	r, err := s.read() // anew: its memory is for one at a time
	for err == nil {
		var rec framed.Record
		if rec, err = r.Next(); err == nil && p.isNew(rec) {
			if err := p.print(rec.Data); err != nil {
				return err
			}
		}
	}
	if err := p.out.flush(); err != nil {
		return err
	}
	if r != nil {
		for _, f := range r.Findings() {
			p.say("%s: %v", s.name, f)
		}
		p.failed = p.failed || r.Summary().Damage > 0
	}
	if !errors.Is(err, io.EOF) {
		p.fail(fmt.Errorf("%s: %w", s.name, err))
	}
	return nil
}

// isNew reports whether rec was not printed from another segment. Behind a gap
// in a batch it says so of what was, rather than leave out what was not.
func (p *printer) isNew(rec framed.Record) bool {
	next, ok := p.had[rec.Batch]
	if !ok {
		next = framed.BatchHeaderSize
		if p.order = append(p.order, rec.Batch); len(p.order) > maxHad {
			delete(p.had, p.order[0])
			p.order = p.order[1:]
		}
	}
	isNew := rec.Offset >= next
	if rec.Offset == next {
		next += framed.RecordSize(len(rec.Data))
	}
	p.had[rec.Batch] = next
	return isNew
}

// printText returns an error of stdout only. It ends at a last line without an
// end: what is appended meanwhile begins within a line.
func (p *printer) printText(l *logFile) error {
	for {
		line, err := l.text.next(wholeLine)
		if err == nil && line.tooLong > 0 {
			p.fail(fmt.Errorf("%s: line %s is left out: it is %s long", l.name, count(l.text.lines), byteCount(line.tooLong)))
		} else if err == nil {
			if err := p.print(line.text); err != nil {
				return err
			}
		}
		if err == nil && l.text.tailStart < 0 {
			continue
		}
		if err := p.out.flush(); err != nil {
			return err
		}
		if err != nil && !errors.Is(err, io.EOF) {
			p.fail(err)
		} else if l.text.tailStart >= 0 {
			p.say("%s: the last line has no end", l.name)
		}
		return nil
	}
}

// print prints one line if it matches.
func (p *printer) print(line []byte) error {
	line = bytes.TrimSuffix(line, []byte("\n"))
	if p.matches != nil && !p.matches(line) {
		return nil
	}
	return p.out.write(line)
}

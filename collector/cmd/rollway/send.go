package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/rollway/rollway/collector/config"
	"github.com/rollway/rollway/internal/disk"
)

var sendCommand = &command{
	name:    "send",
	summary: "send log files to a collector",
	args:    "[FILE…|-]",
	most:    -1,
	help: `
Sends files, or standard input, to a collector, one event per line. gzip and
zstd are detected. A line that is a JSON object is sent unchanged. Any other
line becomes {"msg":LINE,"attrs":{"file":NAME}}; the collector reads its time
and level. Lines that only continue it, as those of a stack trace, belong to its
event; -apart sends each by itself. Bytes that are not valid UTF-8 become
U+FFFD and are counted. Empty lines are skipped.

send remembers what each collector acknowledged of each file. A second run
continues there, even if the file was renamed: after a rotation name both files.
It starts over if the file was replaced or truncated, or if the collector has a
new journal. Standard input cannot be resumed. A last line without an end is
left for the next run; -eof sends it, and so does a compressed file or standard
input. If an answer is lost, its batch (at most 1,000 lines) is sent again:
lines arrive at least once. Two runs never send one file to one collector at the
same time.

Ctrl-C ends after the current batch. The exit status is 1 if the collector did
not accept a line, or if the position could not be saved.

Examples:
  rollway send /var/log/syslog
  rollway send -service payment -attr region=eu-west old/*.log.gz
  journalctl -o cat -f | rollway send -service host
`,
	setup: setupSend,
}

type sendOptions struct {
	service  string
	attrs    attrList
	stateDir string
	maxLine  config.Size
	retry    time.Duration
	quiet    bool
	dryRun   bool
	again    bool
	eof      bool
	apart    bool
}

func (o *sendOptions) declare(flags *flag.FlagSet) {
	flags.DurationVar(&o.retry, "retry", 30*time.Second, "retry for `TIME` while the collector cannot be reached or is full")
	flags.BoolVar(&o.quiet, "quiet", false, "print errors only")
	flags.BoolVar(&o.dryRun, "dry-run", false, "read and count, and send nothing")
}

func setupSend(flags *flag.FlagSet) action {
	o := sendOptions{maxLine: config.MiB}
	o.declare(flags)
	flags.StringVar(&o.service, "service", "", "the `NAME` of the service, for lines without one")
	flags.Var(&o.attrs, "attr", "an attribute `KEY=VALUE` for every line; may be repeated")
	flags.StringVar(&o.stateDir, "state", "", "remember positions in `DIR` (default: rollway/send in the user's cache folder)")
	sizeFlag(flags, &o.maxLine, "max-line", "count but do not send lines longer than `SIZE` (default 1MiB)")
	flags.BoolVar(&o.again, "again", false, "send files from their start, even if they were sent before")
	flags.BoolVar(&o.eof, "eof", false, "send a last line without an end too: the files are complete")
	flags.BoolVar(&o.apart, "apart", false, "send lines that only continue the one before as events of their own")
	return asking(flags, func(ctx context.Context, c *call, cl *client, args []string) error {
		if len(args) == 0 {
			args = []string{"-"}
		}
		if o.maxLine < 1 {
			return usagef("-max-line must be at least 1")
		}
		s := &sender{call: c, options: o, client: cl}
		return s.run(ctx, args)
	})
}

// A sender is one run of send. It is not safe for concurrent use.
type sender struct {
	call    *call
	options sendOptions
	client  *client

	total   tally
	started time.Time
	line    statusLine

	asked   bool   // journal was asked for
	journal string // the collector's; empty: unknown

	resume string // how to resume the last input after an interruption; empty: impossible
}

// A tally counts lines: read = accepted + refused + tooLong + empty + joined + unsent.
type tally struct {
	read     int // lines read by this run
	accepted int // by the collector
	refused  int // by the collector
	tooLong  int // longer than -max-line
	empty    int
	joined   int   // to the line before, of whose event they are a part
	repaired int   // lines with invalid UTF-8, replaced
	left     int64 // bytes of last lines without an end, not sent
	bytes    int64
	reasons  []reason // of the first lines that were not accepted
}

type reason struct {
	lines int
	text  string
}

const maxReasons = 5

func (t *tally) reason(lines int, format string, args ...any) {
	if len(t.reasons) < maxReasons {
		t.reasons = append(t.reasons, reason{lines, fmt.Sprintf(format, args...)})
	}
}

func (t *tally) add(u tally) {
	t.read += u.read
	t.accepted += u.accepted
	t.refused += u.refused
	t.tooLong += u.tooLong
	t.empty += u.empty
	t.joined += u.joined
	t.repaired += u.repaired
	t.left += u.left
	t.bytes += u.bytes
	for _, r := range u.reasons {
		t.reason(r.lines, "%s", r.text)
	}
}

func (t *tally) notAccepted() int { return t.refused + t.tooLong }

// unsent returns the number of lines that a run which ended early has not sent.
func (t *tally) unsent() int { return t.read - t.accepted - t.notAccepted() - t.empty - t.joined }

func (s *sender) run(ctx context.Context, names []string) error {
	s.started = time.Now()
	s.line = statusLine{w: s.call.stderr.file, on: s.call.stderr.terminal && !s.options.quiet && !s.call.json, width: s.call.stderr.width}
	var unread error
	for _, name := range names {
		err := s.file(ctx, name)
		if err != nil && !errors.As(err, new(*inputError)) {
			return s.summary(err, len(names))
		}
		unread = errors.Join(unread, err) // go on with the other files
	}
	return s.summary(unread, len(names))
}

type inputError struct{ error }

func (e *inputError) Unwrap() error { return e.error }

// summary prints the result and returns the error for the exit status.
func (s *sender) summary(failed error, files int) error {
	t := &s.total
	switch took := time.Since(s.started); {
	case s.call.json:
		if err := printJSON(s.call.stdout, s.result(took)); err != nil {
			return err
		}
	case files > 1 && !s.options.quiet:
		s.call.say("together: %s", s.describe(*t, took))
	}
	s.sayReasons()
	var lost error
	if n := t.notAccepted(); n > 0 {
		lost = fmt.Errorf("%s not accepted", lines(n))
	}
	switch {
	case errors.Is(failed, context.Canceled):
		return fmt.Errorf("interrupted after %s%s", lines(t.accepted+t.notAccepted()), s.resume)
	case failed != nil:
		if n := t.unsent(); n > 0 && !s.options.dryRun {
			failed = fmt.Errorf("%w; %s read but not accepted, and nothing after them was sent", failed, lines(n))
		}
		if lost != nil {
			return fmt.Errorf("%w (and %w)", failed, lost)
		}
		return failed
	}
	return lost
}

// result is what -o json prints of a run.
func (s *sender) result(took time.Duration) map[string]any {
	t, reasons := &s.total, []string{}
	for _, r := range t.reasons {
		reasons = append(reasons, r.text)
	}
	return map[string]any{
		"read": t.read, "accepted": t.accepted, "not_accepted": t.notAccepted(), "refused": t.refused, "too_long": t.tooLong, "empty": t.empty, "joined": t.joined,
		"repaired": t.repaired, "left_bytes": t.left, "bytes": t.bytes, "unsent": t.unsent(), "dry_run": s.options.dryRun, "reasons": reasons, "took_ns": took,
	}
}

func (s *sender) sayReasons() {
	more := s.total.notAccepted()
	for _, r := range s.total.reasons {
		s.call.say("not accepted: %s", r.text)
		more -= r.lines
	}
	if more > 0 {
		s.call.say("not accepted: %s more", count(more))
	}
}

func (s *sender) describe(t tally, took time.Duration) string {
	var b strings.Builder
	if s.options.dryRun {
		fmt.Fprintf(&b, "would send %s (%s)", lines(t.read-t.empty-t.tooLong-t.joined), byteCount(t.bytes))
	} else {
		fmt.Fprintf(&b, "sent %s (%s) in %s", lines(t.accepted), byteCount(t.bytes), shortTime(took))
		if took >= 100*time.Millisecond {
			fmt.Fprintf(&b, ", %s lines/s", count(int(float64(t.accepted)/took.Seconds())))
		}
	}
	if t.joined > 0 {
		fmt.Fprintf(&b, "; %s joined to those before", lines(t.joined))
	}
	if t.empty > 0 {
		fmt.Fprintf(&b, "; %s skipped", plural(t.empty, "empty line"))
	}
	if t.repaired > 0 {
		fmt.Fprintf(&b, "; invalid UTF-8 replaced in %s", lines(t.repaired))
	}
	if t.left > 0 {
		fmt.Fprintf(&b, "; %s without a line end not sent (use -eof)", byteCount(t.left))
	}
	if n := t.notAccepted(); n > 0 {
		fmt.Fprintf(&b, "; %s NOT ACCEPTED", count(n))
	}
	return b.String()
}

// file sends one file or, for "-", standard input.
func (s *sender) file(ctx context.Context, name string) error {
	shown := string(appendPlain(nil, filepath.Base(name)))
	if name == "-" {
		shown = "standard input"
		if term.IsTerminal(int(s.call.stdin.Fd())) && !s.options.quiet {
			s.call.say("reading lines from the terminal; end with Ctrl-D")
		}
	}
	in, st, err := s.open(ctx, name)
	if err != nil || in == nil {
		return err
	}
	defer in.Close()
	began, t := time.Now(), tally{}
	err = s.copy(ctx, in, st, &t, shown)
	t.left = in.left
	s.resume = ""
	if st != nil && st.failed == nil {
		s.resume = "; the same command continues there"
		if s.options.again {
			s.resume = "; the same command without -again continues there"
		}
	}
	s.line.clear()
	s.total.add(t)
	if !s.options.quiet && !s.call.json {
		s.call.say("%s: %s", shown, s.describe(t, time.Since(began)))
	}
	return err
}

// open opens name at the position that was acknowledged, and says so. The input is nil
// if there is nothing new to send.
func (s *sender) open(ctx context.Context, name string) (in *input, st *position, err error) {
	in, err = openInput(ctx, name, s.call.stdin)
	switch {
	case name == "-":
		return in, nil, err
	case ctx.Err() != nil:
		return nil, nil, context.Canceled
	case err != nil:
		return nil, nil, &inputError{err}
	}
	in.whole = in.whole || s.options.eof
	if s.options.dryRun {
		return in, nil, nil
	}
	st, more, err := s.resumeAt(ctx, in)
	if err != nil || !more {
		in.Close()
		return nil, nil, err
	}
	return in, st, nil
}

// resumeAt goes to the position of in that was acknowledged, if there is one, and
// reports whether there is more. The position is nil if this run cannot be resumed.
func (s *sender) resumeAt(ctx context.Context, in *input) (st *position, more bool, err error) {
	journal, err := s.journalID(ctx)
	if err != nil {
		return nil, false, err
	}
	base := filepath.Base(in.name)
	st, err = loadPosition(s.options.stateDir, s.client.base, journal, in)
	switch locked := errors.Is(err, disk.ErrLocked); {
	case err != nil && (in.stream || s.options.again && !locked):
		s.call.say("%s: %v; this run cannot be resumed", base, err)
		return nil, true, nil
	case locked:
		return nil, false, &inputError{fmt.Errorf("%s: another rollway send is sending it to %s", base, s.client.base)}
	case err != nil:
		return nil, false, &inputError{fmt.Errorf("%s: %w; nothing was sent: name a folder for positions with -state, or send it without one with -again", base, err)}
	}
	if st.restarted != "" {
		s.call.say("%s: %s: sending it from its start", base, st.restarted)
	}
	if st.rest != "" {
		s.call.say("%s: the previous file is now %s and has lines that were not sent: send it too", base, appendPlain(nil, st.rest))
	}
	if s.options.again {
		st.reset()
	}
	if st.Lines == 0 {
		return st, true, nil
	}
	if more, err = in.skipTo(st); err != nil {
		return nil, false, &inputError{fmt.Errorf("%s: go to line %d: %w", base, st.Lines+1, err)}
	}
	switch {
	case s.options.quiet:
	case !more:
		s.call.say("%s: nothing new after line %s; -again sends it once more", base, count(st.Lines))
	case in.lines < st.Lines:
		s.call.say("%s: continuing at line %s, which had no end when it was sent and has grown", base, count(in.lines+1))
	default:
		s.call.say("%s: continuing at line %s", base, count(in.lines+1))
	}
	return st, more, nil
}

// copy sends the rest of in, batch by batch, and saves the position after each batch
// that the collector acknowledged.
func (s *sender) copy(ctx context.Context, in *input, st *position, t *tally, shown string) error {
	enc := encoder{service: s.options.service, attrs: s.options.attrs, apart: s.options.apart}
	if !in.stream {
		enc.file = filepath.Base(in.name)
	}
	b := &batch{}
	for {
		err := in.fill(b, &enc, int(s.options.maxLine), t, shown)
		// Send what was read before an error.
		if len(b.ends) > 0 && !s.options.dryRun {
			if err := s.post(ctx, b, 0, len(b.ends), t, shown); err != nil {
				return err
			}
		}
		t.bytes += b.read
		s.save(st, in)
		switch {
		case ctx.Err() != nil && !errors.Is(err, io.EOF):
			return context.Canceled
		case errors.Is(err, io.EOF) && st != nil && st.failed != nil:
			return &inputError{fmt.Errorf("%s was sent, but %w: another run would send it again", shown, st.failed)}
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return &inputError{err}
		}
		s.line.show(func() string { return s.progress(in, t, shown) })
	}
}

func (s *sender) save(st *position, in *input) {
	if st == nil {
		return
	}
	st.advance(in)
	err := st.save()
	if err != nil && st.failed == nil {
		s.line.clear()
		s.call.say("%v; this run cannot be resumed", err)
	}
	st.failed = err
}

// progress formats the status line: position, rate, time left.
func (s *sender) progress(in *input, t *tally, shown string) string {
	took := time.Since(in.opened)
	rate := count(int(float64(t.read) / max(took.Seconds(), 0.001)))
	done, size := in.raw.n, in.size
	if in.stream || size <= 0 {
		return fmt.Sprintf("%s  %s  %s lines  %s lines/s", shown, byteCount(done), count(t.read), rate)
	}
	share := min(float64(done)/float64(size), 1)
	left := "?"
	if moved := done - in.rawStart; moved > 0 {
		left = shortTime(time.Duration(float64(took) * float64(size-done) / float64(moved)).Round(100 * time.Millisecond))
	}
	const width = 20
	filled := int(share * width)
	return fmt.Sprintf("%s  [%s%s] %3.0f%%  %s of %s  %s lines/s  %s left", shown,
		strings.Repeat("#", filled), strings.Repeat(".", width-filled), share*100, byteCount(done), byteCount(size), rate, left)
}

type attrList []struct{ key, value string }

func (l *attrList) String() string { return "" }

func (l *attrList) Set(s string) error {
	key, value, ok := strings.Cut(s, "=")
	if !ok || key == "" {
		return fmt.Errorf("%q is not KEY=VALUE", s)
	}
	*l = append(*l, struct{ key, value string }{key, value})
	return nil
}

// openRegular opens a file for reading. It refuses folders with a clear error.
func openRegular(name string) (*os.File, os.FileInfo, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	if err == nil && info.IsDir() {
		err = fmt.Errorf("%s is a folder; name the files in it", name)
	}
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, info, nil
}

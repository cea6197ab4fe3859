package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/rollway/rollway/file"
	"github.com/rollway/rollway/internal/backoff"
	"github.com/rollway/rollway/internal/disk"
	"github.com/rollway/rollway/internal/recordlog"
	"github.com/rollway/rollway/internal/slabfile"
	"github.com/rollway/rollway/internal/spool"
	"github.com/rollway/rollway/line"
	"github.com/rollway/rollway/remote"
)

var recoverCommand = &command{
	name:    "recover",
	summary: "deliver what a killed process had not written",
	args:    "FILE|FOLDER -to DEST",
	needs:   "FILE",
	most:    1,
	help: `
FILE is the Persist file of a slab.Writer. It has what its process had accepted
and not yet written when it ended, by SIGKILL, the OOM killer, a panic or
os.Exit. The process delivers that when it starts again; recover is for when it
will not. It refuses a FILE whose owner lives, and one that has lost its header
or its end, which the process itself can take.

FOLDER is the spool of a remote.Writer with Spill. The lines in it that were not
delivered go to DEST, and are settled when it has them. A journal needs no
recovery: its collector repairs it when it starts.

DEST is a file, "-" for standard output, or a URL as remote.Open takes it. Lines
that the file DEST or a rotated part of it has already are not written again.
Elsewhere the lines of the interrupted write may arrive twice. FILE is emptied
when all is delivered; until then a second run continues.

The exit status is 1 if a line was not delivered or FILE is damaged, which is
described. A copy of a damaged FILE is kept as FILE.bad.

Examples:
  rollway recover /dev/shm/payment.slabs -to /var/log/payment.log
  rollway recover /dev/shm/payment.slabs -to http://127.0.0.1:4318/api/logs
  rollway recover /dev/shm/payment.slabs -dry-run
  rollway recover /var/spool/payment -to - | less
`,
	setup: setupRecover,
}

type recovery struct {
	*call
	path   string // FILE
	to     string // DEST
	dryRun bool
	retry  time.Duration

	found map[string]any // for -o json
}

func setupRecover(flags *flag.FlagSet) action {
	r := &recovery{}
	flags.StringVar(&r.to, "to", "", "`DEST` where the lines go: a file, - or a URL")
	flags.BoolVar(&r.dryRun, "dry-run", false, "list what FILE holds; write nothing, change nothing")
	flags.DurationVar(&r.retry, "retry", 30*time.Second, "how long to try again when DEST fails, a `TIME` such as 5m")
	return func(c *call, args []string) error {
		r.call = c
		switch {
		case r.to == "" && !r.dryRun:
			return usagef("-to DEST is missing")
		case r.retry < 0:
			return usagef("-retry is %v, give 0 or more", r.retry)
		}
		r.path = args[0]
		return r.run()
	}
}

// run recovers and, with -o json, says what it has found and done, unless standard output is
// DEST.
func (r *recovery) run() error {
	r.found = map[string]any{"file": r.path}
	err := r.recover()
	if r.json && r.to != "-" {
		err = errors.Join(err, printJSON(r.stdout, r.found))
	}
	return err
}

func (r *recovery) recover() error {
	if s, err := identify(r.path); err == nil {
		switch {
		case s.spool != nil:
			return r.spool(s.spool)
		case s.journal != "" || s.kind == recordlog.JournalSegment:
			return fmt.Errorf("%s is of a collector's journal, which the collector repairs when it starts; 'rollway cat' prints its lines", r.path)
		case s.kind != 0 && s.kind != recordlog.SlabFile:
			return fmt.Errorf("%s is a %s: name its folder", r.path, s.kind)
		}
	}
	f, err := slabfile.Open(r.path, slabfile.Options{ReadOnly: r.dryRun})
	if err != nil {
		return owned(err)
	}
	err = r.slabs(f)
	return errors.Join(err, f.Close())
}

func owned(err error) error {
	if errors.Is(err, slabfile.ErrLocked) || errors.Is(err, disk.ErrLocked) {
		return fmt.Errorf("%w: its owner lives, and delivers the lines itself", err)
	}
	return err
}

// slabs lists what f has and delivers it.
func (r *recovery) slabs(f *slabfile.File) error {
	batches, sound, err := r.list(f)
	switch {
	case err != nil:
		return err
	case batches == 0:
		r.say("%s: nothing to recover", r.path)
		return nil
	case r.dryRun && !sound:
		return errSaid
	case r.dryRun:
		return nil
	}
	dst, err := r.open()
	if err != nil {
		return err
	}
	if !sound {
		var kept string
		if kept, err = f.Copy(); err == nil {
			r.say("%s: it is damaged, and a copy of it is kept as %s", r.path, kept)
		}
	}
	if err == nil {
		err = r.deliver(f, dst)
	}
	return errors.Join(err, dst.close())
}

// list prints what f has: a summary, and with -dry-run each batch.
func (r *recovery) list(f *slabfile.File) (batches int, sound bool, err error) {
	var table bytes.Buffer
	var total, size int
	sound = true
	var listed []map[string]any
	for b, err := range f.Pending() {
		if err != nil {
			return batches, false, err
		}
		n := bytes.Count(b.Data, []byte{'\n'})
		batches, total, size = batches+1, total+n, size+len(b.Data)
		fmt.Fprintf(&table, "batch %d: %s, %s", b.Seq, lines(n), byteCount(int64(len(b.Data))))
		item := map[string]any{"seq": b.Seq, "lines": n, "bytes": len(b.Data)}
		listed = append(listed, item)
		if b.HasMark {
			fmt.Fprintf(&table, ", being written at offset %d of inode %d", b.Mark.Offset, b.Mark.Inode)
		}
		table.WriteByte('\n')
		if b.Problem != nil {
			sound = false
			item["problem"] = b.Problem.Error()
			fmt.Fprintf(&table, "  %v\n", b.Problem)
		}
	}
	if batches > 0 {
		r.say("%s: %s, %s in %s, left by %s", r.path, lines(total), byteCount(int64(size)),
			strings.Replace(plural(batches, "batch"), "batchs", "batches", 1), appendPlain(nil, f.Owner().String()))
	}
	r.found["lines"], r.found["bytes"], r.found["batches"], r.found["sound"] = total, size, listed, sound
	if r.dryRun && !r.json {
		_, err = r.stdout.Write(table.Bytes())
	}
	return batches, sound, err
}

// spool delivers the lines of a spool with these files.
func (r *recovery) spool(files []string) error {
	if r.dryRun {
		return r.listSpool(files)
	}
	s, err := spool.Open(r.path, spool.Options{})
	if err != nil {
		return owned(err)
	}
	dst, err := r.open()
	if err != nil {
		return errors.Join(err, s.Close())
	}
	err = r.drain(s, dst)
	for _, f := range s.Findings() {
		r.say("%s: %v", r.path, f)
	}
	st := s.Stats()
	r.found["lines_written"], r.found["lines_left_out"] = st.Acked, st.Dropped.Total()
	r.say("%s: %s written to %s", r.path, lines(int(st.Acked)), r.to)
	if n := st.Dropped.Total(); n > 0 {
		r.say("%s: %s left out because of the damage", r.path, lines(int(n)))
		err = errors.Join(err, errSaid)
	}
	return errors.Join(err, s.Close(), dst.close())
}

// listSpool says what a spool holds. It changes nothing.
func (r *recovery) listSpool(files []string) error {
	first, end, sound := uint64(0), uint64(0), true
	for _, name := range files {
		found, err := recordlog.Inspect(disk.Real{}, name)
		if err != nil {
			return err
		}
		for _, f := range found.Findings {
			r.say("%s: %v", r.path, f)
			sound = sound && f.Harmless()
		}
		if found.Kind == recordlog.SpoolCursor {
			first = found.First
		} else {
			end = max(end, found.End)
		}
	}
	r.found["lines"], r.found["sound"] = end-min(first, end), sound
	r.say("%s: %s not delivered", r.path, lines(int(end-min(first, end))))
	if !sound {
		return errSaid
	}
	return nil
}

// drain writes the lines of s to dst.
func (r *recovery) drain(s *spool.Spool, dst *recoverTo) error {
	ctx, stop := interruptible()
	defer stop()
	for {
		var b *spool.Batch
		err := r.try(ctx, dst, func() (err error) {
			if b == nil || len(b.Data) == 0 {
				if b, err = s.Next(1 << 20); b == nil {
					return err
				}
			}
			if _, err = dst.Write(b.Data); err == nil && dst.sync != nil {
				err = dst.sync()
			}
			if err == nil {
				err = s.Ack(b, len(b.Data))
			}
			return err
		})
		if err != nil || b == nil {
			return err
		}
	}
}

// try calls f until it succeeds, for as long as -retry says.
func (r *recovery) try(ctx context.Context, dst *recoverTo, f func() error) error {
	err := retry(ctx, r.retry, f, func(err error) (time.Duration, bool) {
		return backoff.Asked(err), !dst.final && !errors.Is(err, errRefused)
	})
	if err != nil {
		return fmt.Errorf("%w; %s keeps what was not delivered", err, r.path)
	}
	return nil
}

// deliver writes everything to dst and then empties f.
func (r *recovery) deliver(f *slabfile.File, dst *recoverTo) error {
	ctx, stop := interruptible()
	defer stop()
	var sum slabfile.Result
	err := r.try(ctx, dst, func() error {
		result, err := slabfile.Recover(f, dst.Writer, dst.sync)
		sum.Lines += result.Lines
		sum.Bytes += result.Bytes
		sum.HeldLines += result.HeldLines
		sum.Held += result.Held
		sum.CutLines += result.CutLines
		sum.Cut += result.Cut
		sum.Problems = append(sum.Problems, result.Problems...)
		return err
	})
	r.report(sum)
	if err != nil {
		return err
	}
	if err := f.Empty(); err != nil {
		return fmt.Errorf("all is delivered, but %w", err)
	}
	if len(sum.Problems) > 0 {
		r.say("rollway recover: what could be read is delivered, and %s is emptied", r.path)
		return errSaid
	}
	return nil
}

func (r *recovery) report(sum slabfile.Result) {
	r.found["lines_written"], r.found["lines_there_before"], r.found["lines_left_out"] = sum.Lines, sum.HeldLines, sum.CutLines
	for _, p := range sum.Problems {
		r.say("%s: %v", r.path, p)
	}
	if sum.Cut > 0 {
		r.say("%s: %s, %s left out because of the damage", r.path, lines(int(sum.CutLines)), byteCount(int64(sum.Cut)))
	}
	if sum.Lines == 0 && sum.HeldLines == 0 {
		return
	}
	text := fmt.Sprintf("%s: %s, %s written to %s", r.path, lines(int(sum.Lines)), byteCount(int64(sum.Bytes)), r.to)
	if sum.HeldLines > 0 {
		text += fmt.Sprintf("; %s, %s had been there", lines(int(sum.HeldLines)), byteCount(int64(sum.Held)))
	}
	r.say("%s", text)
}

// recoverTo is the destination of recover.
type recoverTo struct {
	io.Writer
	sync  func() error // nil: what was written is there
	close func() error
	final bool // an error will not pass
}

func (r *recovery) open() (*recoverTo, error) {
	switch {
	case r.to == "-":
		return &recoverTo{Writer: r.stdout, close: func() error { return nil }, final: true}, nil
	case strings.Contains(r.to, "://"):
		w, err := remote.Open(r.to, remote.Options{OnError: func(err error) { r.say("%v", err) }})
		if err != nil {
			return nil, err
		}
		return &recoverTo{Writer: w, sync: func() error { return confirm(w) }, close: w.Close}, nil
	}
	from, _ := os.Stat(r.path)
	if to, err := os.Stat(r.to); err == nil && os.SameFile(from, to) {
		return nil, usagef("FILE and DEST are the same file")
	}
	w, err := file.Open(r.to, file.Options{OnError: func(err error) { r.say("%v", err) }})
	if err != nil {
		return nil, err
	}
	return &recoverTo{Writer: w, sync: w.Sync, close: w.Close}, nil
}

// errRefused ends a recovery to a peer that does not want some of the lines:
// it would not want them later either.
var errRefused = errors.New("lines refused by DEST")

// confirm returns nil when w's peer has every line that was written.
func confirm(w *remote.Writer) error {
	err := w.Sync()
	if err != nil && !errors.Is(err, line.ErrLost) {
		return err
	}
	if n := w.Stats().Dropped.Total(); n > 0 {
		return fmt.Errorf("%s, deliver to a file instead: %w", lines(int(n)), errRefused)
	}
	return nil
}

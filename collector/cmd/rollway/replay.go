package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/rollway/rollway/collector"
	"github.com/rollway/rollway/collector/config"
	"github.com/rollway/rollway/collector/deadletter"
	"github.com/rollway/rollway/collector/reread"
	"github.com/rollway/rollway/internal/disk"
)

var replayCommand = &command{
	name:    "replay",
	summary: "send events that a collector has rejected again",
	args:    "[FILE|FOLDER…]",
	most:    -1,
	help: `
Sends rejected events again, for example after a limit was raised: those that
the collector has kept, or those in FILEs and FOLDERs, such as the data folder
of another one. An event is sent as it arrived, decoded as its protocol
requires. Anything else, such as a broken line or an event that was kept in
part, becomes {"msg":TEXT,"attrs":{"rejected":REASON}}. Events that are alike
are one dead letter, which is sent once.

Each is sent with its id as idempotency key, so that a second run stores nothing
twice, for as long as the collector remembers keys (journal.key_age). With -mark
a dead letter that was stored is marked for good: only -again sends it once
more. -dry-run prints the lines that would be sent.

The collector stores the events under the token in ROLLWAY_TOKEN, with its
tenant and rate limits, whatever token sent them first. The token needs the
rights to read and write, and gets the dead letters of its tenant only. Of FILEs
use -tenant together with a token of that tenant.

-since and -until take a time (2026-05-28T12:40:00Z, 2026-05-28, yesterday) or a
duration before now (90s, 1h, 7d). The collector keeps what it rejects again.

Examples:
  rollway replay -dry-run -since 1h
  rollway replay -mark -reason too_large
  rollway replay /var/lib/rollway -addr https://logs.example:4318 -id 01JD3MZ6W0Q4Y6X8V9T2B5C7DE
`,
	setup: setupReplay,
}

type replayOptions struct {
	filter      deadletter.Filter
	mark, again bool
}

func setupReplay(flags *flag.FlagSet) action {
	var o replayOptions
	send := sendOptions{maxLine: 64 * config.MiB}
	flags.StringVar(&o.filter.Reason, "reason", "", "only events rejected for `REASON`, such as too_large")
	flags.StringVar(&o.filter.Receiver, "receiver", "", "only events that came to `RECEIVER`, such as /v1/logs")
	flags.Func("tenant", "only events of `TENANT`; empty: only events without one", func(s string) error {
		o.filter.Tenant = &s
		return nil
	})
	for name, to := range map[string]*time.Time{"since": &o.filter.Since, "until": &o.filter.Until} {
		timeFlag(flags, to, name, "only events rejected "+name+" this `TIME`, or this long ago")
	}
	flags.StringVar(&o.filter.ID, "id", "", "only the dead letter with this `ID`")
	flags.StringVar(&o.filter.Text, "text", "", "only events with `TEXT` in them or in what was wrong")
	flags.BoolVar(&o.mark, "mark", false, "mark what was stored, so that it is not sent again")
	flags.BoolVar(&o.again, "again", false, "also send what is marked")
	send.declare(flags)
	return asking(flags, func(ctx context.Context, c *call, cl *client, args []string) error {
		r := &replayer{sender: sender{call: c, options: send, client: cl}, options: o, same: map[string]int{}}
		return r.run(ctx, args)
	})
}

func (r *replayer) run(ctx context.Context, names []string) (failed error) {
	if len(names) == 0 {
		failed = r.collector(ctx)
	}
	for _, name := range names {
		err := r.files(ctx, name)
		failed = errors.Join(failed, err)
		if err != nil && !errors.As(err, new(*inputError)) {
			break // other files would fail as well
		}
	}
	if r.call.json && !r.sender.options.dryRun {
		r.sayReasons()
		failed = errors.Join(failed, printJSON(r.call.stdout, map[string]int{
			"read": r.read, "chosen": r.chosen, "sent_as_text": r.texts, "stored": r.stored, "stored_before": r.before,
			"refused": r.total.refused, "marked": r.marked, "without_labels": r.bare, "withheld": r.withheld,
		}))
	} else {
		r.say()
	}
	if n := r.total.refused; n > 0 {
		failed = errors.Join(failed, fmt.Errorf("%s not accepted", plural(n, "event")))
	}
	return failed
}

type replayer struct {
	sender
	options replayOptions
	same    map[string]int // dead letters without an id, by what they say

	read, chosen, texts, withheld, bare, marked int // dead letters
	stored, before                              int // events
}

func (r *replayer) say() {
	r.sayReasons()
	if r.sender.options.quiet {
		return
	}
	r.call.say("%s read, %s chosen, %s of them sent as text", plural(r.read, "dead letter"), count(r.chosen), count(r.texts))
	if !r.sender.options.dryRun {
		r.call.say("%s stored, %s had been stored before", plural(r.stored, "event"), count(r.before))
	}
	if r.marked > 0 {
		r.call.say("%s not sent, as they are marked as replayed", count(r.marked))
	}
	if r.bare > 0 {
		r.call.say("%s of them sent without their labels or resource, which were too large to keep", count(r.bare))
	}
	if r.withheld > 0 {
		r.call.say("%s could not be sent: redaction rules are in force, so their text was not kept (docs/ENRICH.md)", count(r.withheld))
	}
}

// collector sends the dead letters that the collector has now.
func (r *replayer) collector(ctx context.Context) error {
	f, stamps := &r.options.filter, [2]string{}
	for i, t := range []time.Time{f.Since, f.Until} {
		if !t.IsZero() {
			stamps[i] = t.UTC().Format(time.RFC3339Nano)
		}
	}
	values := parameters("reason", f.Reason, "receiver", f.Receiver, "id", f.ID, "text", f.Text, "since", stamps[0], "until", stamps[1])
	if f.Tenant != nil {
		values.Set("tenant", *f.Tenant)
	}
	// All of them are read first: the answer would wait while they are sent.
	kept, err := os.CreateTemp("", "rollway-replay-*.ndjson")
	if err != nil {
		return err
	}
	defer os.Remove(kept.Name())
	defer kept.Close()
	resp, err := r.client.get(ctx, rejectedPath, values, nil)
	if err != nil {
		return interrupted(ctx, err)
	}
	defer resp.Body.Close()
	if _, err := io.Copy(kept, resp.Body); err != nil {
		return interrupted(ctx, fmt.Errorf("read dead letters: %w", err))
	}
	var sent []string
	err = r.file(ctx, kept.Name(), rejectedPath, func(l *deadletter.Entry, _ deadletter.Place) error {
		if sent = append(sent, l.ID); len(sent) < markAtOnce {
			return nil
		}
		ids := sent
		sent = nil
		return r.markAt(ctx, ids)
	})
	return errors.Join(err, r.markAt(context.WithoutCancel(ctx), sent))
}

const (
	rejectedPath = "/api/rejected"
	markAtOnce   = 1000 // dead letters
)

// markAt has the collector mark dead letters as replayed.
func (r *replayer) markAt(ctx context.Context, ids []string) error {
	if len(ids) == 0 {
		return nil
	}
	body, err := json.Marshal(map[string][]string{"replayed": ids})
	if err != nil {
		return err
	}
	resp, err := wantOK(r.client.do(ctx, http.MethodPost, rejectedPath, nil, body))
	if err != nil {
		return fmt.Errorf("mark dead letters: %w", err)
	}
	return resp.Body.Close()
}

func (r *replayer) files(ctx context.Context, name string) error {
	paths := []string{name}
	if path, err := filepath.EvalSymlinks(name); err == nil {
		paths[0] = path
	}
	if info, err := os.Stat(name); err == nil && info.IsDir() {
		for _, dir := range []string{name, collector.RejectedFolder(name)} {
			if paths, _ = deadletter.Files(disk.Real{}, dir); len(paths) > 0 {
				break
			}
		}
		if len(paths) == 0 {
			return &inputError{fmt.Errorf("%s is a folder without dead letters", name)}
		}
	}
	for _, path := range paths {
		err := r.file(ctx, path, path, func(_ *deadletter.Entry, at deadletter.Place) error { return deadletter.Mark(disk.Real{}, at) })
		if err != nil {
			return err
		}
	}
	return nil
}

// file sends the dead letters that a file holds now: a collector that rejects them again
// adds to its own. label is what errors call it; mark marks what was stored.
func (r *replayer) file(ctx context.Context, name, label string, mark func(*deadletter.Entry, deadletter.Place) error) error {
	n := 0
	var fatal error
	err := deadletter.EachLine(disk.Real{}, name, math.MaxInt64, func(line []byte, at deadletter.Place) error {
		n++
		var l deadletter.Entry
		switch err := json.Unmarshal(line, &l); {
		case err != nil && at.Pos > 0 && !bytes.HasSuffix(line, []byte("\n")):
			return nil // it is being written
		case err != nil || l.Reason == "":
			return fmt.Errorf("%s:%d: not an event of a dead letter queue; the rest of the file was not read", label, n)
		}
		var stored bool
		stored, fatal = r.deadLetter(ctx, &l, line, fmt.Sprintf("%s:%d", label, n))
		if fatal == nil && stored && r.options.mark {
			fatal = mark(&l, at)
		}
		return fatal
	})
	if fatal != nil {
		return fatal
	}
	if err != nil {
		return &inputError{err}
	}
	return nil
}

// deadLetter sends a dead letter if the flags choose it, and reports whether it is stored.
// line is its text in the file, at its name and line.
func (r *replayer) deadLetter(ctx context.Context, l *deadletter.Entry, line []byte, at string) (stored bool, err error) {
	r.read++
	key := r.key(l, line)
	switch {
	case !r.options.filter.Match(l):
		return false, nil
	case l.Withheld:
		r.withheld++
		return false, nil
	case l.Replayed && !r.options.again:
		r.marked++
		return false, nil
	}
	r.chosen++
	body, isText, err := reread.Line(l, reread.NoLimits)
	if err != nil {
		return false, &inputError{fmt.Errorf("%s: %w", at, err)}
	}
	if isText {
		r.texts++
	}
	if l.ContextCut {
		r.bare++
	}
	body = bytes.ToValidUTF8(body, []byte("\uFFFD"))
	if r.sender.options.dryRun {
		_, err := r.call.stdout.Write(append(body, '\n'))
		return false, err
	}
	return r.send(ctx, body, key, at)
}

// send sends the events of one entry until the collector has answered, and reports whether
// all are stored.
func (r *replayer) send(ctx context.Context, body []byte, key, at string) (stored bool, err error) {
	if ctx.Err() != nil {
		return false, fmt.Errorf("interrupted before %s; the same command sends what is left", at)
	}
	a, err := r.postUntilAnswered(ctx, body, 0, key)
	status, refused := errors.AsType[*statusError](err)
	refused = refused && slices.Contains([]int{http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity}, status.code)
	switch {
	case refused:
		r.refuse(1, at, status.message)
		return false, nil
	case err != nil:
		return false, fmt.Errorf("%s: %w; the events after it were not sent", at, err)
	case a.before:
		r.before += a.Accepted
	default:
		r.stored += a.Accepted
	}
	if a.RejectedTotal > 0 {
		why := "rejected again"
		if len(a.Rejected) > 0 {
			why = a.Rejected[0].Reason + ": " + a.Rejected[0].Detail
		}
		r.refuse(a.RejectedTotal, at, why)
	}
	return a.RejectedTotal == 0, nil
}

func (r *replayer) refuse(n int, at, why string) {
	r.total.refused += n
	r.total.reason(n, "%s: %s", at, appendPlain(nil, why))
}

// key names a dead letter to the collector: by its id or, where it has none, by what it
// says and how many before it say the same.
func (r *replayer) key(l *deadletter.Entry, line []byte) string {
	if key := reread.Key(l); key != "" {
		return key
	}
	sum := sha256.Sum256(bytes.TrimSpace(line))
	name := hex.EncodeToString(sum[:])
	r.same[name]++
	return fmt.Sprintf("dead-letter/%s/%d", name, r.same[name])
}

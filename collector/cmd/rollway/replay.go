package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/rollway/rollway/collector/config"
	"github.com/rollway/rollway/collector/deadletter"
	"github.com/rollway/rollway/collector/reread"
	"github.com/rollway/rollway/collector/ulid"
)

var replayCommand = &command{
	name:    "replay",
	summary: "send events that a collector has rejected again",
	args:    "FILE…",
	needs:   "FILE, as in data/rejected/rejected*.ndjson,",
	most:    -1,
	help: `
Sends the events of a collector's dead letter queue again
(rejected/rejected*.ndjson in its data folder), for example after a limit was
raised. An event is sent as it arrived, decoded as its protocol requires.
Anything else, such as a broken line or an event that was kept in part,
becomes {"msg":TEXT,"attrs":{"rejected":REASON}}.

Each event is sent with its id as idempotency key, so that a second run stores
nothing twice, for as long as the collector remembers keys (journal.key_age).

The collector stores the events under the token in ROLLWAY_TOKEN, with its
tenant and rate limits, whatever token sent them first. Use -tenant together
with a token of that tenant.

replay changes no files. The collector keeps what it rejects again.

Examples:
  rollway replay -dry-run data/rejected/rejected.ndjson
  rollway replay -reason too_large data/rejected/rejected*.ndjson
`,
	setup: setupReplay,
}

// replayOptions are the flags of replay.
type replayOptions struct {
	reason, tenant string
	hasTenant      bool
}

func setupReplay(flags *flag.FlagSet) action {
	var o replayOptions
	send := sendOptions{maxLine: 64 * config.MiB}
	addr := addrFlag(flags)
	flags.StringVar(&o.reason, "reason", "", "only events rejected for `REASON`, such as too_large")
	flags.Func("tenant", "only events of `TENANT`; empty: only events without one", func(s string) error {
		o.tenant, o.hasTenant = s, true
		return nil
	})
	send.declare(flags)
	return func(c *call, args []string) error {
		cl, err := newClient(*addr)
		if err != nil {
			return err
		}
		ctx, stop := interruptible()
		defer stop()
		r := &replayer{sender: sender{call: c, options: send, client: cl}, options: o, same: map[string]int{}}
		return r.run(ctx, args)
	}
}

func (r *replayer) run(ctx context.Context, names []string) (failed error) {
	for _, name := range names {
		err := r.file(ctx, name)
		failed = errors.Join(failed, err)
		if err != nil && !errors.As(err, new(*inputError)) {
			break // other files would fail as well
		}
	}
	r.say()
	if n := r.total.refused; n > 0 {
		failed = errors.Join(failed, fmt.Errorf("%s not accepted", plural(n, "event")))
	}
	return failed
}

type replayer struct {
	sender
	options replayOptions
	same    map[string]int // dead letters without an id, by what they say

	read, chosen, texts, withheld, bare int // dead letters
	stored, before                      int // events
}

func (r *replayer) say() {
	r.sayReasons()
	if r.sender.options.quiet {
		return
	}
	r.call.say("%s read, %s chosen, %s of them sent as text", plural(r.read, "rejected event"), count(r.chosen), count(r.texts))
	if !r.sender.options.dryRun {
		r.call.say("%s stored, %s had been stored before", plural(r.stored, "event"), count(r.before))
	}
	if r.bare > 0 {
		r.call.say("%s of them sent without their labels or resource, which were too large to keep", count(r.bare))
	}
	if r.withheld > 0 {
		r.call.say("%s could not be sent: redaction rules are in force, so their text was not kept (docs/ENRICH.md)", count(r.withheld))
	}
}

// file sends the dead letters that name holds now: a collector that rejects them again
// adds to its own file.
func (r *replayer) file(ctx context.Context, name string) error {
	f, info, err := openRegular(name)
	if err != nil {
		return &inputError{err}
	}
	defer f.Close()
	in := bufio.NewReader(io.LimitReader(f, info.Size()))
	for n := 1; ; n++ {
		line, err := in.ReadBytes('\n')
		if err == io.EOF && len(line) == 0 {
			return nil
		}
		if err != nil && err != io.EOF {
			return &inputError{fmt.Errorf("%s: %w", name, err)}
		}
		var l deadletter.Entry
		if err := json.Unmarshal(line, &l); err != nil || l.Reason == "" {
			return &inputError{fmt.Errorf("%s:%d: not an event of a dead letter queue; the rest of the file was not read", name, n)}
		}
		if err := r.deadLetter(ctx, &l, line, fmt.Sprintf("%s:%d", name, n)); err != nil {
			return err
		}
	}
}

// deadLetter sends a dead letter if the flags choose it. line is its text in the file, at
// its name and line.
func (r *replayer) deadLetter(ctx context.Context, l *deadletter.Entry, line []byte, at string) error {
	r.read++
	key := r.key(l, line)
	switch o := &r.options; {
	case l.Withheld:
		r.withheld++
		return nil
	case o.reason != "" && l.Reason != o.reason, o.hasTenant && l.Tenant != o.tenant:
		return nil
	}
	r.chosen++
	body, isText, err := replayed(l)
	if err != nil {
		return &inputError{fmt.Errorf("%s: %w", at, err)}
	}
	if isText {
		r.texts++
	}
	if l.ContextCut {
		r.bare++
	}
	if r.sender.options.dryRun {
		return nil
	}
	return r.send(ctx, bytes.ToValidUTF8(body, []byte("\uFFFD")), key, at)
}

// send sends the events of one entry until the collector has answered.
func (r *replayer) send(ctx context.Context, body []byte, key, at string) error {
	if ctx.Err() != nil {
		return fmt.Errorf("interrupted before %s; the same command sends what is left", at)
	}
	a, err := r.postUntilAnswered(ctx, body, 0, key)
	var status *statusError
	refusal := errors.As(err, &status) && slices.Contains([]int{http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity}, status.code)
	switch {
	case refusal:
		r.refuse(1, at, status.message)
		return nil
	case err != nil:
		return fmt.Errorf("%s: %w; the events after it were not sent", at, err)
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
	return nil
}

func (r *replayer) refuse(n int, at, why string) {
	r.total.refused += n
	r.total.reason(n, "%s: %s", at, appendPlain(nil, why))
}

// key names a dead letter to the collector: by its id or, where it has none, by what it
// says and how many before it say the same.
func (r *replayer) key(l *deadletter.Entry, line []byte) string {
	if len(l.ID) == ulid.Len && !strings.ContainsFunc(l.ID, func(c rune) bool { return c <= ' ' || c > '~' }) {
		return "dead-letter/" + l.ID
	}
	sum := sha256.Sum256(bytes.TrimSpace(line))
	name := hex.EncodeToString(sum[:])
	r.same[name]++
	return fmt.Sprintf("dead-letter/%s/%d", name, r.same[name])
}

// replayed is the line to send for a dead letter, and whether that is its text.
func replayed(l *deadletter.Entry) (line []byte, isText bool, err error) {
	text, err := l.Text()
	if err != nil {
		return nil, false, err
	}
	if !l.Cut {
		if lines := reread.Lines(l); len(lines) > 0 {
			return bytes.TrimSuffix(lines, []byte("\n")), false, nil
		}
	}
	trimmed := bytes.TrimSpace(text)
	if !l.Cut && len(trimmed) > 0 && (trimmed[0] == '{' || trimmed[0] == '[') {
		var compact bytes.Buffer
		if json.Compact(&compact, trimmed) == nil {
			return compact.Bytes(), false, nil
		}
	}
	line, err = json.Marshal(map[string]any{"msg": string(text), "attrs": map[string]string{"rejected": l.Reason}})
	return line, true, err
}

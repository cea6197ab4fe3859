package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"

	"github.com/rollway/rollway/collector"
	"github.com/rollway/rollway/collector/config"
	"github.com/rollway/rollway/collector/deadletter"
)

var replayCommand = &command{
	name:    "replay",
	summary: "send events that a collector has rejected again",
	args:    "FILE…",
	help: `
Sends events that a collector has rejected, from the files that it keeps them in
(rejected/rejected*.ndjson below its data folder), for example when a limit was
raised. An event that came by a protocol is read as that protocol has it, with the
labels, tag or resource that it came with; one that
is a JSON object, or an array of them, is sent as it was. Anything else, a broken line say, becomes {"msg":TEXT,"attrs":{"rejected":WHY}},
so that it is found at last; of one that was kept in part the part is sent so.

Files are left as they are. What is rejected once more is kept once more, by the
collector.

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

func setupReplay(flags *flag.FlagSet) func(*call, []string) error {
	var o replayOptions
	send := sendOptions{maxLine: 64 * config.MiB}
	addr := addrFlag(flags)
	flags.StringVar(&o.reason, "reason", "", "only events that were rejected for this `REASON`, such as too_large")
	flags.Func("tenant", "only events of this `TENANT`; empty: only those of none", func(s string) error {
		o.tenant, o.hasTenant = s, true
		return nil
	})
	flags.DurationVar(&send.retry, "retry", 30*time.Second, "how long to try again when the collector cannot be reached or is full, a `TIME` such as 5m")
	flags.BoolVar(&send.dryRun, "dry-run", false, "read and count, and send nothing")
	flags.BoolVar(&send.quiet, "quiet", false, "print errors only")
	return func(c *call, args []string) error {
		if len(args) == 0 {
			return usagef("name the files, as in data/rejected/rejected*.ndjson")
		}
		send.addr = *addr
		cl, err := newClient(send.addr)
		if err != nil {
			return err
		}
		return replay(c, cl, o, send, args)
	}
}

// replay has send read the events of the files as its standard input.
func replay(c *call, cl *client, o replayOptions, send sendOptions, names []string) error {
	ctx, stop := interruptible()
	defer stop()
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	var t replayTally
	read := make(chan error, 1)
	go func() {
		err := t.files(w, o, names)
		read <- errors.Join(err, w.Close())
	}()
	own := *c
	own.stdin = r
	s := &sender{call: &own, options: send, client: cl}
	sent := s.run(ctx, []string{"-"})
	r.Close() // if it ended early, the reader of files does too
	if err := <-read; err != nil && !errors.Is(err, syscall.EPIPE) {
		sent = errors.Join(sent, err)
	}
	if !send.quiet {
		c.say("%s read, %s chosen, %s of them sent as text", plural(t.read, "rejected event"), count(t.chosen), count(t.texts))
		if t.bare > 0 {
			c.say("%s of them sent without what they shared with others, such as labels or a resource: it was too large to be kept", count(t.bare))
		}
		if t.withheld > 0 {
			c.say("%s could not be sent: rules redact events, so their text was not kept (docs/ENRICH.md)", count(t.withheld))
		}
	}
	return sent
}

// replayTally counts letters.
type replayTally struct{ read, chosen, texts, withheld, bare int }

// files writes the events of all files to w, one a line.
func (t *replayTally) files(w io.Writer, o replayOptions, names []string) error {
	out := bufio.NewWriter(w)
	var wrong []error
	for _, name := range names {
		if err := t.file(out, o, name); err != nil {
			wrong = append(wrong, err)
		}
	}
	return errors.Join(append(wrong, out.Flush())...)
}

func (t *replayTally) file(out *bufio.Writer, o replayOptions, name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	in := bufio.NewReader(f)
	for n := 1; ; n++ {
		line, err := in.ReadBytes('\n')
		if err == io.EOF && len(line) == 0 {
			return nil
		}
		if err != nil && err != io.EOF {
			return fmt.Errorf("%s: %w", name, err)
		}
		var l deadletter.Letter
		if err := json.Unmarshal(line, &l); err != nil || l.Reason == "" {
			return fmt.Errorf("%s:%d: not a rejected event as a collector keeps them; what is behind it was not read", name, n)
		}
		t.read++
		if l.Withheld {
			t.withheld++
			continue
		}
		if o.reason != "" && l.Reason != o.reason || o.hasTenant && l.Tenant != o.tenant {
			continue
		}
		t.chosen++
		event, isText, err := replayed(&l)
		if err != nil {
			return fmt.Errorf("%s:%d: %w", name, n, err)
		}
		if isText {
			t.texts++
		}
		if l.ContextCut {
			t.bare++
		}
		out.Write(event)
		if err := out.WriteByte('\n'); err != nil {
			return err
		}
	}
}

// replayed is the line to send for a letter, and whether that is its text.
func replayed(l *deadletter.Letter) (line []byte, isText bool, err error) {
	text, err := l.Text()
	if err != nil {
		return nil, false, err
	}
	if !l.Cut {
		if lines := collector.ReadRejected(l); len(lines) > 0 {
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

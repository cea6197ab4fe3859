package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"

	"github.com/rollway/rollway/collector"
	"github.com/rollway/rollway/collector/enrich"
)

var explainCommand = &command{
	name:    "explain",
	summary: "show what a collector would make of an event",
	args:    "[FILE]",
	most:    1,
	help: `
Shows what would become of the events in FILE, or of stdin, if they were sent to
a collector: what its receiver reads, what each rule decides, and the line that
is stored. Nothing is stored. At most 20 events and 256 KiB are looked at.

-as names the receiver by its path, such as /v1/logs, or is syslog or gelf. With
tokens, ROLLWAY_TOKEN needs the right to read; its tenant is that of the events.
The exit status is 1 if an event is not stored.

Examples:
  echo '{"msg":"paid","user":{"email":"a@b.c"}}' | rollway explain
  rollway explain -as syslog message.txt
  rollway explain -o json event.json | jq .events[0].line
`,
	setup: setupExplain,
}

func setupExplain(flags *flag.FlagSet) action {
	as := flags.String("as", "/api/logs", "the `RECEIVER` that they are sent to")
	contentType := flags.String("type", "application/json", "their Content-`TYPE`, such as text/plain")
	return asking(flags, func(ctx context.Context, c *call, cl *client, args []string) error {
		in := io.Reader(c.stdin)
		if len(args) > 0 && args[0] != "-" {
			f, err := os.Open(args[0])
			if err != nil {
				return err
			}
			defer f.Close()
			in = f
		}
		body, err := io.ReadAll(io.LimitReader(in, maxAnswer))
		if err != nil {
			return fmt.Errorf("read the event: %w", err)
		}
		path := "/api/explain-event?" + parameters("as", *as).Encode()
		resp, err := wantOK(cl.do(ctx, http.MethodPost, path, http.Header{"Content-Type": {*contentType}}, body))
		if err != nil {
			return interrupted(ctx, err)
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(io.LimitReader(resp.Body, maxExplanation))
		var e collector.Explanation
		if err == nil {
			err = json.Unmarshal(text, &e)
		}
		if err != nil {
			return fmt.Errorf("read the answer: %w", err)
		}
		if c.json {
			_, err = c.stdout.Write(text)
		} else {
			err = printExplanation(c.stdout, &e)
		}
		if err == nil && !isStored(&e) {
			return errSaid
		}
		return err
	})
}

// maxExplanation is more than an answer has.
const maxExplanation = 64 << 20

// isStored reports whether all events would be stored.
func isStored(e *collector.Explanation) bool {
	for _, event := range e.Events {
		if event.Dropped != "" {
			return false
		}
	}
	return e.Error == "" && len(e.Rejected) == 0
}

// did are words for what steps do.
var did = map[string]string{
	enrich.Changed: "changed it:", enrich.Dropped: "dropped it", enrich.Kept: "kept it", enrich.NotFor: "is not for it", enrich.Nothing: "found nothing to do",
}

func printExplanation(out io.Writer, e *collector.Explanation) error {
	var b strings.Builder
	for i, event := range e.Events {
		if len(e.Events) > 1 {
			fmt.Fprintf(&b, "event %d\n", i+1)
		}
		for _, s := range event.Steps {
			switch {
			case s.Step == enrich.StepRead:
				b.WriteString("read:")
			case s.Step != "":
				fmt.Fprintf(&b, "%s %s", s.Step, did[s.Did])
			default:
				fmt.Fprintf(&b, "rule %s (%s) %s", s.Rule, s.Action, did[s.Did])
			}
			if s.Line != nil {
				b.WriteString("\n  " + string(appendPlain(nil, string(s.Line))))
			}
			b.WriteByte('\n')
		}
		switch {
		case event.Dropped != "":
			fmt.Fprintf(&b, "not stored: the rule %s drops it\n", event.Dropped)
		case event.Line != nil:
			fmt.Fprintf(&b, "stored:\n  %s\n", appendPlain(nil, string(event.Line)))
		}
	}
	for _, r := range e.Rejected {
		fmt.Fprintf(&b, "event %d is rejected: %s: %s\n", r.Index+1, r.Reason, appendPlain(nil, r.Detail))
	}
	if e.Ignored > 0 {
		fmt.Fprintf(&b, "%s acknowledged and not kept, as it is not a log\n", count(e.Ignored))
	}
	if e.Error != "" {
		fmt.Fprintf(&b, "the request is refused: %s\n", appendPlain(nil, e.Error))
	}
	if e.Cut {
		b.WriteString("some lines are left out, as there are too many\n")
	}
	_, err := io.WriteString(out, b.String())
	return err
}

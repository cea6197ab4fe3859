package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/rollway/rollway/internal/backoff"
)

var tailCommand = &command{
	name:    "tail",
	summary: "show the newest lines, and follow",
	args:    "[-f] ['EXPRESSION']",
	most:    -1,
	help: `
Prints the newest lines, or the newest that an expression matches, and with -f
the lines that follow. If the connection breaks, tail reconnects and continues
after the last line shown. 'rollway help query' describes expressions and
formats.

Examples:
  rollway tail -f
  rollway tail -n 50 'level>=error'
  rollway tail -f service=payment | jq .msg
`,
	setup: setupTail,
}

func setupTail(flags *flag.FlagSet) action {
	var format formatFlags
	format.declare(flags, false)
	follow := flags.Bool("f", false, "follow: print new lines as they arrive")
	last := flags.Int("n", 10, "print the newest `N` lines")
	return asking(flags, func(ctx context.Context, c *call, cl *client, args []string) error {
		if *last < 0 {
			return usagef("-n must not be negative")
		}
		out := format.writer(c.stdout)
		f := &follower{call: c, client: cl, expr: strings.Join(args, " "), out: out}
		if *last > 0 {
			from, err := printQuery(ctx, c, cl, parameters("q", f.expr, "last", number(*last)), out)
			if err != nil {
				return err
			}
			f.from = from
		}
		if !*follow || ctx.Err() != nil {
			return nil
		}
		return f.run(ctx)
	})
}

// A follower prints new lines. It is not safe for concurrent use.
type follower struct {
	call   *call
	client *client
	expr   string
	out    *lineWriter

	from   string // first offset; empty: the end
	lastID string // of the last event
	retry  time.Duration
}

// run follows until ctx ends, standard output is closed, or the collector refuses. The
// first connection must succeed; later ones are retried.
func (f *follower) run(ctx context.Context) error {
	f.retry = 2 * time.Second
	for connected := false; ; {
		began := false
		lost := f.stream(ctx, func() {
			if connected {
				f.call.say("connected again")
			}
			connected, began = true, true
		})
		out, _ := errors.AsType[*outputError](lost)
		status, _ := errors.AsType[*statusError](lost)
		switch {
		case ctx.Err() != nil:
			return f.out.flush()
		case out != nil:
			return out.err
		case !connected, status != nil && status.code/100 == 4 && status.code != http.StatusTooManyRequests:
			return lost
		case began:
			f.call.say("%v; connecting again", lost)
		}
		backoff.Sleep(ctx, f.retry)
	}
}

type outputError struct{ err error }

func (e *outputError) Error() string { return e.err.Error() }

// idleTimeout ends a stream that sends nothing. The collector sends comments more often.
const idleTimeout = time.Minute

// stream follows over one connection and returns why it ended. It calls connected once
// the collector has accepted.
func (f *follower) stream(ctx context.Context, connected func()) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	header := http.Header{"Accept": {"text/event-stream"}}
	from := f.from
	if f.lastID != "" {
		header.Set("Last-Event-ID", f.lastID)
		from = ""
	}
	resp, err := f.client.get(ctx, "/api/tail", parameters("q", f.expr, "from", from), header)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	connected()
	watch := time.AfterFunc(idleTimeout, func() { cancel(fmt.Errorf("%s has sent nothing for %s", f.client.base, idleTimeout)) })
	defer watch.Stop()
	in := bufio.NewReaderSize(resp.Body, 64<<10)
	for {
		if in.Buffered() == 0 {
			if err := f.out.flush(); err != nil {
				return &outputError{err}
			}
		}
		e, err := readEvent(in)
		switch cause := context.Cause(ctx); {
		case err != nil && cause != nil && !errors.Is(cause, context.Canceled):
			return cause
		case errors.Is(err, io.EOF):
			return errors.New("the collector closed the connection")
		case err != nil:
			return err
		}
		watch.Reset(idleTimeout)
		if e.retry > 0 {
			f.retry = min(e.retry, time.Minute)
		}
		switch {
		case e.name == "end":
			return fmt.Errorf("the collector ends the stream: %s", eventText(e.data))
		case e.name == "gap":
			err = f.out.flush()
			f.call.say("lines are missing here: %s", eventText(e.data))
		case e.name == "" && len(e.data) > 0:
			err = f.out.write(e.data)
		}
		if err != nil {
			return &outputError{err}
		}
		f.lastID = cmp.Or(e.id, f.lastID)
	}
}

// An event is a server-sent event, or a comment.
type event struct {
	name  string // empty: a line
	id    string // empty: none
	data  []byte
	retry time.Duration
}

// readEvent reads up to the next empty line. It discards an incomplete event.
func readEvent(in *bufio.Reader) (e event, err error) {
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return event{}, err
		}
		line = bytes.TrimRight(line, "\r\n")
		if len(line) == 0 {
			return e, nil
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(name) {
		case "event":
			e.name = string(value)
		case "id":
			e.id = string(value)
		case "data":
			if e.data != nil {
				e.data = append(e.data, '\n')
			}
			e.data = append(e.data, value...)
		case "retry":
			if ms, err := strconv.Atoi(string(value)); err == nil {
				e.retry = time.Duration(ms) * time.Millisecond
			}
		}
	}
}

// eventText formats the data of an event for people.
func eventText(data []byte) string {
	var e struct {
		Missed int    `json:"missed"`
		Reason string `json:"reason"`
	}
	if json.Unmarshal(data, &e) != nil {
		return string(appendPlain(nil, data))
	}
	reason := string(appendPlain(nil, e.Reason))
	if e.Missed > 0 {
		return fmt.Sprintf("%s, %s", lines(e.Missed), reason)
	}
	return reason
}

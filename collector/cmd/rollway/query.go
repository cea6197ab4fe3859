package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

var queryCommand = &command{
	name:    "query",
	summary: "find lines",
	args:    "['EXPRESSION']",
	most:    -1,
	help: `
Prints the lines that an expression matches, oldest first. Words and quoted
texts are searched in the message, the error and the attributes. Fields are
compared with =, !=, <, <=, >, >=, ~ (contains), !~, =~ (regular expression) and
in: status in (404, 500..599), ip in 10.0.0.0/8. i"…" ignores case. Adjacent terms
must all match; and, or, not and parentheses combine them. docs/QUERY.md has the
grammar.
Write an expression that begins with a dash after "--".

On a terminal lines are formatted for people, with local times. Into a pipe or a
file they are written as stored, one JSON object each.

-since and -until take a time (2026-05-28T12:40:00Z, 2026-05-28, yesterday) or a
duration before now (90s, 1h, 7d).

Examples:
  rollway query 'level>=warn service=payment "charge"' -since 1h
  rollway query 'not (level=debug or service=probe)' -last 20
  rollway query customer_id=cus_123 -json | jq .attrs
`,
	setup: setupQuery,
}

func setupQuery(flags *flag.FlagSet) action {
	addr := addrFlag(flags)
	var format formatFlags
	format.declare(flags)
	since := flags.String("since", "", "only lines from this `TIME` on")
	until := flags.String("until", "", "only lines before this `TIME`")
	var last, limit int
	flags.IntVar(&limit, "limit", 0, "stop after the first `N` lines (default: all)")
	flags.IntVar(&last, "last", 0, "only the last `N` matching lines")
	flags.IntVar(&last, "n", 0, "`N`: the same as -last")
	return func(c *call, args []string) error {
		cl, err := newClient(*addr)
		if err != nil {
			return err
		}
		if last < 0 || limit < 0 {
			return usagef("-last and -limit must not be negative")
		}
		values := parameters("q", strings.Join(args, " "), "since", *since, "until", *until, "last", number(last), "limit", number(limit))
		out, err := format.writer(c.stdout)
		if err != nil {
			return err
		}
		ctx, stop := interruptible()
		defer stop()
		_, err = printQuery(ctx, c, cl, values, out)
		return err
	}
}

// parameters returns the pairs of names and values whose value is not empty.
func parameters(pairs ...string) url.Values {
	v := url.Values{}
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			v.Set(pairs[i], pairs[i+1])
		}
	}
	return v
}

// number writes a number that is not 0.
func number(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

// printQuery prints the answer to a query and returns the offset after the records that
// were searched; for a reader of some lines, after the last of these.
func printQuery(ctx context.Context, c *call, cl *client, values url.Values, out *lineWriter) (end string, err error) {
	// The collector says in a trailer why an answer ends early.
	resp, err := cl.get(ctx, "/api/query", values, http.Header{"Te": {"trailers"}})
	if err != nil {
		return "", interrupted(ctx, err)
	}
	defer resp.Body.Close()
	n, err := out.copyLines(resp.Body)
	if err != nil {
		return "", interrupted(ctx, fmt.Errorf("after %s: %w", lines(n), err))
	}
	if missing := resp.Trailer.Get("Rollway-Missing"); missing != "" {
		c.say("lines are missing: %s", appendPlain(nil, missing))
	}
	if hint := cmp.Or(resp.Header.Get("Rollway-Hint"), resp.Trailer.Get("Rollway-Hint")); hint != "" {
		c.say("nothing was found: %s", appendPlain(nil, hint))
	}
	if text := resp.Trailer.Get("Rollway-Error"); text != "" {
		return "", fmt.Errorf("the answer ends early, after %s: %s", lines(n), appendPlain(nil, text))
	}
	return cmp.Or(resp.Header.Get("Rollway-End"), resp.Trailer.Get("Rollway-Next")), nil
}

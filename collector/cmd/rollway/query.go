package main

import (
	"cmp"
	"errors"
	"flag"
	"net/url"
	"strconv"
	"strings"

	"github.com/rollway/rollway/collector/query"
)

var queryCommand = &command{
	name:    "query",
	summary: "find lines",
	args:    "['EXPRESSION']",
	most:    -1,
	help: `
Prints the lines that an expression matches, in the order in which they came;
with -last, or -order time, in the order of their times. Words and quoted texts
are searched in the message, the error and the attributes. Fields are compared
with =, !=, <, <=, >, >=, ~ (contains), !~, =~ (regular expression) and in:
status in (404, 500..599), ip in 10.0.0.0/8. i"…" ignores case. Adjacent terms
must all match; and, or, not and parentheses combine them. docs/QUERY.md has the
grammar, and the pipes that may follow.
Write an expression that begins with a dash after "--".

Lines are printed as they are found. If the connection breaks, or the collector
has searched for as long as it may, query continues after the last line.

On a terminal lines are formatted for people, with local times; texts of several
lines, such as stacks, come below, indented. What pipes make is a table there,
groups with one column of numbers or by time have bars. Into a pipe or a file
lines are written as stored, one JSON object each. -o chooses another format:
text, json, csv (RFC 4180: a header, and the columns of the pipes, or the
fields of a line), table, or chart, which is a table with bars. NO_COLOR leaves
colors out.

With -data query reads the data folder of a collector that has stopped, and
writes nothing there.

-since and -until take a time (2026-05-28T12:40:00Z, 2026-05-28, yesterday) or a
duration before now (90s, 1h, 7d).

Examples:
  rollway query 'level>=warn service=payment "charge"' -since 1h
  rollway query 'not (level=debug or service=probe)' -last 20
  rollway query 'level>=error' -last 3 -context 10
  rollway query -data /var/lib/rollway level=error -since 2d
  rollway query customer_id=cus_123 | jq .attrs
  rollway query '| stats count() by service, time(1h)' -since 1d -o chart
  rollway query 'level>=error | fields time, service, msg' -o csv
`,
	setup: setupQuery,
}

func setupQuery(flags *flag.FlagSet) action {
	addr := addrFlag(flags)
	data := flags.String("data", "", dataUsage)
	var format formatFlags
	format.declare(flags, true)
	since := flags.String("since", "", "only lines from this `TIME` on")
	until := flags.String("until", "", "only lines before this `TIME`")
	var last, limit int
	flags.IntVar(&limit, "limit", 0, "stop after the first `N` lines (default: all)")
	flags.IntVar(&last, "last", 0, "only the last `N` matching lines")
	flags.IntVar(&last, "n", 0, "`N`: the same as -last")
	order := ""
	wordFlag(flags, "order", "`ORDER` of the lines, also for -last: time, or arrival, in which lines are printed as they are found (default: time with -last, else arrival)",
		func(word string) { order = word }, "time", "arrival")
	around := flags.Int("context", 0, "also `N` lines before and after each line, with the same -by; text marks what was found")
	by := flags.String("by", "service", "`FIELD` whose value the lines of -context share, such as file")
	return func(c *call, args []string) error {
		if last < 0 || limit < 0 || *around < 0 {
			return usagef("-last, -limit and -context must not be negative")
		}
		cl, closeData, err := c.asked(*addr, *data)
		if err != nil {
			return err
		}
		defer closeData()
		if order == "" && last > 0 && *around == 0 {
			order = "time"
		}
		values := parameters("order", order, "q", strings.Join(args, " "), "since", *since, "until", *until, "last", number(last), "limit", number(limit))
		out := format.writer(c.stdout)
		out.grouped = query.Grouped(values.Get("q"))
		ctx, stop := interruptible()
		defer stop()
		if *around == 0 {
			_, err = printQuery(ctx, c, cl, values, out)
			return err
		}
		hits, err := query.Parse(values.Get("q"))
		if err != nil || order == "time" {
			return usagef("-context takes a filter without pipes, in the order of arrival: %v", cmp.Or(err, errors.New("-order time")))
		}
		_, err = printAround(ctx, c, cl, values, out, &surroundings{client: cl, out: out, lines: *around, by: *by, hits: hits, shown: map[uint64]struct{}{}})
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

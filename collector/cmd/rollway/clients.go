package main

import (
	"context"
	"flag"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

var clientsCommand = &command{
	name:    "clients",
	summary: "show who sends to a collector, and who is turned away",
	help: `
Shows what each client of a collector has sent since the collector's start, the
one seen last first. A row is an address (of IPv6 a /64), a token and a
receiver. REJECTED are events, REFUSED requests and connections that were turned
away, ERROR is why the last of them was. About a thousand rows are remembered.

-filter takes COLUMN=TEXT: the column begins with the text, or is an address in
the network that it names. With tokens, ROLLWAY_TOKEN needs the right to read; a
token of a tenant sees what its tenant sends.

Examples:
  rollway clients -sort bytes -n 10
  rollway clients -filter client=10.1.0.0/16 -filter error=unauthorized
  rollway clients -o json | jq '.[] | select(.refused > 0)'
`,
	setup: setupClients,
}

// clientColumns are the columns of the table, as GET /api/clients names them.
var clientColumns = strings.Fields("client token tenant receiver agent requests events bytes rejected refused first last error_time error")

// clientRow is a row by its columns; numbers are float64.
type clientRow map[string]any

func setupClients(flags *flag.FlagSet) action {
	var filters []string
	listFlag(flags, &filters, "filter", "only rows with `COLUMN=TEXT`")
	sort := "last"
	wordFlag(flags, "sort", "sort by `COLUMN`: the largest numbers and the latest times first (default last)", func(word string) { sort = word }, clientColumns...)
	reverse := flags.Bool("r", false, "reverse the order")
	most := flags.Int("n", 0, "at most `N` rows (default: all)")
	return asking(flags, func(ctx context.Context, c *call, cl *client, _ []string) error {
		for _, text := range filters {
			if name, _, ok := strings.Cut(text, "="); !ok || !slices.Contains(clientColumns, name) {
				return usagef("%q is no column; there are %s", name, strings.Join(clientColumns, ", "))
			}
		}
		var answer struct{ Clients []clientRow }
		if err := cl.getJSON(ctx, "/api/clients", &answer); err != nil {
			return interrupted(ctx, err)
		}
		rows := slices.DeleteFunc(answer.Clients, func(row clientRow) bool {
			return slices.ContainsFunc(filters, func(text string) bool { return !row.matches(text) })
		})
		slices.SortStableFunc(rows, func(a, b clientRow) int { return compareClients(a[sort], b[sort], sort) })
		if *reverse {
			slices.Reverse(rows)
		}
		if *most > 0 {
			rows = rows[:min(*most, len(rows))]
		}
		if c.json {
			return printJSON(c.stdout, rows)
		}
		return printClients(c, rows)
	})
}

func (row clientRow) matches(filter string) bool {
	name, want, _ := strings.Cut(filter, "=")
	text := fmt.Sprint(row[name])
	if network, err := netip.ParsePrefix(want); err == nil && name == "client" {
		addr, _, _ := strings.Cut(text, "/")
		at, err := netip.ParseAddr(addr)
		return err == nil && network.Contains(at)
	}
	return strings.HasPrefix(text, want)
}

// compareClients sorts numbers and times downwards, other text upwards.
func compareClients(a, b any, column string) int {
	x, isNumber := a.(float64)
	y, _ := b.(float64)
	switch {
	case isNumber:
		return int(max(-1, min(1, y-x)))
	case slices.Contains([]string{"first", "last", "error_time"}, column):
		return moment(b).Compare(moment(a))
	}
	return strings.Compare(fmt.Sprint(a), fmt.Sprint(b))
}

func moment(v any) time.Time {
	text, _ := v.(string)
	t, _ := time.Parse(time.RFC3339Nano, text)
	return t
}

func printClients(c *call, rows []clientRow) error {
	w := tabwriter.NewWriter(c.stdout, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, strings.ToUpper(strings.Join(clientColumns, "\t")))
	for _, row := range rows {
		var cells []string
		for _, name := range clientColumns {
			text := "-"
			switch v := row[name].(type) {
			case float64:
				text = count(int(v))
			case string:
				if at := moment(v); !at.IsZero() {
					v = time.Since(at).Truncate(time.Second).String() + " ago"
				}
				if v != "" {
					text = string(appendPlain(nil, v))
				}
			}
			cells = append(cells, text)
		}
		fmt.Fprintln(w, strings.Join(cells, "\t"))
	}
	return w.Flush()
}

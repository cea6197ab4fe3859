package main

import (
	"cmp"
	"flag"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/rollway/rollway/collector/clients"
)

var clientsCommand = &command{
	name:    "clients",
	summary: "show who sends to a collector, and who is turned away",
	help: `
Shows what each client of a collector has sent since the collector's start, the
one that was seen last first. A row is an address (of IPv6 a /64), a token and a
receiver. BYTES are as sent, REJECTED are events, REFUSED requests and
connections that were turned away, ERROR is why the last of them was. The
collector remembers about a thousand rows.

-filter takes client (an address, or a network such as 10.0.0.0/8), token,
tenant, receiver and reason, which must be equal, and agent and error, of which
a part is enough. -sort takes the name of a column in lower case.

With tokens, ROLLWAY_TOKEN needs the right to read. A token of a tenant sees
what its tenant sends.

Examples:
  rollway clients
  rollway clients -sort bytes -n 10
  rollway clients -filter client=10.1.0.0/16 -filter reason=unauthorized
  rollway clients -json | jq '.clients[] | select(.refused > 0)'
`,
	setup: setupClients,
}

type clientsFlags struct {
	addr    *string
	filters []string
	sort    string
	reverse bool
	most    int
	json    bool
}

// clientsAnswer is what GET /api/clients answers.
type clientsAnswer struct {
	Since   time.Time        `json:"since"`
	Clients []clients.Client `json:"clients"`
}

func setupClients(flags *flag.FlagSet) action {
	f := &clientsFlags{addr: addrFlag(flags)}
	listFlag(flags, &f.filters, "filter", "only clients with `KEY=VALUE`")
	flags.StringVar(&f.sort, "sort", "last", "sort by `COLUMN`: the largest numbers and the latest times first")
	flags.BoolVar(&f.reverse, "r", false, "reverse the order")
	flags.IntVar(&f.most, "n", 0, "show at most `N` rows (default: all)")
	flags.BoolVar(&f.json, "json", false, "print a JSON object")
	return func(c *call, _ []string) error {
		at := slices.IndexFunc(clientColumns, func(col clientColumn) bool { return strings.ToLower(col.name) == f.sort })
		if at < 0 {
			return usagef("-sort %q is no column; there are %s", f.sort, columnNames())
		}
		var matches []func(*clients.Client) bool
		for _, text := range f.filters {
			m, err := clientFilter(text)
			if err != nil {
				return err
			}
			matches = append(matches, m)
		}
		cl, err := newClient(*f.addr)
		if err != nil {
			return err
		}
		ctx, stop := interruptible()
		defer stop()
		var answer clientsAnswer
		if err := cl.getJSON(ctx, "/api/clients", &answer); err != nil {
			return interrupted(ctx, err)
		}
		f.choose(&answer, clientColumns[at].compare, matches)
		if f.json {
			return printJSON(c.stdout, answer)
		}
		return printClients(c.stdout, answer.Clients, time.Now())
	}
}

// choose leaves the rows that are asked for, in their order.
func (f *clientsFlags) choose(answer *clientsAnswer, compare func(a, b *clients.Client) int, matches []func(*clients.Client) bool) {
	list := slices.DeleteFunc(answer.Clients, func(one clients.Client) bool {
		return slices.ContainsFunc(matches, func(m func(*clients.Client) bool) bool { return !m(&one) })
	})
	slices.SortStableFunc(list, func(a, b clients.Client) int { return compare(&a, &b) })
	if f.reverse {
		slices.Reverse(list)
	}
	if f.most > 0 && len(list) > f.most {
		list = list[:f.most]
	}
	answer.Clients = list
}

// clientFilter reads KEY=VALUE.
func clientFilter(text string) (func(*clients.Client) bool, error) {
	name, value, ok := strings.Cut(text, "=")
	exact := map[string]func(*clients.Client) string{
		"token":    func(c *clients.Client) string { return c.Token },
		"tenant":   func(c *clients.Client) string { return c.Tenant },
		"receiver": func(c *clients.Client) string { return c.Receiver },
		"reason":   func(c *clients.Client) string { return c.Reason },
	}
	part := map[string]func(*clients.Client) string{
		"agent": func(c *clients.Client) string { return c.Agent },
		"error": func(c *clients.Client) string { return c.LastError },
	}
	switch {
	case ok && name == "client":
		network, err := netip.ParsePrefix(value)
		if addr, is := netip.ParseAddr(value); is == nil {
			network, err = addr.Prefix(addr.BitLen())
		}
		if err != nil {
			return nil, usagef("-filter client=%q: write an address or a network, such as 10.1.0.0/16", value)
		}
		return func(c *clients.Client) bool {
			of, err := netip.ParsePrefix(c.Client)
			if addr, is := netip.ParseAddr(c.Client); is == nil {
				of, err = addr.Prefix(addr.BitLen())
			}
			return err == nil && of.Overlaps(network)
		}, nil
	case ok && exact[name] != nil:
		return func(c *clients.Client) bool { return exact[name](c) == value }, nil
	case ok && part[name] != nil:
		return func(c *clients.Client) bool {
			return strings.Contains(strings.ToLower(part[name](c)), strings.ToLower(value))
		}, nil
	}
	return nil, usagef("-filter %q: write KEY=VALUE, with the key client, token, tenant, receiver, agent, reason or error", text)
}

// A clientColumn is one of the table.
type clientColumn struct {
	name    string
	text    func(c *clients.Client, now time.Time) string
	compare func(a, b *clients.Client) int
}

var clientColumns = []clientColumn{
	column("CLIENT", func(c *clients.Client) string { return c.Client }),
	column("TOKEN", func(c *clients.Client) string { return c.Token }),
	column("TENANT", func(c *clients.Client) string { return c.Tenant }),
	column("RECEIVER", func(c *clients.Client) string { return c.Receiver }),
	column("AGENT", func(c *clients.Client) string { return c.Agent }),
	amount("REQUESTS", func(c *clients.Client) uint64 { return c.Requests }, func(n int64) string { return count(int(n)) }),
	amount("EVENTS", func(c *clients.Client) uint64 { return c.Events }, func(n int64) string { return count(int(n)) }),
	amount("BYTES", func(c *clients.Client) uint64 { return c.Bytes }, byteCount),
	amount("REJECTED", func(c *clients.Client) uint64 { return c.Rejected }, func(n int64) string { return count(int(n)) }),
	amount("REFUSED", func(c *clients.Client) uint64 { return c.Refused }, func(n int64) string { return count(int(n)) }),
	moment("FIRST", func(c *clients.Client) time.Time { return c.FirstSeen }),
	moment("LAST", func(c *clients.Client) time.Time { return c.LastSeen }),
	{"ERROR", clientError, func(a, b *clients.Client) int { return errorTime(b).Compare(errorTime(a)) }},
}

func column(name string, of func(*clients.Client) string) clientColumn {
	return clientColumn{name, func(c *clients.Client, _ time.Time) string { return cmp.Or(of(c), "-") },
		func(a, b *clients.Client) int { return cmp.Compare(of(a), of(b)) }}
}

func amount(name string, of func(*clients.Client) uint64, text func(int64) string) clientColumn {
	return clientColumn{name, func(c *clients.Client, _ time.Time) string { return text(int64(of(c))) },
		func(a, b *clients.Client) int { return cmp.Compare(of(b), of(a)) }}
}

func moment(name string, of func(*clients.Client) time.Time) clientColumn {
	return clientColumn{name, func(c *clients.Client, now time.Time) string { return ago(now, of(c)) },
		func(a, b *clients.Client) int { return of(b).Compare(of(a)) }}
}

func ago(now, t time.Time) string {
	return now.Sub(t).Truncate(time.Second).String() + " ago"
}

func errorTime(c *clients.Client) time.Time {
	if c.ErrorTime == nil {
		return time.Time{}
	}
	return *c.ErrorTime
}

func clientError(c *clients.Client, now time.Time) string {
	if c.ErrorTime == nil {
		return "-"
	}
	return ago(now, *c.ErrorTime) + ", " + c.Reason + ": " + c.LastError
}

func columnNames() string {
	var names []string
	for _, col := range clientColumns {
		names = append(names, strings.ToLower(col.name))
	}
	return strings.Join(names, ", ")
}

// printClients prints the table.
func printClients(to io.Writer, list []clients.Client, now time.Time) error {
	w := tabwriter.NewWriter(to, 0, 8, 2, ' ', 0)
	for i, col := range clientColumns {
		fmt.Fprint(w, strings.Repeat("\t", min(i, 1)), col.name)
	}
	fmt.Fprintln(w)
	for i := range list {
		for n, col := range clientColumns {
			fmt.Fprintf(w, "%s%s", strings.Repeat("\t", min(n, 1)), appendPlain(nil, col.text(&list[i], now)))
		}
		fmt.Fprintln(w)
	}
	return w.Flush()
}

package clients

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollway/rollway/internal/testkit"
)

var noon = time.Unix(1_800_000_000, 0)

func all(*Client) bool { return true }

func addr(text string) netip.Addr { return netip.MustParseAddr(text) }

// A client has one entry for each of its tokens and receivers, with what came and how it
// was turned away last.
func TestEntries(t *testing.T) {
	table := New(slog.New(slog.DiscardHandler))
	ok := Seen{Addr: addr("192.0.2.1"), Token: "w", Tenant: "shop", Receiver: "/api/logs", Agent: "curl/8.0 (x; y)", Requests: 1, Events: 3, Rejected: 1, Bytes: 100}
	table.Add(noon, &ok)
	ok.Addr = addr("::ffff:192.0.2.1")
	table.Add(noon.Add(time.Second), &ok)
	refused := Seen{Addr: addr("192.0.2.1"), Receiver: "/api/logs", Requests: 1, Refused: Reason(401), Path: "/api/logs", Text: strings.Repeat("é", 300)}
	table.Add(noon.Add(2*time.Second), &refused)
	for i := range 3 { // of one /64
		table.Add(noon, &Seen{Addr: addr(fmt.Sprintf("2001:db8::%d", i)), Receiver: "syslog", Requests: 1})
	}
	list := table.Clients(all)
	if len(list) != 3 {
		t.Fatalf("%d entries: %+v", len(list), list)
	}
	if c := list[0]; c.Refused != 1 || c.Reason != "unauthorized" || len(c.LastError) > maxText || !c.ErrorTime.Equal(noon.Add(2*time.Second)) || c.Token != "" {
		t.Errorf("%+v", c)
	}
	if c := list[1]; c.Client != "192.0.2.1" || c.Requests != 2 || c.Events != 6 || c.Rejected != 2 || c.Bytes != 200 || c.Agent != "curl/8.0" || c.Tenant != "shop" ||
		!c.FirstSeen.Equal(noon) || !c.LastSeen.Equal(noon.Add(time.Second)) || c.ErrorTime != nil {
		t.Errorf("%+v", c)
	}
	if c := list[2]; c.Client != "2001:db8::/64" || c.Requests != 3 {
		t.Errorf("%+v", c)
	}
	if list := table.Clients(func(c *Client) bool { return c.Tenant == "shop" }); len(list) != 1 || list[0].Token != "w" {
		t.Errorf("of shop: %+v", list)
	}
}

// However many addresses a network has, others keep their entries; and whoever had a
// request accepted keeps its own before addresses that were only turned away.
func TestNoNetworkPushesOutOthers(t *testing.T) {
	table := New(slog.New(slog.DiscardHandler))
	for i := range 10 {
		table.Add(noon, &Seen{Addr: addr(fmt.Sprintf("198.51.%d.1", i)), Token: "w", Receiver: "/api/logs", Requests: 1, Events: 1})
	}
	for i := range 20_000 {
		table.Add(noon.Add(time.Duration(i)), &Seen{Addr: addr(fmt.Sprintf("203.0.113.%d", i%256)), Receiver: fmt.Sprint("r", i), Requests: 1})
		table.Add(noon.Add(time.Duration(i)), &Seen{Addr: addr(fmt.Sprintf("2001:db8:%x::1", i)), Receiver: "/api/logs", Requests: 1, Refused: "rate"})
	}
	list := table.Clients(func(c *Client) bool { return c.Token == "w" })
	if len(list) != 10 {
		t.Errorf("%d of 10 clients are left", len(list))
	}
	if n := len(table.Clients(all)); n > len(table.shards)*shardSize {
		t.Errorf("%d entries", n)
	}
	for i := range table.shards {
		sh, sum := &table.shards[i], 0
		for _, n := range sh.networks {
			sum += n
		}
		if sum != len(sh.entries) {
			t.Errorf("shard %d has %d entries and counts %d", i, len(sh.entries), sum)
		}
	}
}

// Refusals are counted apart up to a number of networks for each receiver and reason.
// Their sum is exact.
func TestRefusals(t *testing.T) {
	table := New(slog.New(slog.DiscardHandler))
	for i := range 5000 {
		table.Add(noon, &Seen{Addr: addr(fmt.Sprintf("10.%d.%d.1", i/256, i%256)), Receiver: "/api/logs", Requests: 1, Refused: Reason(401)})
	}
	table.Add(noon, &Seen{Addr: addr("192.0.2.77"), Token: "w", Receiver: "syslog", Refused: Connections})
	table.Add(noon, &Seen{Addr: addr("192.0.2.78"), Token: "w", Receiver: "syslog", Refused: Connections})
	table.Add(noon, &Seen{Addr: addr("192.0.2.78"), Receiver: "syslog", Refused: "made up"})
	sums, other := map[string]uint64{}, uint64(0)
	list := table.Refusals()
	for _, r := range list {
		sums[r.Receiver+" "+r.Reason] += r.Count
		if r.Network == "other" {
			other += r.Count
		}
		if r.Receiver == "syslog" && r.Reason == Connections && (r.Network != "192.0.2.0/24" || r.Count != 2 || r.Token != "w") {
			t.Errorf("%+v", r)
		}
	}
	if len(list) != maxOfClass+3+len(Reasons()) || sums["/api/logs unauthorized"] != 5000 || other != 5000-maxOfClass || sums["syslog other"] != 1 {
		t.Errorf("%d series, %v, %d of others", len(list), sums, other)
	}
}

// The first refusal is logged at once, and then one line a minute says how many there were.
// An example has no bytes that control a terminal.
func TestOneLineAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &testkit.Buffer{}
		table := New(slog.New(slog.NewTextHandler(log, nil)))
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); table.Watch(ctx) }()
		begin := time.Now()
		for i := 0; time.Since(begin) < 150*time.Second; i++ {
			table.Add(time.Now(), &Seen{Addr: addr("192.0.2.1"), Receiver: "/api/logs", Requests: 1, Refused: Reason(401), Path: "/p\u202e", Text: fmt.Sprintf("no \x1b[2J\u009b token %d", i)})
			time.Sleep(time.Second)
		}
		table.Add(time.Now(), &Seen{Addr: addr("192.0.2.1"), Receiver: "syslog", Requests: 1, Refused: Handshake})
		cancel()
		<-done
		lines := strings.Split(strings.TrimSpace(log.String()), "\n")
		if len(lines) != 5 {
			t.Fatalf("%d lines:\n%s", len(lines), log.String())
		}
		sum := 0
		for _, line := range lines {
			var n int
			if _, err := fmt.Sscanf(line[strings.Index(line, "count="):], "count=%d", &n); err != nil {
				t.Fatal(err)
			}
			sum += n
			if strings.ContainsAny(line, "\x1b\u009b\u202e") || !strings.Contains(line, "client=192.0.2.1") {
				t.Errorf("%q", line)
			}
		}
		if sum != 151 {
			t.Errorf("%d are counted:\n%s", sum, log.String())
		}
	})
}

// Every reason of a status is one of Reasons.
func TestReason(t *testing.T) {
	for code := range 600 {
		if reason := Reason(code); (reason != "") != (code >= 400) {
			t.Errorf("%d: %q", code, reason)
		}
	}
}

func TestAddDoesNotAllocate(t *testing.T) {
	table := New(slog.New(slog.DiscardHandler))
	s := Seen{Addr: addr("192.0.2.1"), Token: "w", Receiver: "/api/logs", Agent: "curl/8.0 x", Requests: 1, Events: 1}
	table.Add(noon, &s)
	if n := testing.AllocsPerRun(1000, func() { table.Add(noon, &s) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkAdd(b *testing.B) {
	table := New(slog.New(slog.DiscardHandler))
	b.ReportAllocs()
	b.RunParallel(func(p *testing.PB) {
		for p.Next() {
			table.Add(noon, &Seen{Addr: addr("192.0.2.1"), Token: "w", Receiver: "/api/logs", Agent: "curl/8.0 x", Requests: 1, Events: 1})
		}
	})
}

package clients

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollway/rollway/internal/testkit"
)

var curl = http.Header{"User-Agent": {"curl/8.0 (x; y)"}}

var noon = time.Unix(1_800_000_000, 0)

func addr(text string) netip.Addr { return netip.MustParseAddr(text) }

// A client has one entry for each of its tokens and receivers, with what came and how it
// was turned away last.
func TestEntries(t *testing.T) {
	table := New(slog.New(slog.DiscardHandler))
	ok := Seen{Addr: addr("192.0.2.1"), Token: "w", Tenant: "shop", Receiver: "/api/logs", Header: curl, Requests: 1, Events: 3, Rejected: 1, Bytes: 100}
	table.Add(noon, &ok)
	ok.Addr = addr("::ffff:192.0.2.1")
	table.Add(noon.Add(time.Second), &ok)
	refused := Seen{Addr: addr("192.0.2.1"), Receiver: "/api/logs", Requests: 1, Refused: Reason(401), Path: "/api/logs", Text: strings.Repeat("é", 300)}
	table.Add(noon.Add(2*time.Second), &refused)
	for i := range 3 { // of one /64
		table.Add(noon, &Seen{Addr: addr(fmt.Sprintf("2001:db8::%d", i)), Receiver: "syslog", Requests: 1})
	}
	list := table.Clients("")
	if len(list) != 3 {
		t.Fatalf("%d entries: %+v", len(list), list)
	}
	if c := list[0]; c.Refused != 1 || !strings.HasPrefix(c.Error, "unauthorized: é") || len(c.Error) > 220 || !c.ErrorTime.Equal(noon.Add(2*time.Second)) || c.Token != "" {
		t.Errorf("%+v", c)
	}
	if c := list[1]; c.Client != "192.0.2.1" || c.Requests != 2 || c.Events != 6 || c.Rejected != 2 || c.Bytes != 200 || c.Agent != "curl/8.0" || c.Tenant != "shop" ||
		!c.First.Equal(noon) || !c.Last.Equal(noon.Add(time.Second)) || !c.ErrorTime.IsZero() {
		t.Errorf("%+v", c)
	}
	if c := list[2]; c.Client != "2001:db8::/64" || c.Requests != 3 {
		t.Errorf("%+v", c)
	}
	if list := table.Clients("shop"); len(list) != 1 || list[0].Token != "w" {
		t.Errorf("of shop: %+v", list)
	}
}

// However many addresses a network has, others keep their entries; and a client that
// had a request accepted keeps its entry before addresses that were only turned away.
func TestNoNetworkPushesOutOthers(t *testing.T) {
	table := New(slog.New(slog.DiscardHandler))
	for i := range 10 {
		table.Add(noon, &Seen{Addr: addr(fmt.Sprintf("198.51.%d.1", i)), Token: "w", Receiver: "/api/logs", Requests: 1, Events: 1})
	}
	for i := range 20_000 {
		table.Add(noon.Add(time.Duration(i)), &Seen{Addr: addr(fmt.Sprintf("203.0.113.%d", i%256)), Receiver: fmt.Sprint("r", i), Requests: 1})
		table.Add(noon.Add(time.Duration(i)), &Seen{Addr: addr(fmt.Sprintf("2001:db8:%x::1", i)), Receiver: "/api/logs", Requests: 1, Refused: "too_many_requests"})
	}
	left := 0
	for _, c := range table.Clients("") {
		if c.Token == "w" {
			left++
		}
	}
	if left != 10 {
		t.Errorf("%d of 10 clients are left", left)
	}
	if n := len(table.Clients("")); n > len(table.shards)*shardSize {
		t.Errorf("%d entries", n)
	}
}

// Refusals are counted apart up to a number of combinations. Their sum is exact.
func TestRefusals(t *testing.T) {
	table := New(slog.New(slog.DiscardHandler))
	for range 2 {
		table.Add(noon, &Seen{Addr: addr("192.0.2.77"), Token: "w", Receiver: "syslog", Refused: Connections})
	}
	for i := range 5000 {
		table.Add(noon, &Seen{Addr: addr(fmt.Sprintf("10.%d.%d.1", i/256, i%256)), Receiver: "/api/logs", Requests: 1, Refused: Reason(401)})
	}
	for i := range 5000 {
		table.Add(noon, &Seen{Addr: addr("192.0.2.78"), Receiver: "syslog", Token: fmt.Sprint(i), Refused: Handshake})
	}
	list, sum := map[Refusal]uint64{}, uint64(0)
	table.Refusals(func(r Refusal, n uint64) {
		list[r] = n
		sum += n
	})
	if len(list) != 2*maxSeries+1 || sum != 10_002 || list[Refusal{"syslog", Connections, "w", "192.0.2.0/24"}] != 2 ||
		list[Refusal{"/api/logs", "unauthorized", "", "other"}] != 5000-(maxSeries-6) ||
		list[Refusal{"syslog", Handshake, "0", "other"}] != 1 || list[Refusal{"syslog", Handshake, "other", "other"}] != 5000-(maxSeries-1) {
		t.Errorf("%d series, sum %d: %v", len(list), sum, list)
	}
}

// One line a minute says how many refusals of a receiver and reason there were. It has no
// bytes that control a terminal.
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
		if len(lines) != 4 {
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

func TestReason(t *testing.T) {
	for code, want := range map[int]string{200: "", 304: "", 401: "unauthorized", 404: "not_found", 429: "too_many_requests", 503: "service_unavailable"} {
		if got := Reason(code); got != want {
			t.Errorf("%d: %q, want %q", code, got, want)
		}
	}
}

func TestAddDoesNotAllocate(t *testing.T) {
	table := New(slog.New(slog.DiscardHandler))
	s := Seen{Addr: addr("192.0.2.1"), Token: "w", Receiver: "/api/logs", Header: curl, Requests: 1, Events: 1}
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
			table.Add(noon, &Seen{Addr: addr("192.0.2.1"), Token: "w", Receiver: "/api/logs", Header: curl, Requests: 1, Events: 1})
		}
	})
}

// Of a path as long as a header may be only the beginning is searched for secrets.
// A line of the log has one of a class: the others are not searched.
func TestLongPathIsCut(t *testing.T) {
	path := "/api/0123456789abcdef/" + strings.Repeat("/abc-def.ghi", 5000)
	if got := withoutSecrets(path); len(got) > 200 || !strings.HasPrefix(got, "/api/…//abc-def.ghi/") {
		t.Errorf("%d bytes: %.100s", len(got), got)
	}
	table := New(slog.New(slog.DiscardHandler))
	refused := Seen{Receiver: "other", Requests: 1, Refused: Reason(404), Path: path}
	table.Add(time.Now(), &refused)
	if n := testing.AllocsPerRun(100, func() { table.Add(time.Now(), &refused) }); n > 3 {
		t.Errorf("%v allocations for one more of a class", n)
	}
}

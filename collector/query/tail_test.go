package query

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rollway/rollway/collector/journal"
	"github.com/rollway/rollway/internal/disktest"
)

// event is one server-sent event, or a block without data: then data is empty.
type event struct {
	id, name, data string
	comment        bool
}

// events is a client of /api/tail.
type events struct {
	t    testing.TB
	resp *http.Response
	r    *bufio.Reader
	last string // the last id seen
}

func openTail(t testing.TB, base, params, lastID string) *events {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	t.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/api/tail"+params, nil)
	if err != nil {
		t.Fatal(err)
	}
	if lastID != "" {
		req.Header.Set("Last-Event-ID", lastID)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	if resp.StatusCode != 200 || resp.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatalf("tail: %s, %v", resp.Status, resp.Header)
	}
	e := &events{t: t, resp: resp, r: bufio.NewReaderSize(resp.Body, 1<<20)}
	if first := e.block(); !first.comment || first.data != "" {
		t.Fatalf("the stream begins with %+v", first)
	}
	return e
}

// block reads up to the next empty line.
func (e *events) block() event {
	e.t.Helper()
	var ev event
	for {
		line, err := e.r.ReadString('\n')
		if err != nil {
			e.t.Errorf("read an event: %v", err)
			return event{name: "broken"}
		}
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		switch {
		case line == "\n":
			return ev
		case line[0] == ':':
			ev.comment = true
		case name == "id":
			ev.id, e.last = value, value
		case name == "event":
			ev.name = value
		case name == "data":
			ev.data = value
		}
	}
}

// next skips heartbeats.
func (e *events) next() event {
	e.t.Helper()
	for {
		if ev := e.block(); ev.data != "" || ev.name != "" {
			return ev
		}
	}
}

// want reads one event for each line, with ids from offset first on.
func (e *events) want(first int, lines ...string) {
	e.t.Helper()
	for i, line := range lines {
		if ev := e.next(); ev.data != line || ev.id != fmt.Sprint(first+i) || ev.name != "" {
			e.t.Fatalf("got %+v, want offset %d, %s", ev, first+i, line)
		}
	}
}

func TestTail(t *testing.T) {
	s := newStore(t)
	all := numbered(t, s, 20, 5)
	a, base := serve(t, s, Options{})

	atEnd := openTail(t, base, "", "")
	fromStart := openTail(t, base, "?from=0", "")
	fromMiddle := openTail(t, base, "?from=7", "")
	since := openTail(t, base, "?since=2026-05-28T00:00:18Z", "")
	warnings := openTail(t, base, "?from=0&q=level%3E%3Dwarn", "")
	resumed := openTail(t, base, "?from=0", "12")
	fromStart.want(0, all...)
	fromMiddle.want(7, all[7:]...)
	since.want(18, all[18:]...)
	warnings.want(0, all[0])
	warnings.want(10, all[10])
	resumed.want(13, all[13:]...)

	live := []string{testLine(30, "INFO", "live"), testLine(31, "WARN", "live")}
	s.add(t, live...)
	for _, e := range []*events{atEnd, fromStart, fromMiddle, since, resumed} {
		e.want(20, live...)
	}
	warnings.want(21, live[1])
	if n := a.Stats().RunningTails; n != 6 {
		t.Errorf("%d tails run", n)
	}
	for _, e := range []*events{atEnd, fromStart, fromMiddle, since, warnings, resumed} {
		e.resp.Body.Close()
	}
	waitFor(t, "the tails' end", func() bool { return a.Stats().RunningTails == 0 })
}

// TestTailResumes cuts a client off again and again while lines arrive, and
// checks that it gets each line once and in order.
func TestTailResumes(t *testing.T) {
	s := newStore(t)
	const n, size = 3000, 10
	_, base := serve(t, s, Options{Heartbeat: 5 * time.Millisecond})
	var adding sync.WaitGroup
	adding.Go(func() {
		for i := 0; i < n; i += size {
			var lines []string
			for k := range size {
				lines = append(lines, testLine(i+k, []string{"INFO", "WARN"}[k%2], "x"))
			}
			s.add(t, lines...)
		}
	})
	r := rand.New(rand.NewPCG(1, 2))
	want, lastID, connections := 1, "", 0
	for want < n {
		e := openTail(t, base, "?from=0&q=level%3Dwarn", lastID)
		connections++
		for range 1 + r.IntN(200) {
			ev := e.block()
			if ev.name != "" {
				t.Fatalf("unexpected %+v", ev)
			}
			if ev.data != "" {
				if line := testLine(want, "WARN", "x"); ev.data != line || ev.id != fmt.Sprint(want) {
					t.Fatalf("got %+v, want offset %d", ev, want)
				}
				want += 2
			}
			if want >= n {
				break
			}
		}
		lastID = e.last
		e.resp.Body.Close()
	}
	adding.Wait()
	if connections < 5 {
		t.Errorf("only %d connections: the test proves little", connections)
	}
}

// TestHeartbeat checks that a quiet tail sends comments, and that the id moves on
// over lines that do not match.
func TestHeartbeat(t *testing.T) {
	s := newStore(t)
	numbered(t, s, 20, 5)
	_, base := serve(t, s, Options{Heartbeat: 20 * time.Millisecond})
	e := openTail(t, base, "?from=0&q=absent", "")
	// One that comes before the last line is read has the id up to there.
	for id := ""; id != "19"; {
		ev := e.block()
		if id = ev.id; !ev.comment || ev.data != "" || !slices.Contains([]string{"4", "9", "14", "19"}, id) {
			t.Fatalf("a heartbeat on the way is %+v", ev)
		}
	}
	if ev := e.block(); !ev.comment || ev.data != "" || ev.id != "" {
		t.Errorf("the heartbeat after the last line is %+v", ev)
	}
	again := openTail(t, base, "", e.last)
	line := testLine(1, "INFO", "new")
	s.add(t, line)
	again.want(20, line)
}

func TestTailTellsOfGaps(t *testing.T) {
	s := openStore(t, journal.Options{SegmentBytes: 64 << 10, RetainBytes: 128 << 10, Disk: disktest.NewMem()})
	all := numbered(t, s, 5000, 50)
	waitFor(t, "retention", func() bool { return s.First() > 100 && s.Stats().Bytes <= 128<<10 })
	_, base := serve(t, s, Options{})
	e := openTail(t, base, "", "2")
	var gap struct {
		From, To, Missed uint64
		Reason           string
	}
	ev := e.next()
	if err := json.Unmarshal([]byte(ev.data), &gap); err != nil || ev.name != "gap" || ev.id != fmt.Sprint(gap.To-1) || gap.From != 3 || gap.Missed != gap.To-3 || !strings.Contains(gap.Reason, "deleted by retention") {
		t.Fatalf("got %+v, %v", ev, err)
	}
	e.want(int(gap.To), all[gap.To:]...)
}

// TestTailAheadOfAJournal resumes at an offset that a real journal never had.
func TestTailAheadOfAJournal(t *testing.T) {
	s := newStore(t)
	numbered(t, s, 3, 1)
	_, base := serve(t, s, Options{})
	e := openTail(t, base, "", "700")
	if ev := e.next(); ev.name != "gap" || ev.id != "2" || !strings.HasPrefix(ev.data, `{"from":701,"to":3,"missed":0,`) {
		t.Errorf("got %+v", ev)
	}
	line := testLine(4, "INFO", "x")
	s.add(t, line)
	e.want(3, line)
}

func TestTailEnds(t *testing.T) {
	m := newStore(t)
	numbered(t, m, 2, 1)
	a, base := serve(t, m, Options{})
	e := openTail(t, base, "", "")
	a.Close()
	if ev := e.next(); ev.name != "end" || ev.data != `{"reason":"the collector is shutting down"}` {
		t.Errorf("after Close: %+v", ev)
	}
	if _, err := e.r.ReadByte(); err != io.EOF {
		t.Errorf("the stream goes on: %v", err)
	}

	_, base = serve(t, m, Options{})
	e = openTail(t, base, "", "")
	m.Close()
	if ev := e.next(); ev.name != "end" {
		t.Errorf("after the source's end: %+v", ev)
	}

	broken := newStore(t)
	numbered(t, broken, 2, 1)
	failures := 0
	broken.before = func(uint64) error {
		if failures++; failures == 2 {
			return nil
		}
		return errors.New("disk failed")
	}
	_, base = serve(t, broken, Options{})
	e = openTail(t, base, "?from=0", "")
	e.want(0, testLine(0, "WARN", "line"))
	if ev := e.next(); ev.name != "end" || ev.data != `{"reason":"read the journal: disk failed"}` {
		t.Errorf("after failures: %+v", ev)
	}
}

func TestBadTails(t *testing.T) {
	_, base := serve(t, newStore(t), Options{MaxTails: 1})
	get := func(params, lastID string) (int, string, http.Header) {
		req, _ := http.NewRequest(http.MethodGet, base+"/api/tail"+params, nil)
		req.Header.Set("Last-Event-ID", lastID)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, _ := io.ReadAll(resp.Body)
		return resp.StatusCode, string(body), resp.Header
	}
	for _, c := range [][3]string{
		{"?q=(", "", "query column 2"}, {"?limit=5", "", "unknown parameter"}, {"?from=x", "", "parameter from"}, {"?since=x", "", "parameter since"},
		{"", "x", "header Last-Event-ID"}, {"", "18446744073709551615", "header Last-Event-ID"},
	} {
		if status, body, _ := get(c[0], c[1]); status != 400 || !strings.Contains(body, c[2]) {
			t.Errorf("%v: %d, %s", c, status, body)
		}
	}
	openTail(t, base, "", "")
	if status, body, h := get("", ""); status != 503 || h.Get("Retry-After") == "" || !strings.Contains(body, "1 tails are running") {
		t.Errorf("beyond the limit: %d, %s", status, body)
	}
}

// TestSlowTail has one client that never reads: the other one gets everything,
// and the slow one is cut off.
func TestSlowTail(t *testing.T) {
	s := newStore(t)
	a, base := serve(t, s, Options{WriteTimeout: 2 * time.Second}) // time enough for the fast one on a busy machine
	conn, err := net.Dial("tcp", strings.TrimPrefix(base, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "GET /api/tail?from=0 HTTP/1.1\r\nHost: localhost\r\n\r\n")
	fast := openTail(t, base, "?from=0", "")
	waitFor(t, "both tails", func() bool { return a.Stats().RunningTails == 2 })
	long := strings.Repeat("x", 10<<10)
	for i := range 2000 {
		line := testLine(i, "INFO", long)
		s.add(t, line)
		fast.want(i, line)
	}
	waitFor(t, "the slow tail's end", func() bool { return a.Stats().RunningTails == 1 })
}

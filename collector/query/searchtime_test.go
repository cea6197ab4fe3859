package query

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollway/rollway/collector/journal"
	"github.com/rollway/rollway/internal/disktest"
)

// slowClient takes each piece of an answer only after take has returned.
type slowClient struct {
	*httptest.ResponseRecorder
	take func()
}

func (c *slowClient) Write(p []byte) (int, error) {
	c.take()
	return c.ResponseRecorder.Write(p)
}

// searched has a new API over m answer a query, to a client.
func searched(t *testing.T, m *store, o Options, ctx context.Context, params string, take func()) (*httptest.ResponseRecorder, Stats) {
	t.Helper()
	a, err := over(m, o)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	req := httptest.NewRequest("GET", "/api/query?"+params, nil).WithContext(ctx)
	req.Header.Set("TE", "trailers")
	w := httptest.NewRecorder()
	a.ServeQuery(&slowClient{w, take}, req)
	return w, a.Stats()
}

// A query that has searched for SearchTime ends, and says where it can go on.
func TestSearchTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newStore(t)
		m.before = func(uint64) error { time.Sleep(time.Second); return nil }
		all := numbered(t, m, 300, 10)
		begin := time.Now()
		w, _ := searched(t, m, Options{SearchTime: 10 * time.Second}, t.Context(), "", func() {})
		if took := time.Since(begin); took < 10*time.Second || took > 12*time.Second {
			t.Errorf("it has searched for %v", took)
		}
		next, err := strconv.Atoi(w.Header().Get("Rollway-Next"))
		if err != nil || next < 90 || next > 120 || w.Body.String() != strings.Join(all[:next], "\n")+"\n" {
			t.Errorf("next %q, %v, after %d lines", w.Header().Get("Rollway-Next"), err, strings.Count(w.Body.String(), "\n"))
		}
		if text := w.Header().Get("Rollway-Error"); !strings.Contains(text, "searched for 10s, which is the limit") {
			t.Errorf("error %q", text)
		}
		w, _ = searched(t, m, Options{SearchTime: 10 * time.Second}, t.Context(), fmt.Sprintf("from=%d&limit=50", next), func() {})
		if want := strings.Join(all[next:next+50], "\n") + "\n"; w.Body.String() != want || w.Header().Get("Rollway-Error") != "" {
			t.Errorf("it goes on with %.200q, %q", w.Body, w.Header().Get("Rollway-Error"))
		}
		w, _ = searched(t, m, Options{SearchTime: 5 * time.Second}, t.Context(), "last=300", func() {})
		if w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), "searched for 5s") {
			t.Errorf("last: %d %s", w.Code, w.Body)
		}
	})
}

// The time that its client takes for an answer is no part of it.
func TestSearchTimeWithoutTheClients(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newStore(t)
		m.before = func(uint64) error { time.Sleep(100 * time.Millisecond); return nil }
		all := numbered(t, m, 300, 10)
		begin := time.Now()
		w, _ := searched(t, m, Options{SearchTime: 10 * time.Second}, t.Context(), "", func() { time.Sleep(20 * time.Second) })
		if w.Body.String() != strings.Join(all, "\n")+"\n" || w.Header().Get("Rollway-Error") != "" {
			t.Errorf("%d lines, %q", strings.Count(w.Body.String(), "\n"), w.Header().Get("Rollway-Error"))
		}
		if took := time.Since(begin); took < 30*time.Second {
			t.Errorf("the client took %v", took)
		}
	})
}

// The search ends soon after its client has gone, also within a frame.
func TestSearchEndsWithItsClient(t *testing.T) {
	m := newStore(t)
	const many = 50_000
	numbered(t, m, many, many)
	ctx, gone := context.WithCancel(t.Context())
	_, stats := searched(t, m, Options{}, ctx, "", gone)
	if line := len(testLine(0, "INFO", "line")); stats.Scanned > 4*tickBytes/uint64(line) {
		t.Errorf("%d of %d lines were looked at", stats.Scanned, many)
	}
}

// A query that has matched lines for SearchCPU ends, and says what it has not searched.
// Neither the time to read lines nor that of its client counts.
func TestSearchCPU(t *testing.T) {
	m := newStore(t)
	line := `{"time":"2026-05-28T12:40:00.000000000Z","level":"INFO","msg":"m","attrs":{"a":"` + strings.Repeat("x", 10_000) + `"}}`
	const lines = 2000
	for range lines / 10 {
		m.add(t, slices.Repeat([]string{line}, 10)...)
	}
	q := url.QueryEscape("not (" + strings.TrimSuffix(strings.Repeat("attrs~xyz or ", MaxScans), " or ") + ")")
	w, stats := searched(t, m, Options{SearchCPU: 20 * time.Millisecond}, t.Context(), "q="+q, func() {})
	next, err := strconv.Atoi(w.Header().Get("Rollway-Next"))
	if text := w.Header().Get("Rollway-Error"); err != nil || next == 0 || next >= lines || stats.Scanned > uint64(next) || strings.Count(w.Body.String(), "\n") != next ||
		!strings.Contains(text, "used the processor for 20ms") || !strings.Contains(text, fmt.Sprintf("lines from offset %d on were not searched", next)) {
		t.Errorf("next %d, %v, scanned %d: %q", next, err, stats.Scanned, text)
	}
	synctest.Test(t, func(t *testing.T) {
		m := newStore(t)
		m.before = func(uint64) error { time.Sleep(time.Second); return nil }
		numbered(t, m, 100, 10)
		w, _ := searched(t, m, Options{SearchCPU: time.Second}, t.Context(), "", func() { time.Sleep(time.Second) })
		if w.Header().Get("Rollway-Error") != "" || w.Header().Get("Rollway-Next") != "100" {
			t.Errorf("%v", w.Header())
		}
	})
}

// What compares with values of a packed block, before its lines are made, counts as well.
func TestSearchCPUOfBlocks(t *testing.T) {
	s := openStore(t, journal.Options{SegmentBytes: 1 << 20, Pack: true, Disk: disktest.NewMem()})
	const lines = 6000
	for i := 0; i < lines; i += 50 {
		var some []string
		for n := range 50 {
			some = append(some, testLine(i+n, "INFO", strings.Repeat(fmt.Sprint("text ", i+n, " "), 60)))
		}
		s.add(t, some...)
	}
	waitFor(t, "packed segments", func() bool { return s.Stats().PackedSegments >= 3 })
	q := url.QueryEscape(strings.TrimSuffix(strings.Repeat(`re"(a|t)+[^ ]*(x|e)+[a-z]*[0-9]{9}" or `, 40), " or "))
	w, _ := searched(t, s, Options{SearchCPU: 30 * time.Millisecond}, t.Context(), "q="+q, func() {})
	text := w.Body.String() + w.Header().Get("Rollway-Error")
	if !strings.Contains(text, "used the processor for 30ms") {
		t.Errorf("%d %v %.300s", w.Code, w.Header(), text)
	}
}

// So does a tail; while lines cost it less than a tenth of its time it goes on.
func TestTailCPU(t *testing.T) {
	m := newStore(t)
	line := `{"time":"2026-05-28T12:40:00.000000000Z","level":"INFO","msg":"m","attrs":{"a":"` + strings.Repeat("x", 10_000) + `"}}`
	for range 200 {
		m.add(t, slices.Repeat([]string{line}, 10)...)
	}
	a, err := over(m, Options{SearchCPU: 20 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	w := httptest.NewRecorder()
	a.ServeTail(w, httptest.NewRequest("GET", "/api/tail?from=0&q="+url.QueryEscape(strings.TrimSuffix(strings.Repeat("attrs~xyz or ", MaxScans), " or ")), nil))
	if !strings.Contains(w.Body.String(), "event: end\ndata: {\"reason\":\"this tail has used the processor for ") {
		t.Errorf("%.300s", w.Body.String())
	}
}

// What compares with all attributes reads each line again for each term.
func TestMaxScans(t *testing.T) {
	if _, err := Parse(strings.Repeat("attrs~x ", MaxScans) + "attrs!~x"); err == nil || !strings.Contains(err.Error(), "at most 64: name the attributes") {
		t.Errorf("one more: %v", err)
	}
	if _, err := Parse(strings.Repeat("attrs~x ", MaxScans) + "attrs.a~x attrs=* x y"); err != nil {
		t.Error(err)
	}
	if _, err := Parse(strings.Repeat("attrs~x or ", 480) + "x"); err == nil {
		t.Error("480 comparisons with all attributes are taken")
	}
}

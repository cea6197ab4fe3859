package remote_test

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rollway/rollway/internal/testkit"
	"github.com/rollway/rollway/line"
	"github.com/rollway/rollway/remote"
	"github.com/rollway/rollway/slab"
)

func shop(tenant string) remote.Options {
	return remote.Options{
		Compress: remote.Gzip{},
		Timeout:  3 * time.Minute, // on a busy machine
		Loki:     remote.Loki{Labels: map[string]string{"app": "shop"}},
		Header:   http.Header{"X-Scope-OrgID": {tenant}},
	}
}

// at returns a line of a time and a level, without its newline.
func at(t time.Time, level, text string) string {
	return fmt.Sprintf(`{"time":%q,"level":%q,"msg":%q}`, t.UTC().Format(time.RFC3339Nano), level, text)
}

// The dialect against Grafana Loki itself.
func TestRealLoki(t *testing.T) {
	testkit.Nightly(t, testkit.Engines, "Grafana Loki, which is built from source")
	s := startLokiServer(t)
	t.Run("every line once, in the stream of its level, at its time", s.entries)
	t.Run("what it refuses is counted", s.refusals)
	t.Run("nothing but lines that are too long", s.tooLong)
	t.Run("one stream's late lines by their number", s.behind)
	t.Run("no tenant", s.unknownTenant)
	t.Run("rate limit", s.limited)
	t.Run("killed under load", s.killed)
}

func (s *lokiServer) entries(t *testing.T) {
	w := open(t, "loki+"+s.url, shop("entries"))
	began := time.Now().Add(-time.Minute)
	levels := []string{"TRACE", "DEBUG", "INFO", "WARN", "ERROR", "PANIC", "FATAL"}
	want := map[string]string{} // by line: its level's label and its timestamp
	var batch strings.Builder
	for i := range 3000 {
		when := began.Add(time.Duration(i) * time.Millisecond)
		level := levels[i%len(levels)]
		line := at(when, level, fmt.Sprintf("%d \"quoted\"\t\u2028 é %s", i, strings.Repeat("x", i%900)))
		label := map[string]string{"PANIC": "critical"}[level]
		if label == "" {
			label = strings.ToLower(level)
		}
		want[line] = fmt.Sprint(label, when.UnixNano())
		batch.WriteString(line + "\n")
		if i%500 == 499 {
			write(t, w, batch.String())
			batch.Reset()
		}
	}
	settled(t, w, 3000, 3000)
	found := 0
	for _, stream := range s.query(t, "entries", `{app="shop"}`, began.Add(-time.Second)) {
		last := int64(0)
		for _, v := range stream.Values {
			found++
			if got := stream.Stream["level"] + v[0]; want[v[1]] != got {
				t.Errorf("line %.80q is at %s, want %s", v[1], got, want[v[1]])
			}
			n, _ := strconv.ParseInt(v[0], 10, 64)
			if n < last {
				t.Errorf("%d comes after %d", n, last)
			}
			last = n
		}
	}
	if found != 3000 {
		t.Errorf("%d entries found, want 3000", found)
	}
}

// Lines that are too long or too old, among others and in several streams.
func (s *lokiServer) refusals(t *testing.T) {
	var told []string
	o := shop("refusals")
	o.OnError = func(err error) { told = append(told, err.Error()) }
	w := open(t, "loki+"+s.url, o)
	now := time.Now()
	var all strings.Builder
	lost := 0
	for i := range 200 {
		when, text := now.Add(time.Duration(i)*time.Microsecond), fmt.Sprintf("good %d", i)
		switch i {
		case 7, 8, 150:
			text = "bad " + strings.Repeat("long", 600)
			lost++
		case 50:
			when, text = now.Add(-30*24*time.Hour), "bad: old"
			lost++
		}
		all.WriteString(at(when, []string{"INFO", "WARN"}[i/20%2], text) + "\n")
	}
	write(t, w, all.String())
	w.Close()
	settled(t, w, 200, 200-lost)
	if d := w.Stats().Dropped; d != (line.Drops{Refused: uint64(lost)}) {
		t.Errorf("Dropped = %+v", d)
	}
	found := s.lines(t, "refusals", now.Add(-time.Hour))
	for line, n := range found {
		if n != 1 || strings.Contains(line, "bad") {
			t.Errorf("found %d of %.80q", n, line)
		}
	}
	if len(found) != 200-lost {
		t.Errorf("%d entries found, want %d", len(found), 200-lost)
	}
	w.Told()
	if said := strings.Join(told, "\n"); !strings.Contains(said, "max entry size") && !strings.Contains(said, "timestamp too old") {
		t.Errorf("OnError was told %q", told)
	}
}

// Refused lines do not hold up what comes after them, be they the first that
// this Loki is sent, and more than any batch has by mistake.
func (s *lokiServer) tooLong(t *testing.T) {
	w := open(t, "loki+"+s.url, shop("long"))
	now := time.Now()
	write(t, w, strings.Repeat(at(now, "INFO", strings.Repeat("long", 600))+"\n", 40)+at(now, "INFO", "good")+"\n")
	settled(t, w, 41, 1)
	if found := s.lines(t, "long", now.Add(-time.Second)); len(found) != 1 {
		t.Errorf("%d entries found, want 1", len(found))
	}
}

// What is too far behind its stream the ingester refuses, and says how many of
// how many: no request is repeated in parts for that.
func (s *lokiServer) behind(t *testing.T) {
	w := open(t, "loki+"+s.url, shop("behind"))
	now := time.Now()
	write(t, w, at(now, "INFO", "newest")+"\n")
	before := w.Stats().Requests
	var all strings.Builder
	for i := range 100 {
		when := now.Add(time.Duration(i) * time.Microsecond)
		text := fmt.Sprintf("good %d", i)
		if i%10 == 3 {
			when, text = now.Add(-100*time.Hour+time.Duration(i)), fmt.Sprintf("late %d", i)
		}
		all.WriteString(at(when, "INFO", text) + "\n")
	}
	write(t, w, all.String())
	settled(t, w, 101, 91)
	if n := w.Stats().Requests - before; n != 1 {
		t.Errorf("%d requests for what one answer told", n)
	}
	if found := s.lines(t, "behind", now.Add(-110*time.Hour)); len(found) != 91 {
		t.Errorf("%d entries found, want 91", len(found))
	}
}

func (s *lokiServer) unknownTenant(t *testing.T) {
	o := shop("")
	o.Header = nil
	w := open(t, "loki+"+s.url, o)
	n, err := w.Write([]byte(numbered(0, 3)))
	if n != 0 || err == nil || !strings.Contains(err.Error(), "401") || !strings.Contains(err.Error(), "X-Scope-OrgID") {
		t.Errorf("Write = %d, %v", n, err)
	}
	settled(t, w, 0, 0)
}

// Over its rate Loki answers 429: nothing is lost, it only takes longer.
func (s *lokiServer) limited(t *testing.T) {
	r := open(t, "loki+"+s.url, shop("slow"))
	// One request nearly uses up the burst, so the next is refused if it comes
	// within 8 s.
	w, err := slab.New(r, slab.Options{Full: slab.Block, SlabSize: 48 << 10, CloseTimeout: 2 * time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	for i := range 200 {
		if _, err := fmt.Fprintln(w, at(began.Add(time.Duration(i)*time.Microsecond), "INFO", fmt.Sprintf("%d %s", i, strings.Repeat("x", 400)))); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	settled(t, r, 200, 200)
	st := w.Stats()
	if st.Accepted != 200 || st.Written != 200 {
		t.Errorf("Stats %+v", st)
	}
	if st.Errors == 0 {
		t.Error("Loki never said 429")
	}
	if found := s.lines(t, "slow", began.Add(-time.Second)); len(found) != 200 {
		t.Errorf("%d entries found, want 200", len(found))
	}
}

// Loki is killed and started again, thrice, while producers write. Every line
// is there, and none twice: Loki knows an entry that comes again.
func (s *lokiServer) killed(t *testing.T) {
	r := open(t, "loki+"+s.url, shop("killed"))
	w, err := slab.New(r, slab.Options{Full: slab.Block, SlabSize: 8 << 10, CloseTimeout: 2 * time.Minute, FlushInterval: 5 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	var stop sync.WaitGroup
	done := make(chan struct{})
	counts := make([]int, producers)
	for p := range producers {
		stop.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-done:
					counts[p] = i
					return
				default:
				}
				if _, err := fmt.Fprintln(w, at(time.Now(), "INFO", fmt.Sprintf("p%d %d", p, i))); err != nil {
					t.Errorf("Write: %v", err)
				}
				if i%20 == 0 {
					time.Sleep(10 * time.Millisecond)
				}
			}
		})
	}
	for range 3 {
		at := w.Stats().Written
		eventually(t, "lines go on", func() bool { return w.Stats().Written > at+300 })
		s.kill()
		s.start(t)
	}
	close(done)
	stop.Wait()
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	all := 0
	for _, n := range counts {
		all += n
	}
	st := w.Stats()
	if int(st.Accepted) != all || int(st.Written) != all || st.Errors == 0 {
		t.Errorf("%d lines, Stats %+v", all, st)
	}
	settled(t, r, all, all)
	found, twice := map[string]int{}, 0
	for line, n := range s.lines(t, "killed", began.Add(-time.Second)) {
		_, msg, _ := strings.Cut(line, `"msg":`)
		found[strings.Trim(msg, `"}`)] += n
	}
	for p, n := range counts {
		for i := range n {
			switch key := fmt.Sprintf("p%d %d", p, i); found[key] {
			case 1:
			case 0:
				t.Errorf("line %s is missing", key)
			default:
				twice++
			}
		}
	}
	t.Logf("%d lines, %d twice", all, twice)
	if len(found) != all {
		t.Errorf("%d lines found, want %d", len(found), all)
	}
}

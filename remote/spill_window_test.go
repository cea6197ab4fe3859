package remote_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rollway/rollway/internal/testkit"
	"github.com/rollway/rollway/remote"
	"github.com/rollway/rollway/slab"
)

// padded are numbered lines of some 200 bytes.
func padded(from, to int) []byte {
	var b []byte
	for ; from < to; from++ {
		b = fmt.Appendf(b, `{"seq":%d,"pad":"%s"}`+"\n", from, strings.Repeat("p", 180))
	}
	return b
}

// A peer that answers late: nothing is dropped, the peer gets what it can take, and
// in order.
func TestSpillSlowPeer(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		latency time.Duration
		offered int // bytes a second
	}{
		{20 * time.Millisecond, 8 << 20},
		{100 * time.Millisecond, 4 << 20},
		{time.Second, 1 << 20},
	} {
		t.Run(c.latency.String(), func(t *testing.T) {
			peer := newKeyedPeer(t)
			peer.latency = c.latency
			peer.up()
			dst := open(t, peer.url(), remote.Options{Spill: spillTo(t)})
			rounds := testkit.Rounds(t, testkit.Kills, 2, 20)
			lines, lasts := 0, time.Duration(rounds)*time.Second
			o := slab.Options{}
			if rounds == 2 {
				o.MaxWait = 10 * time.Second // other tests run at the same time
			}
			w, err := slab.New(dst, o)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { w.Close() })
			perLine := len(padded(0, 1))
			began := time.Now()
			for time.Since(began) < lasts {
				due := int(time.Since(began).Seconds() * float64(c.offered) / float64(perLine))
				for due = min(due, lines+(256<<10)/perLine); lines < due; lines++ { // no more than half of slab's memory at once
					if _, err := w.Write(padded(lines, lines+1)); err != nil {
						t.Fatal(err)
					}
				}
				time.Sleep(time.Millisecond) // of the load, not of the test
			}
			delivered := dst.Stats().Written
			if err := w.Sync(); err != nil {
				t.Errorf("Sync = %v", err)
			}
			flush(t, dst)
			s, took := w.Stats(), time.Since(began)
			if s.Dropped.Total() != 0 || s.Written != uint64(lines) || s.Pending != 0 {
				t.Errorf("%d lines, slab's Stats = %+v", lines, s)
			}
			// What was written in the last two answers' time is on its way.
			if want := float64(lines) * (lasts - 2*c.latency - 200*time.Millisecond).Seconds() / lasts.Seconds(); rounds == 20 && float64(delivered) < 0.9*want {
				t.Errorf("%d of %d lines were delivered in time, want 0.9 of %.0f", delivered, lines, want)
			}
			peer.want(t, string(padded(0, lines)))
			t.Logf("%d lines, %d delivered by then, %v to the last; %d requests, %d at a time", lines, delivered, took.Round(time.Millisecond), len(peer.seen()), peer.most)
		})
	}
}

// A backlog is sent by several requests at a time where the peer answers late: each
// line once, and those of a request in order.
func TestSpillBacklog(t *testing.T) {
	t.Parallel()
	const latency = 50 * time.Millisecond
	size := testkit.Rounds(t, testkit.Kills, 32, 256) << 20
	var mu sync.Mutex
	parts := map[int]int{}                            // first line of a request, and the one behind its last
	keys, after := map[string]int{}, map[int]string{} // the end of the lines of a key; whom the request with that first line names
	waiting := map[int]string{}                       // the keys of requests that are not answered, by the end of their lines
	now, most, latest, late := 0, 0, 0, 0
	peer := newHome(t, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		mu.Lock()
		now++
		most = max(most, now)
		mu.Unlock()
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		from := 0
		fmt.Sscanf(string(body[:min(30, len(body))]), `{"seq":%d,`, &from)
		mu.Lock()
		if from < latest {
			late++
		}
		latest = from
		mu.Unlock()
		to := from
		for line := range bytes.Lines(body) {
			seq, _, _ := bytes.Cut(line[len(`{"seq":`):], []byte(","))
			if n, err := strconv.Atoi(string(seq)); err != nil || n != to {
				t.Errorf("%.40q follows line %d, %v", line, to-1, err)
			}
			to++
		}
		key, name := r.Header.Get("Idempotency-Key"), r.Header.Get("Idempotency-After")
		mu.Lock()
		if before := waiting[from]; before != "" && name != before {
			t.Errorf("the request from line %d names %q, but %q before it is not answered", from, name, before)
		}
		waiting[to] = key
		mu.Unlock()
		time.Sleep(latency) // of the peer, not of the test
		mu.Lock()
		defer mu.Unlock()
		now--
		delete(waiting, to)
		if parts[from] > 0 {
			t.Errorf("line %d came twice", from)
		}
		parts[from], keys[key] = to, to
		if name != "" {
			after[from] = name
		}
	}))
	o := remote.Options{Spill: spillTo(t)}
	if size < 256<<20 {
		o.MaxBatch = 1 << 20 // enough requests
	}
	w := open(t, "http://"+peer.addr+"/", o)
	lines := 0
	for bytes := 0; bytes < size; lines += 300 {
		p := padded(lines, lines+300)
		write(t, w, string(p))
		bytes += len(p)
	}
	peer.up()
	began := time.Now()
	flush(t, w)
	rate := float64(size) / 1e6 / time.Since(began).Seconds()
	eventually(t, "all requests have ended", func() bool { return w.Stats().Spill.InFlight == 0 })
	if s := balanced(t, w); s.Written != uint64(lines) || s.Pending != 0 {
		t.Errorf("Stats = %+v", s)
	}
	mu.Lock()
	defer mu.Unlock()
	at := 0
	for ; parts[at] > 0; at = parts[at] {
	}
	if at != lines {
		t.Errorf("the peer has the lines up to %d, want %d", at, lines)
	}
	for first, name := range after {
		if end := keys[name]; end == 0 || end > first { // less: those between were answered
			t.Errorf("the request from line %d names one that ends at %d", first, end)
		}
	}
	if size == 256<<20 && len(after) < len(parts)/2 || len(after) == 0 {
		t.Errorf("%d of %d requests name the one before them", len(after), len(parts))
	}
	t.Logf("%.0f MB/s with answers after %v, %d requests, up to %d at a time, %d read after the one that follows them", rate, latency, len(parts), most, late)
	if most < 2 || most > 8 {
		t.Errorf("%d requests at a time, want 2 to 8", most)
	}
	if size == 256<<20 && rate < 50 {
		t.Errorf("a backlog was sent at %.0f MB/s, want 50", rate)
	}
}

// A line for which the peer answers an error to any request that holds it is
// found, kept apart and counted, and nothing else is lost or waits for it.
func TestSpillPoison(t *testing.T) {
	t.Parallel()
	codes := []int{http.StatusBadRequest, http.StatusForbidden, http.StatusInternalServerError}
	if testkit.Rounds(t, testkit.Kills, 3, 4) == 4 { // it takes ten attempts
		codes = append(codes, http.StatusServiceUnavailable)
	}
	for _, code := range codes {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			t.Parallel()
			peer := newKeyedPeer(t)
			peer.poison, peer.code = `"seq":0}`, code
			spill := spillTo(t)
			var told told
			w := open(t, peer.url(), remote.Options{Spill: spill, OnError: told.note})
			write(t, w, numbered(0, 100)) // the first line of all, before the peer has accepted anything
			peer.up()
			eventually(t, "the peer refuses", func() bool { return w.Stats().Errors > 0 })
			for i := 1; i < 10; i++ {
				write(t, w, numbered(i*100, i*100+100))
			}
			flush(t, w)
			if s := balanced(t, w); s.Written != 999 || s.Dropped.Refused != 1 || s.Spill.DeadLetters != 1 || s.Pending != 0 {
				t.Errorf("Stats = %+v", s)
			}
			letters := filepath.Join(spill.Dir, "dead-letters.log")
			if got, err := os.ReadFile(letters); err != nil || string(got) != numbered(0, 1) {
				t.Errorf("the file of dead letters holds %q, %v", got, err)
			}
			got := map[string]bool{}
			for line := range strings.Lines(string(peer.bytes())) {
				got[line] = true
			}
			for line := range strings.Lines(numbered(1, 1000)) {
				if !got[line] {
					t.Fatalf("%q is missing", line)
				}
			}
			if len(got) != 999 || len(peer.bytes()) != len(numbered(1, 1000)) {
				t.Errorf("the peer has %d lines in %d bytes", len(got), len(peer.bytes()))
			}
			wantLoss(t, "Close", w.Close(), 1, fmt.Sprint("peer answers ", code))
			w.Told()
			if text := told.text(); !strings.Contains(text, fmt.Sprintf("1 lines refused or too large, now dropped; the first: peer answers %d", code)) {
				t.Errorf("OnError was told %q", text)
			}
		})
	}
}

// A peer that accepts nothing is the wrong one, or not set up: no line is to blame.
func TestSpillPeerThatAcceptsNothing(t *testing.T) {
	t.Parallel()
	peer := newKeyedPeer(t)
	peer.up()
	spill := spillTo(t)
	w := open(t, peer.url(), remote.Options{Spill: spill})
	write(t, w, numbered(0, 10))
	flush(t, w)
	peer.answer(status(http.StatusForbidden, ""))
	for i := range 10 {
		write(t, w, numbered(10+i*10, 20+i*10))
		n := len(peer.seen())
		eventually(t, "another attempt", func() bool { return len(peer.seen()) > n })
	}
	if s := balanced(t, w); s.Written != 10 || s.Dropped.Total() != 0 || s.Spill.Lines != 100 {
		t.Errorf("Stats = %+v", s)
	}
	peer.heal()
	flush(t, w)
	if s := balanced(t, w); s.Written != 110 || s.Dropped.Total() != 0 {
		t.Errorf("Stats = %+v", s)
	}
	if _, err := os.Stat(filepath.Join(spill.Dir, "dead-letters.log")); err == nil {
		t.Error("there is a file of dead letters")
	}
}

package remote_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rollway/rollway/line"
	"github.com/rollway/rollway/remote"
)

// When there is no room, the caller keeps its lines and is told; when the peer
// is back there is room again.
func TestSpillFullRefuses(t *testing.T) {
	t.Parallel()
	peer := newKeyedPeer(t)
	spill := spillTo(t)
	spill.MaxBytes = 100_000
	w := open(t, peer.url(), remote.Options{Spill: spill})
	n := 0
	for ; n < 10_000; n++ {
		p := numbered(n*10, n*10+10)
		got, err := w.Write([]byte(p))
		if err == nil {
			continue
		}
		if got != 0 || errors.Is(err, os.ErrClosed) || !strings.Contains(err.Error(), "no room in the spool") || !strings.Contains(err.Error(), "bound of 100000") {
			t.Fatalf("Write = %d, %v", got, err)
		}
		break
	}
	s := balanced(t, w)
	if s.Pending != uint64(n*10) || s.Spill.Lines != s.Pending || s.Returned != 10 || s.Dropped.Total() != 0 || s.Spill.Bytes > spill.MaxBytes ||
		s.Spill.Bytes < spill.MaxBytes/2 || s.Spill.LastError == nil || !strings.Contains(s.Spill.LastError.Error(), "no room") || s.Spill.LastErrorTime.IsZero() {
		t.Fatalf("after %d writes Stats = %+v", n, s)
	}
	peer.up()
	flush(t, w)
	write(t, w, numbered(n*10, n*10+10))
	flush(t, w)
	peer.want(t, numbered(0, n*10+10))
	settled(t, w, n*10+10, n*10+10)
}

// Under DropOldest it is the oldest lines that go, and they are counted.
func TestSpillFullDropsOldest(t *testing.T) {
	t.Parallel()
	peer := newKeyedPeer(t)
	spill := spillTo(t)
	spill.MaxBytes, spill.DropOldest = 100_000, true
	var told told
	w := open(t, peer.url(), remote.Options{Spill: spill, OnError: told.note})
	for n := range 1000 {
		write(t, w, numbered(n*10, n*10+10))
	}
	s := balanced(t, w)
	if s.Accepted != 10_000 || s.Dropped.Expired < 5000 || s.Dropped.Total() != s.Dropped.Expired || s.Spill.TooOld != 0 || s.Spill.Bytes > spill.MaxBytes || s.Returned != 0 {
		t.Fatalf("Stats = %+v", s)
	}
	synced := int(s.Dropped.Expired)
	err := w.Sync()
	wantWaiting(t, "Sync", err, 10_000-synced)
	wantLoss(t, "Sync", err, synced, "no more room on disk")
	if err := w.Sync(); errors.Is(err, line.ErrLost) {
		t.Errorf("another Sync = %v, want each loss once", err)
	}
	peer.up()
	flush(t, w)
	s = balanced(t, w)
	// What was on its way when its place was taken was delivered all the same.
	got := string(peer.bytes())
	lost := int(s.Dropped.Expired)
	notices := notice.FindAllString(got, -1)
	got = notice.ReplaceAllString(got, "")
	announced := 0
	for _, n := range notices {
		var lines int
		if _, err := fmt.Sscanf(n[strings.Index(n, "rollway: "):], "rollway: %d lines dropped", &lines); err != nil || !strings.Contains(n, `"reason":"disk buffer full"`) {
			t.Errorf("notice %q: %v", n, err)
		}
		announced += lines
	}
	if announced != lost || uint64(len(notices)) != s.Spill.Notices {
		t.Errorf("%d notices, of %d lines; %d were lost", len(notices), announced, lost)
	}
	if strings.Count(got, "\n") != 10_000-lost || s.Written != uint64(10_000-lost) || s.Pending != 0 {
		t.Errorf("%d lines arrived, Stats = %+v", strings.Count(got, "\n"), s)
	}
	if rest := numbered(lost+1000, 10_000); !strings.HasSuffix(got, rest) {
		t.Errorf("the newest lines did not arrive")
	}
	if err := w.Close(); lost > synced {
		wantLoss(t, "Close", err, lost-synced, "no more room on disk")
	} else if err != nil {
		t.Errorf("Close = %v, and Sync has told all losses", err)
	}
	w.Told()
	if text := told.text(); !strings.Contains(text, "lines dropped from disk") {
		t.Errorf("OnError was told %q", text)
	}
}

// notice matches a line that announces a loss.
var notice = regexp.MustCompile(`(?m)^.*"msg":"rollway: \d+ lines? dropped".*\n`)

func TestSpillMaxAge(t *testing.T) {
	t.Parallel()
	peer := newKeyedPeer(t)
	spill := spillTo(t)
	spill.MaxAge = 500 * time.Millisecond
	w := open(t, peer.url(), remote.Options{Spill: spill})
	write(t, w, numbered(0, 10))
	eventually(t, "the lines are too old", func() bool { return w.Stats().Dropped.Expired == 10 })
	peer.up()
	eventually(t, "the loss is announced", func() bool { return w.Stats().Spill.Notices == 1 })
	if s := balanced(t, w); s.Dropped.Expired != 10 || s.Spill.TooOld != 10 || s.Written != 0 || s.Pending != 0 {
		t.Errorf("Stats = %+v", s)
	}
	write(t, w, numbered(10, 20))
	flush(t, w)
	got := string(peer.bytes())
	if first := notice.FindString(got); !strings.HasPrefix(got, first) || !strings.Contains(first, "10 lines dropped") || !strings.Contains(first, "too old") || got[len(first):] != numbered(10, 20) {
		t.Errorf("the peer took %q", got)
	}
}

// Damage costs the lines that it hits, and is counted and told.
func TestSpillDamaged(t *testing.T) {
	t.Parallel()
	peer := newKeyedPeer(t)
	o := remote.Options{Spill: spillTo(t), CloseTimeout: 10 * time.Millisecond}
	w := open(t, peer.url(), o)
	for n := range 100 {
		write(t, w, numbered(n*10, n*10+10))
	}
	w.Close()
	files, err := filepath.Glob(filepath.Join(o.Spill.Dir, "*.spool"))
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	b, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	at := strings.Index(string(b), `"seq":555}`)
	b[at+7] = 'X'
	if err := os.WriteFile(files[0], b, 0o600); err != nil {
		t.Fatal(err)
	}
	var told told
	o.OnError = told.note
	w = open(t, peer.url(), o)
	peer.up()
	flush(t, w)
	got := string(peer.bytes())
	if at := strings.Index(got, notice.FindString(got)); got[:at] != numbered(0, 550) || !strings.Contains(notice.FindString(got), "damaged") ||
		notice.ReplaceAllString(got, "") != numbered(0, 550)+numbered(560, 1000) {
		t.Errorf("the peer took %d bytes; the notice is %q at %d", len(got), notice.FindString(got), at)
	}
	if s := balanced(t, w); s.Recovered != 1000 || s.Written != 990 || s.Dropped.Damaged != 10 || s.Pending != 0 {
		t.Errorf("Stats = %+v", s)
	}
	w.Told()
	if text := told.text(); !strings.Contains(text, "10 lines dropped from disk") || !strings.Contains(text, "damaged") {
		t.Errorf("OnError was told %q", text)
	}
}

// Close and Stats while a peer hangs on what is replayed to it.
func TestSpillCloseWhileReplayStalls(t *testing.T) {
	t.Parallel()
	peer := newKeyedPeer(t)
	o := remote.Options{Spill: spillTo(t)}
	w := open(t, peer.url(), o)
	write(t, w, numbered(0, 100))
	peer.stall()
	peer.up()
	eventually(t, "the replay hangs", func() bool { return w.Stats().Spill.InFlight == 1 && len(peer.seen()) > 0 })
	for i := range 10 { // go behind those on disk and do not wait
		write(t, w, numbered(100+i, 101+i))
	}
	balanced(t, w)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	begin := time.Now()
	err := w.Shutdown(ctx)
	if !errors.Is(err, line.ErrPending) || !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "110 lines wait in") {
		t.Errorf("Shutdown = %v", err)
	}
	if d := time.Since(begin); d > 50*time.Second { // the time for a request is a minute
		t.Errorf("Shutdown took %v", d)
	}
	if s := balanced(t, w); s.Spill.Lines != 110 || s.Pending != 110 || s.Spill.InFlight != 0 {
		t.Errorf("Stats = %+v", s)
	}
	peer.heal()
	w = open(t, peer.url(), remote.Options{Spill: o.Spill})
	flush(t, w)
	peer.want(t, numbered(0, 110))
}

// Stats never waits, and a Write does not wait for the peer. The request would last
// an hour.
func TestSpillStatsNeverBlocks(t *testing.T) {
	t.Parallel()
	peer := newKeyedPeer(t)
	peer.up()
	peer.stall()
	w := open(t, peer.url(), remote.Options{Spill: spillTo(t), Timeout: 3 * time.Hour})
	for p := range 4 {
		write(t, w, numbered(p*50, p*50+50))
	}
	eventually(t, "lines are in a request", func() bool { return len(peer.seen()) == 1 })
	statsReturns(t, w, "lines are in a request", func(s remote.Stats) bool {
		return s.Pending == 200 && s.Spill.Lines == 200 && s.Spill.InFlight == 1
	})
	peer.heal()
	flush(t, w)
	settled(t, w, 200, 200)
}

// statsReturns wants Stats to return at once, and ok of it in the end.
func statsReturns(t *testing.T, w *remote.Writer, when string, ok func(remote.Stats) bool) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		eventually(t, "Stats as they should be while "+when, func() bool {
			s := w.Stats()
			return ok(s) && ledger(w).Err() == nil
		})
	}()
	select {
	case <-done:
	case <-time.After(2 * time.Minute):
		t.Fatalf("Stats has not returned while %s", when)
	}
}

// An engine that knows documents by their id stores each once, although the
// process before had sent some of them and heard no answer.
func TestSpillElastic(t *testing.T) {
	t.Parallel()
	peer := startElasticPeer(t)
	var requests atomic.Int32
	mute := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if requests.Add(1) > 6 {
			peer.serve(t, rw, r)
			return
		}
		peer.serve(t, httptest.NewRecorder(), r)
		panic(http.ErrAbortHandler) // all is stored, and nobody hears of it
	}))
	mute.Config.ErrorLog = discardLog
	defer mute.Close()
	o := remote.Options{Spill: spillTo(t), CloseTimeout: 10 * time.Millisecond}
	url := "elastic+" + mute.URL + "/logs-shop"
	for round := range 2 {
		w := open(t, url, o)
		for i := range 10 {
			write(t, w, numbered(round*100+i*10, round*100+i*10+10))
		}
		n := requests.Load()
		eventually(t, "another attempt, or success", func() bool { return requests.Load() > n || w.Stats().Pending == 0 })
		w.Close()
	}
	w := open(t, url, remote.Options{Spill: o.Spill})
	flush(t, w)
	balanced(t, w)
	peer.want(t, numbered(0, 200))
}

package remote_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/rollway/rollway/line"
	"github.com/rollway/rollway/remote"
	"github.com/rollway/rollway/slab"
)

// wantLoss wants err to say that n lines were lost, and why the first was.
func wantLoss(t testing.TB, what string, err error, n int, why string) {
	t.Helper()
	if !errors.Is(err, line.ErrLost) || !strings.Contains(err.Error(), fmt.Sprintf("lines lost: %d, the first: ", n)) || !strings.Contains(err.Error(), why) {
		t.Errorf("%s = %v, want that %d lines were lost, the first because of %q", what, err, n, why)
	}
}

// refuser answers 200 and refuses all n lines of each request.
func refuser(reason string) http.HandlerFunc {
	return status(200, fmt.Sprintf(`{"accepted":0,"rejected":[{"line":1,"reason":%q}]}`, reason))
}

// Sync and Close tell what was lost, each line once, with the first reason.
func TestSyncAndCloseTellLosses(t *testing.T) {
	peer := startHTTPPeer(t)
	w := open(t, peer.URL+"/", remote.Options{})
	write(t, w, numbered(0, 1))
	if err := w.Sync(); err != nil {
		t.Errorf("Sync before a loss = %v", err)
	}
	peer.answer(refuser("no colour"), refuser("no shape"))
	write(t, w, numbered(1, 2))
	write(t, w, numbered(2, 3))
	wantLoss(t, "Sync", w.Sync(), 2, "no colour")
	if err := w.Sync(); err != nil {
		t.Errorf("second Sync = %v, want nil: what was lost has been told", err)
	}
	peer.answer(refuser("no weight"))
	write(t, w, numbered(3, 5))
	err := w.Close()
	wantLoss(t, "Close", err, 2, "no weight")
	if again := w.Close(); again != err {
		t.Errorf("second Close = %v, want %v", again, err)
	}
	if again := w.Sync(); again != err {
		t.Errorf("Sync after Close = %v, want %v", again, err)
	}
	settled(t, w, 5, 1)
	if s := w.Stats(); s.Errors != 0 || s.LastError != nil || s.Failing {
		t.Errorf("Stats = %+v: a refused line is no failed attempt", s)
	}
}

// A slab.Writer passes the error on and sends nothing again: the lines are
// settled.
func TestSlabOverLosses(t *testing.T) {
	t.Parallel()
	peer := startHTTPPeer(t)
	w := open(t, peer.URL+"/", remote.Options{})
	out := openSlab(t, w)
	write(t, out, numbered(0, 10))
	if err := out.Sync(); err != nil {
		t.Errorf("Sync = %v", err)
	}
	peer.answer(status(200, `{"accepted":7,"rejected":[{"line":1,"reason":"bad"}],"rejected_total":3}`))
	write(t, out, numbered(10, 20))
	wantLoss(t, "Sync of the slab.Writer", out.Sync(), 3, "bad")
	write(t, out, numbered(20, 30))
	if err := out.Close(); err != nil {
		t.Errorf("Close of the slab.Writer = %v", err)
	}
	if err := w.Close(); err != nil {
		t.Errorf("Close = %v", err)
	}
	slabLedger(out).CheckSettled(t, 30, 30)
	settled(t, w, 30, 27)
	if s := out.Stats(); s.Errors != 0 {
		t.Errorf("Stats of the slab.Writer = %+v, want no retry", s)
	}
	sent := 0
	for _, r := range peer.seen() {
		sent += strings.Count(r.body, "\n")
	}
	if sent != 30 {
		t.Errorf("%d lines were sent, want each of 30 once", sent)
	}
}

// The reason of a refusal is in Stats: of a request that lists lines, of one
// refused as a whole, of an item, and of one whose lines are kept.
func TestLastRefusal(t *testing.T) {
	t.Parallel()
	long := "why " + strings.Repeat("\u20ac", 3000)
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		want   string
	}{
		"listed, 200":        {refuser("no colour"), "no colour"},
		"listed, long":       {refuser(long), "why \u20ac"},
		"listed, 400":        {status(400, `{"accepted":0,"rejected":[{"line":1,"reason":"no shape"}]}`), "no shape"},
		"too large":          {status(413, "at most a thimble"), "at most a thimble"},
		"as a whole, 400":    {status(400, "not here secret-token"), "not here [redacted]"},
		"kept, 401":          {status(401, "who are you?"), "who are you?"},
		"busy is no refusal": {status(429, "later"), ""},
		"broken: none":       {status(500, "ouch"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			peer := startHTTPPeer(t)
			w := open(t, peer.URL+"/", remote.Options{Token: "secret-token"})
			if s := w.Stats(); s.LastRefusal != "" || !s.LastRefusalTime.IsZero() {
				t.Errorf("before it: %q at %v", s.LastRefusal, s.LastRefusalTime)
			}
			begin := time.Now()
			peer.answer(c.answer)
			w.Write([]byte(numbered(0, 1)))
			wantRefusal(t, w, begin, c.want)
		})
	}
	t.Run("as a whole, of several lines", func(t *testing.T) {
		peer := startHTTPPeer(t)
		peer.answer(status(400, "a bad batch"))
		w := open(t, peer.URL+"/", remote.Options{})
		begin := time.Now()
		write(t, w, numbered(0, 2)) // in two requests then
		wantRefusal(t, w, begin, "a bad batch")
		settled(t, w, 2, 2)
	})
	t.Run("an item", func(t *testing.T) {
		peer := startElasticPeer(t)
		peer.decide(func(string) (int, string, string) { return 400, "document_parsing_exception", "no field" })
		w := open(t, peer.url(), remote.Options{})
		begin := time.Now()
		write(t, w, numbered(0, 2))
		wantRefusal(t, w, begin, "no field")
		settled(t, w, 2, 0)
		wantLoss(t, "Close", w.Close(), 2, "no field")
	})
	t.Run("an entry", func(t *testing.T) {
		peer := startLokiPeer(t)
		peer.longest = 100
		w := open(t, peer.url(), remote.Options{})
		begin := time.Now()
		write(t, w, numbered(0, 1)+strings.Repeat("x", 200)+"\n")
		wantRefusal(t, w, begin, "max entry size")
		settled(t, w, 2, 1)
		wantLoss(t, "Sync", w.Sync(), 1, "max entry size")
	})
}

func wantRefusal(t *testing.T, w *remote.Writer, begin time.Time, want string) {
	t.Helper()
	s := w.Stats()
	if want == "" {
		if s.LastRefusal != "" || !s.LastRefusalTime.IsZero() {
			t.Errorf("LastRefusal = %q at %v, want none", s.LastRefusal, s.LastRefusalTime)
		}
		return
	}
	if !strings.Contains(s.LastRefusal, want) || len(s.LastRefusal) > 1100 || strings.Contains(s.LastRefusal, "secret") {
		t.Errorf("LastRefusal = %.1200q, %d bytes, want %q in it", s.LastRefusal, len(s.LastRefusal), want)
	}
	if s.LastRefusalTime.Before(begin) || s.LastRefusalTime.After(time.Now()) {
		t.Errorf("LastRefusalTime = %v", s.LastRefusalTime)
	}
}

// A slab.Writer that closes its destination returns what that has to tell, and
// its own ledger says that all was written: the loss is in the destination's.
func TestSlabThatClosesTellsLosses(t *testing.T) {
	peer := startHTTPPeer(t)
	w := open(t, peer.URL+"/", remote.Options{})
	out, err := slab.New(w, slab.Options{CloseTimeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	peer.answer(refuser("no colour"))
	write(t, out, numbered(0, 4))
	err = out.Close()
	wantLoss(t, "Close of the slab.Writer", err, 4, "no colour")
	if again := out.Close(); again != err {
		t.Errorf("second Close = %v, want %v", again, err)
	}
	slabLedger(out).CheckSettled(t, 4, 4)
	settled(t, w, 4, 0)
	if n := len(peer.seen()); n != 1 {
		t.Errorf("%d requests, want 1: nothing is sent again", n)
	}
}

package slab_test

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rollway/rollway/rollwaytest"
	"github.com/rollway/rollway/slab"
)

// put writes lines and wants them accepted.
func put(t *testing.T, w *slab.Writer, lines ...string) {
	t.Helper()
	for _, l := range lines {
		if n, err := w.Write([]byte(l + "\n")); n != len(l)+1 || err != nil {
			t.Errorf("Write(%.40q) = %d, %v, want %d, nil", l, n, err, len(l)+1)
		}
	}
}

// numbered returns size bytes (newline not counted) that say i.
func numbered(i, size int) string {
	s := fmt.Sprintf("%06d ", i)
	return s + strings.Repeat("x", max(0, size-len(s)))
}

// isNotice tells a loss notice from the lines of these tests.
func isNotice(line string) bool { return strings.HasPrefix(line, `{"time":`) }

// lines returns the lines at dst, and apart from them the notices cut down to
// what follows the time.
func lines(dst *rollwaytest.Destination) (lines, notices []string) {
	for _, l := range dst.Lines() {
		if isNotice(l) {
			_, l, _ = strings.Cut(l, `"msg":`)
			notices = append(notices, `"msg":`+l)
		} else {
			lines = append(lines, l)
		}
	}
	return lines, notices
}

func notice(n int, reason string) string {
	s := "s"
	if n == 1 {
		s = ""
	}
	return fmt.Sprintf(`"msg":"rollway: %d line%s dropped","attrs":{"reason":"%s","dropped":%d}}`, n, s, reason, n)
}

func want[T comparable](t *testing.T, what string, got, want []T) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: got %d: %.300v\nwant %d: %.300v", what, len(got), got, len(want), want)
	}
}

// reports are what OnError was told.
type reports struct {
	mu   sync.Mutex
	text []string
	at   []time.Time
}

func (r *reports) add(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.text, r.at = append(r.text, err.Error()), append(r.at, time.Now())
}

// times returns when it was told.
func (r *reports) times() []time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.at)
}

func (r *reports) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Join(r.text, "\n")
}

// await returns when OnError was told something with text in it.
func (r *reports) await(t *testing.T, text string) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !strings.Contains(r.String(), text); runtime.Gosched() {
		if time.Now().After(end) {
			t.Fatalf("OnError got %q, want %q", r, text)
		}
	}
}

// total adds up the lines by level.
func total(l slab.ByLevel) uint64 { return l.Debug + l.Info + l.Warn + l.Error + l.Unknown }

// settled wants the ledger of w, after Close or Flush, to agree with dst.
func settled(t *testing.T, w *slab.Writer, dst *rollwaytest.Destination, accepted int) {
	t.Helper()
	got, _ := lines(dst)
	ledger(w).CheckSettled(t, accepted, len(got))
	if s := w.Stats(); s.SlabsFree != s.Slabs {
		t.Errorf("%d of %d slabs are free although nothing is pending", s.SlabsFree, s.Slabs)
	}
}

// await waits for a condition that another goroutine makes true.
func await(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("no %s within a minute", what)
		}
	}
}

package chaos

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollway/rollway/collector/journal"
)

// stored is a journal with requests 0 to 4 as the collector keeps them, after
// change has changed the lines.
func stored(t *testing.T, change func(lines [][]byte) [][]byte) string {
	t.Helper()
	var lines [][]byte
	for number := range 5 {
		for i := range events(number) {
			line := append([]byte(`{"time":"2026-11-21T12:00:00Z","level":"INFO","msg":"`), message(nil, number, i)...)
			lines = append(lines, append(line, "\"}\n"...))
		}
	}
	dir := t.TempDir()
	j, err := journal.Open(dir, journal.Options{})
	if err != nil {
		t.Fatal(err)
	}
	lines = change(lines)
	if _, err := j.Append(context.Background(), journal.Batch{Lines: bytes.Join(lines, nil), Records: len(lines)}); err != nil {
		t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestLookUp: each thing that may be wrong is found, and nothing else.
func TestLookUp(t *testing.T) {
	same := func(lines [][]byte) [][]byte { return lines }
	all := func() *account {
		a := &account{}
		for first := uint64(0); len(a.list) < 5; {
			number := a.next()
			a.ack(number, first)
			first += uint64(events(number))
		}
		return a
	}
	for _, c := range []struct {
		name     string
		change   func(lines [][]byte) [][]byte
		account  func(a *account)
		answered bool
		want     Try
	}{
		{"all is well", same, func(*account) {}, true, Try{Lookups: 15, Stored: 15}},
		{"one is lost", func(l [][]byte) [][]byte { return l[:14] }, func(*account) {}, true, Try{Lookups: 15, Stored: 14, Lost: 1}},
		{"one is there twice", func(l [][]byte) [][]byte { return append(l, l[14]) }, func(*account) {}, true, Try{Lookups: 15, Stored: 16, Twice: 1, Misplace: 1}},
		{"two are swapped", func(l [][]byte) [][]byte { l[1], l[2] = l[2], l[1]; return l }, func(*account) {}, true, Try{Lookups: 15, Stored: 15, Misplace: 2}},
		{"one is changed", func(l [][]byte) [][]byte { l[0][60]++; return l }, func(*account) {}, true, Try{Lookups: 15, Stored: 14, Alien: 1, Lost: 1}},
		{"one nobody sent", func(l [][]byte) [][]byte { return append(l, []byte("{\"msg\":\"hello\"}\n")) }, func(*account) {}, true, Try{Lookups: 15, Stored: 15, Alien: 1}},
		{"not answered", same, func(a *account) { a.list[4] = request{} }, false, Try{Lookups: 10, Stored: 15}},
		{"not answered by a graceful stop", same, func(a *account) { a.list[4] = request{} }, true, Try{Lookups: 10, Stored: 15, Silent: 1}},
		{"in part", func(l [][]byte) [][]byte { return l[:12] }, func(a *account) { a.list[4] = request{} }, false, Try{Lookups: 10, Stored: 12, Partly: 1}},
		{"not stored, not answered", func(l [][]byte) [][]byte { return l[:10] }, func(a *account) { a.list[4] = request{} }, true, Try{Lookups: 10, Stored: 10}},
	} {
		a := all()
		c.account(a)
		var got Try
		if err := lookUp(&got, stored(t, c.change), a.snapshot(), c.answered, view{}); err != nil {
			t.Fatal(err)
		}
		if got.Wrong() != c.want.Wrong() || got.Lookups != c.want.Lookups || got.Stored != c.want.Stored || got.Lost != c.want.Lost ||
			got.Twice != c.want.Twice || got.Partly != c.want.Partly || got.Alien != c.want.Alien || got.Misplace != c.want.Misplace || got.Silent != c.want.Silent {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}

// TestUnexpected: what is wrong is said, and so is a try that tested nothing.
func TestUnexpected(t *testing.T) {
	good := Try{Fault: "kill", Rounds: 1, Requests: 10, Lookups: 30, Reconciled: 1}
	lost, idle := good, good
	lost.Lost, idle.Lookups = 1, 0
	if errs := (&Results{Tries: []Try{good, lost, idle}}).Unexpected(); len(errs) != 2 {
		t.Error(errs)
	}
}

// TestAwait: slow progress is waited for, a standstill is not.
func TestAwait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		slowly := func() int { return int(time.Since(begin) / (stalledAfter - time.Second)) }
		if err := await("ten", slowly, func() bool { return slowly() >= 10 }); err != nil || time.Since(begin) < 9*stalledAfter {
			t.Errorf("%v after %v", err, time.Since(begin))
		}
		begin = time.Now()
		stops := func() int { return min(slowly(), 3) }
		err := await("ten", stops, func() bool { return stops() >= 10 })
		if waited := time.Since(begin); err == nil || !strings.Contains(err.Error(), "ten: no progress") || waited > 4*stalledAfter+time.Second {
			t.Errorf("%v after %v", err, waited)
		}
	})
}

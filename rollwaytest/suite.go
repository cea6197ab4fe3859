package rollwaytest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollway/rollway/line"
)

// Subject is a kind of writer under test.
type Subject struct {
	// Open returns a new writer with its destination. It uses t.Cleanup for what
	// Close does not undo. The writer must not drop lines for lack of room.
	Open func(t *testing.T) *Instance
	// LongLine is the length in bytes of the longest line that is tried, with its
	// newline: default 100,000, at least 200.
	LongLine int
	// Slow says that a Write waits for a network: the suite writes fewer lines.
	Slow bool
	// Virtual runs each rule in a bubble of testing/synctest: waits take no time, and
	// a goroutine that outlives the rule fails it. It is for writers on memory or
	// files; the network has no virtual time.
	Virtual bool
}

// Instance is one writer and what the suite needs to know about it.
type Instance struct {
	Writer line.Writer
	// Delivered returns all bytes at the destination in the order of their arrival.
	// It is called after Flush, Sync, Close or Shutdown, and while the writer works.
	Delivered func() []byte
	// Midway says that Delivered may see the destination during a write, ending
	// within a line or in bytes 0. The suite then calls it again.
	Midway bool
	// Keeps says that lines which Shutdown cannot deliver stay pending, for the next
	// writer. Other writers drop them.
	Keeps bool
	// Ledger returns the writer's account. If it is nil, rules that need it are left
	// out.
	Ledger func() Ledger

	// Stall makes the destination hang until Heal; Fail makes it refuse everything
	// until Heal. They are for writers that accept lines before the destination has
	// them. Rules that need a hook that is nil are left out.
	Stall func()
	Fail  func()
	Heal  func()
	// Calls returns how often Write of a stalled destination was called. With it a
	// rule about a stall starts once the destination has the first line, with the
	// other lines after it. Without it, Shutdown's deadline may pass on a busy
	// machine before the destination is called, which the rule reports if Keeps is
	// set.
	Calls func() int

	// Panic makes every Write of the destination panic until Heal; FailSync makes its
	// Sync return an error until Heal, while it still takes lines.
	Panic    func()
	FailSync func()
}

// TestLineWriter runs the contract of line.Writer as subtests of t whose names are its
// sentences. Each opens a writer of its own.
func TestLineWriter(t *testing.T, s Subject) {
	if s.LongLine == 0 {
		s.LongLine = 100_000
	}
	missing := s.missing(t)
	for _, rule := range []struct {
		sentence string
		check    func(*testing.T, *suite)
		needs    string // names of hooks
	}{
		{"Write takes one or more whole lines and returns their length", checkWrite, ""},
		{"Write never keeps p", checkKeeps, ""},
		{"Write adds a missing last newline", checkNewline, ""},
		{"a line travels whole, however long", checkLong, ""},
		{"a line is never mixed with another and lines of one producer keep their order", delivers(8, 500, (*suite).flush), ""},
		{"Flush returns when everything accepted before it is written downstream", checkFlush, ""},
		{"Flush and Sync with nothing to do return nil", checkIdle, ""},
		{"Sync returns when everything accepted before is stable", checkSync, ""},
		{"after Close Write returns os.ErrClosed and the line is counted as rejected", checkAfterClose, ""},
		{"Close delivers what was accepted", delivers(4, 200, (*suite).close), ""},
		{"Close is idempotent and returns the same to every caller", checkCloseIdempotent, ""},
		{"Close amid writes loses no line whose Write returned nil", checkCloseAmid, ""},
		{"Shutdown within its deadline delivers what was accepted", delivers(2, 100, (*suite).shutdown), ""},
		{"accepted = written + dropped + pending at every moment", checkLedger, "Ledger"},
		{"a destination that stalls does not block the ledger", checkStallLedger, "Stall Ledger"},
		{"Flush on a stalled destination ends with its context", checkStallFlush, "Stall"},
		{"Shutdown on a stalled destination ends with its context and says so", checkStallShutdown, "Stall"},
		{"Shutdown on a failing destination counts what was lost", checkFailShutdown, "Fail"},
		{"a destination that fails and heals gets each byte once", checkFail, "Fail"},
		{"a destination that panics and heals gets each byte once", checkPanic, "Panic"},
		{"Shutdown on a panicking destination counts what was lost", checkPanicShutdown, "Panic"},
		{"WriteLevel is Write with a level: nothing is lost and one producer's lines of all levels keep their order", checkLevels, "WriteLevel"},
		{"after Close WriteLevel returns os.ErrClosed and the line is counted as rejected", checkLevelAfterClose, "WriteLevel"},
		{"Sync on a stalled destination ends within its bound and loses nothing", checkStallSync, "Stall Virtual"},
		{"Sync tells that the destination's Sync failed, and loses nothing", checkFailSync, "FailSync"},
	} {
		if i := slices.IndexFunc(strings.Fields(rule.needs), func(hook string) bool { return missing[hook] }); i >= 0 {
			t.Logf("left out, since the instance has no %s: %s", strings.Fields(rule.needs)[i], rule.sentence)
			continue
		}
		t.Run(rule.sentence, s.bubble(func(t *testing.T) {
			in := s.Open(t)
			su := &suite{Instance: in, long: max(s.LongLine, 200), slow: s.Slow}
			t.Cleanup(func() {
				if in.Heal != nil {
					in.Heal()
				}
				in.Writer.Close()
			})
			rule.check(t, su)
		}))
	}
}

// bubble returns f, in virtual time if the Subject is Virtual.
func (s Subject) bubble(f func(*testing.T)) func(*testing.T) {
	if !s.Virtual {
		return f
	}
	return func(t *testing.T) { synctest.Test(t, f) }
}

// missing opens an instance and returns the names of the hooks that it lacks. A hook
// that damages the destination requires Heal.
func (s Subject) missing(t *testing.T) map[string]bool {
	missing := make(map[string]bool)
	s.bubble(func(t *testing.T) {
		in := s.Open(t)
		defer in.Writer.Close()
		_, levels := in.Writer.(line.LevelWriter)
		for name, has := range map[string]bool{
			"Ledger":     in.Ledger != nil,
			"Stall":      in.Stall != nil && in.Heal != nil,
			"Fail":       in.Fail != nil && in.Heal != nil,
			"Panic":      in.Panic != nil && in.Heal != nil,
			"FailSync":   in.FailSync != nil && in.Heal != nil,
			"WriteLevel": levels,
			"Virtual":    s.Virtual,
		} {
			missing[name] = !has
		}
	})(t)
	return missing
}

// suite is one instance under test.
type suite struct {
	*Instance
	long int
	slow bool
}

// some returns n, or less if the writer is slow.
func (su *suite) some(n int) int {
	if su.slow {
		return n / 8
	}
	return n
}

// limit bounds everything that must end without help.
const limit = time.Minute

// soon is a deadline that a call on a destination that takes nothing must keep.
const soon = 50 * time.Millisecond

// within returns a context that ends after d.
func within(t *testing.T, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}

// The parts of a line, with a producer, a seq and padding between them.
const (
	lineHead = `{"time":"2026-05-28T12:40:00.000000000Z","level":"INFO","msg":"line","attrs":{"producer":`
	lineSeq  = `,"seq":`
	linePad  = `,"pad":"`
	lineTail = "\"}}\n"
)

// lineOf returns line seq of a producer, size bytes long with its newline, or longer
// if these numbers need it.
func lineOf(producer, seq, size int) []byte {
	b := append(make([]byte, 0, max(size, 150)), lineHead...)
	b = strconv.AppendInt(b, int64(producer), 10)
	b = append(b, lineSeq...)
	b = strconv.AppendInt(b, int64(seq), 10)
	b = append(b, linePad...)
	for size -= len(lineTail); len(b) < size; {
		b = append(b, byte('a'+seq%26))
	}
	return append(b, lineTail...)
}

// parseLine reports whether lineOf made text, which has no newline, and returns its
// producer and seq.
func parseLine(text string) (producer, seq int, ok bool) {
	rest, _ := strings.CutPrefix(text, lineHead)
	first, rest, _ := strings.Cut(rest, lineSeq)
	second, _, _ := strings.Cut(rest, linePad)
	producer, err1 := strconv.Atoi(first)
	seq, err2 := strconv.Atoi(second)
	if err1 != nil || err2 != nil || seq < 0 {
		return 0, 0, false
	}
	return producer, seq, string(lineOf(producer, seq, len(text)+1)) == text+"\n"
}

// write writes p, which must be accepted.
func (su *suite) write(t *testing.T, p []byte) {
	t.Helper()
	if n, err := su.Writer.Write(p); n != len(p) || err != nil {
		t.Fatalf("Write of %d bytes = %d, %v, want %d, nil", len(p), n, err, len(p))
	}
}

// lines writes the lines from to to-1 of producer 0.
func (su *suite) lines(t *testing.T, from, to int) {
	t.Helper()
	for seq := from; seq < to; seq++ {
		su.write(t, lineOf(0, seq, 150))
	}
}

// noError stops t if what has returned an error.
func noError(t *testing.T, what string, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%s = %v, want nil", what, err)
	}
}

func (su *suite) sync(t *testing.T) {
	t.Helper()
	noError(t, "Sync", su.Writer.Sync())
}

func (su *suite) flush(t *testing.T) {
	t.Helper()
	noError(t, "Flush", su.Writer.Flush(within(t, limit)))
}

// delivered requires that the destination has only whole lines, no line twice, and
// those of one producer in order. It returns the highest seq + 1 of each producer and
// the number of lines, without loss notices.
func (su *suite) delivered(t *testing.T) (next map[int]int, lines int) {
	t.Helper()
	data := su.Delivered()
	for tries := 0; su.Midway && tries < 1000 && (len(data) > 0 && data[len(data)-1] != '\n' || bytes.IndexByte(data, 0) >= 0); tries++ {
		time.Sleep(time.Millisecond)
		data = su.Delivered()
	}
	if len(data) > 0 && data[len(data)-1] != '\n' {
		t.Errorf("the destination ends within a line: …%q", data[max(0, len(data)-80):])
	}
	next = make(map[int]int)
	for i, text := range splitLines(data) {
		p, seq, ok := parseLine(text)
		if !ok {
			var l struct{ Msg string }
			if err := json.Unmarshal([]byte(text), &l); err == nil && strings.HasPrefix(l.Msg, "rollway: ") {
				continue
			}
			t.Fatalf("line %d at the destination is not what was written, or torn, or mixed: %.200q", i+1, text)
		}
		lines++
		if seq < next[p] {
			t.Fatalf("line %d at the destination: seq %d of producer %d after seq %d", i+1, seq, p, next[p]-1)
		}
		next[p] = seq + 1
	}
	return next, lines
}

// wantAll requires exactly the lines 0 to n-1 of each of the producers at the
// destination, and an account that says so.
func (su *suite) wantAll(t *testing.T, producers, n int) {
	t.Helper()
	next, lines := su.delivered(t)
	if lines != producers*n {
		t.Errorf("%d lines at the destination, want %d", lines, producers*n)
	}
	for p := range producers {
		if next[p] != n {
			t.Errorf("the last line of producer %d at the destination is %d, want %d", p, next[p]-1, n-1)
		}
	}
	if su.Ledger != nil {
		su.Ledger().CheckSettled(t, producers*n, lines)
	}
}

// produce writes n lines from each of the producers concurrently and waits. After each
// line it calls written, if that is not nil. It returns the number of accepted lines of
// each producer.
func (su *suite) produce(producers, n int, written func(accepted int)) (accepted []int, errs []error) {
	return su.produceBy(producers, n, func(_ int, p []byte) (int, error) { return su.Writer.Write(p) }, written)
}

// produceBy is produce by a function that writes one line, from a buffer that is
// overwritten.
func (su *suite) produceBy(producers, n int, write func(seq int, p []byte) (int, error), written func(accepted int)) (accepted []int, errs []error) {
	accepted, errs = make([]int, producers), make([]error, producers)
	var wg sync.WaitGroup
	for p := range producers {
		wg.Go(func() {
			var buf []byte
			for seq := 0; seq < n; seq++ {
				buf = append(buf[:0], lineOf(p, seq, 100+(seq*37+p*11)%400)...)
				if _, err := write(seq, buf); err != nil {
					errs[p] = err
					return
				}
				accepted[p]++
				if written != nil {
					written(accepted[p])
				}
			}
		})
	}
	wg.Wait()
	return accepted, errs
}

// produceAll is produce for lines that must all be accepted.
func (su *suite) produceAll(t *testing.T, producers, n int, written func(int)) {
	t.Helper()
	_, errs := su.produce(producers, n, written)
	noError(t, "Write", errors.Join(errs...))
}

// close closes the writer, which must not fail.
func (su *suite) close(t *testing.T) {
	t.Helper()
	noError(t, "Close", su.Writer.Close())
}

// wantPending requires n lines in the ledger, all pending.
func (su *suite) wantPending(t *testing.T, n uint64) {
	t.Helper()
	if su.Ledger == nil {
		return
	}
	l := su.Ledger()
	if l.Check(t); l.Accepted != n || l.Pending != n {
		t.Errorf("ledger: accepted %d, pending %d, want %d and %d", l.Accepted, l.Pending, n, n)
	}
}

// wantRejected requires n rejected lines in the ledger.
func (su *suite) wantRejected(t *testing.T, n int) {
	t.Helper()
	if su.Ledger == nil {
		return
	}
	if got := su.Ledger().Rejected; got != uint64(n) {
		t.Errorf("ledger: %d lines rejected, want %d", got, n)
	}
}

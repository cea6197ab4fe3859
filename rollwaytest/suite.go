package rollwaytest

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// LineWriter is what every stage behind a logger is. Its contract, which
// TestLineWriter checks, in short: Write takes whole lines and never keeps p;
// a line travels whole or not at all; lines of one producer keep their order;
// accepted lines are delivered or counted as dropped; after Close, which is
// idempotent, Write returns os.ErrClosed.
type LineWriter interface {
	io.WriteCloser
	Flush(ctx context.Context) error
	Sync() error
	Shutdown(ctx context.Context) error
}

// Subject is a kind of writer under test.
type Subject struct {
	// Open returns a new writer with its destination and undoes with t.Cleanup
	// what Close does not. The writer must not drop lines for lack of room.
	Open func(t *testing.T) *Instance
	// LongLine is the length in bytes of the longest line that is tried, its
	// newline included: default 100,000, at least 200.
	LongLine int
	// Slow says that a Write waits for a network: fewer lines are written then.
	Slow bool
	// Virtual runs each rule in a bubble of testing/synctest: a wait takes no
	// time, and a goroutine that is left behind fails the rule. It is for
	// writers on memory or files; the network has no virtual time.
	Virtual bool
}

// Instance is one writer and what the suite has to know about it.
type Instance struct {
	Writer LineWriter
	// Delivered returns all bytes at the destination, in the order in which
	// they came. It is called after Flush, Sync, Close or Shutdown, and while
	// the writer works.
	Delivered func() []byte
	// Midway says that Delivered may see the destination amid a write, with the
	// beginning of a line or with bytes 0 at the end: then it is called again.
	Midway bool
	// Keeps says that what Shutdown cannot deliver stays pending, for the next
	// writer, where others drop it.
	Keeps bool
	// Ledger returns the writer's account. If it is nil, what needs it is
	// left out.
	Ledger func() Ledger

	// Stall makes the destination hang until Heal; Fail makes it refuse
	// everything until Heal. They are for writers that accept lines before the
	// destination has them; what needs a hook that is nil is left out.
	Stall func()
	Fail  func()
	Heal  func()
	// Calls returns how often Write of the destination that stalls was called.
	// With it a rule about a stall begins once the destination has the first
	// line in hand, and the other lines are behind that. Without it the rule
	// cannot tell, and on a busy machine Shutdown's deadline may pass before the
	// destination is called, which the rule takes for a fault if Keeps is set.
	Calls func() int

	// Panic makes every Write of the destination panic until Heal; FailSync
	// makes its Sync return an error until Heal, while it goes on taking lines.
	Panic    func()
	FailSync func()
}

// TestLineWriter runs the contract of a LineWriter as subtests of t whose
// names are its sentences. Each opens a writer of its own.
func TestLineWriter(t *testing.T, s Subject) {
	if s.LongLine == 0 {
		s.LongLine = 100_000
	}
	has := s.hooks(t)
	for _, rule := range []struct {
		sentence string
		check    func(*testing.T, *suite)
		needs    hooks
	}{
		{"Write takes one or more whole lines and returns their length", checkWrite, 0},
		{"Write never keeps p", checkKeeps, 0},
		{"Write adds a missing last newline", checkNewline, 0},
		{"a line travels whole, however long", checkLong, 0},
		{"a line is never mixed with another and lines of one producer keep their order", checkOrder, 0},
		{"Flush returns when everything accepted before it is written downstream", checkFlush, 0},
		{"Flush and Sync with nothing to do return nil", checkIdle, 0},
		{"Sync returns when everything accepted before is stable", checkSync, 0},
		{"after Close Write returns os.ErrClosed and the line is counted as rejected", checkAfterClose, 0},
		{"Close delivers what was accepted", checkCloseDelivers, 0},
		{"Close is idempotent and returns the same to every caller", checkCloseIdempotent, 0},
		{"Close amid writes loses no line whose Write returned nil", checkCloseAmid, 0},
		{"Shutdown within its deadline delivers what was accepted", checkShutdown, 0},
		{"accepted = written + dropped + pending at every moment", checkLedger, hookLedger},
		{"a destination that stalls does not block the ledger", checkStallLedger, hookStall | hookLedger},
		{"Flush on a stalled destination ends with its context", checkStallFlush, hookStall},
		{"Shutdown on a stalled destination ends with its context and says so", checkStallShutdown, hookStall},
		{"Shutdown on a failing destination counts what was lost", checkFailShutdown, hookFail},
		{"a destination that fails and heals gets each byte once", checkFail, hookFail},
		{"a destination that panics and heals gets each byte once", checkPanic, hookPanic},
		{"Shutdown on a panicking destination counts what was lost", checkPanicShutdown, hookPanic},
		{"WriteLevel is Write with a level: nothing is lost and one producer's lines of all levels keep their order", checkLevels, hookLevel},
		{"after Close WriteLevel returns os.ErrClosed and the line is counted as rejected", checkLevelAfterClose, hookLevel},
		{"Sync on a stalled destination ends by itself and loses nothing", checkStallSync, hookStall | hookVirtual},
		{"Sync tells that the destination's Sync failed, and loses nothing", checkFailSync, hookFailSync},
	} {
		if missing := rule.needs &^ has; missing != 0 {
			t.Logf("left out, since the instance has no %v: %s", missing, rule.sentence)
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

// bubble returns f, in virtual time if the Subject wants it.
func (s Subject) bubble(f func(*testing.T)) func(*testing.T) {
	if !s.Virtual {
		return f
	}
	return func(t *testing.T) { synctest.Test(t, f) }
}

// hooks is the set of optional fields that an Instance has.
type hooks uint

const (
	hookLedger   hooks = 1 << iota
	hookStall          // and Heal
	hookFail           // and Heal
	hookPanic          // and Heal
	hookFailSync       // and Heal
	hookLevel          // a method of Writer
	hookVirtual        // of the Subject: what takes its time does not matter
)

// levelWriter is what a LineWriter is that has rules by level.
type levelWriter interface {
	WriteLevel(level slog.Level, p []byte) (int, error)
}

func (h hooks) String() string {
	var names []string
	for i, name := range []string{"Ledger", "Stall with Heal", "Fail with Heal", "Panic with Heal", "FailSync with Heal", "WriteLevel", "Virtual"} {
		if h&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return strings.Join(names, ", ")
}

// hooks opens an instance to see which hooks it has.
func (s Subject) hooks(t *testing.T) (has hooks) {
	s.bubble(func(t *testing.T) {
		in := s.Open(t)
		defer in.Writer.Close()
		if in.Ledger != nil {
			has |= hookLedger
		}
		if in.Stall != nil && in.Heal != nil {
			has |= hookStall
		}
		if in.Fail != nil && in.Heal != nil {
			has |= hookFail
		}
		if in.Panic != nil && in.Heal != nil {
			has |= hookPanic
		}
		if in.FailSync != nil && in.Heal != nil {
			has |= hookFailSync
		}
		if _, ok := in.Writer.(levelWriter); ok {
			has |= hookLevel
		}
		if s.Virtual {
			has |= hookVirtual
		}
	})(t)
	return has
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

// limit bounds everything that has to end by itself.
const limit = time.Minute

// ctx returns a context that ends long after everything should be done.
func (su *suite) ctx(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	t.Cleanup(cancel)
	return ctx
}

// within returns a context that is soon over.
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

// line returns line seq of a producer, size bytes with its newline, if a line
// with these numbers can be that short.
func line(producer, seq, size int) []byte {
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

// parseLine reports whether text, which has no newline, is one that line made,
// and of which producer and seq.
func parseLine(text string) (producer, seq int, ok bool) {
	rest, _ := strings.CutPrefix(text, lineHead)
	first, rest, _ := strings.Cut(rest, lineSeq)
	second, _, _ := strings.Cut(rest, linePad)
	producer, err1 := strconv.Atoi(first)
	seq, err2 := strconv.Atoi(second)
	if err1 != nil || err2 != nil || seq < 0 {
		return 0, 0, false
	}
	return producer, seq, string(line(producer, seq, len(text)+1)) == text+"\n"
}

// write writes p and wants it accepted.
func (su *suite) write(t *testing.T, p []byte) {
	t.Helper()
	if n, err := su.Writer.Write(p); n != len(p) || err != nil {
		t.Fatalf("Write of %d bytes = %d, %v, want %d, nil", len(p), n, err, len(p))
	}
}

func (su *suite) flush(t *testing.T) {
	t.Helper()
	if err := su.Writer.Flush(su.ctx(t)); err != nil {
		t.Fatalf("Flush = %v, want nil", err)
	}
}

// delivered wants the destination to have whole lines only, no line twice and
// those of one producer in order. It returns the highest seq + 1 of each
// producer and the number of lines; loss notices are left out.
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

// wantAll wants exactly the lines 0 to n-1 of each of the producers at the
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

// produce writes n lines from each of the producers at once, from buffers that
// are used again, and waits. It calls written, if it is not nil, after each. It
// returns the number of lines accepted of each.
func (su *suite) produce(producers, n int, written func(accepted int)) (accepted []int, errs []error) {
	accepted, errs = make([]int, producers), make([]error, producers)
	var wg sync.WaitGroup
	for p := range producers {
		wg.Go(func() {
			var buf []byte
			for seq := 0; seq < n; seq++ {
				buf = append(buf[:0], line(p, seq, 100+(seq*37+p*11)%400)...)
				if _, err := su.Writer.Write(buf); err != nil {
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

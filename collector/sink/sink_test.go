package sink

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollway/rollway/collector/journal"
	"github.com/rollway/rollway/internal/disk"
	"github.com/rollway/rollway/internal/disktest"
)

// memory is a destination that keeps lines and can fail.
type memory struct {
	mu    sync.Mutex
	lines []string
	sizes []int
	times []time.Time
	fail  func(b *Batch) error // nil: never
}

func (m *memory) Deliver(ctx context.Context, b *Batch) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fail != nil {
		if err := m.fail(b); err != nil {
			return err
		}
	}
	for i := range b.Len() {
		if !b.Settled(i) {
			m.lines = append(m.lines, string(b.Line(i)))
		}
	}
	m.sizes, m.times = append(m.sizes, b.Len()), append(m.times, time.Now())
	return nil
}

func (m *memory) failWith(f func(*Batch) error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.fail = f
}

// got returns copies of what came, and forgets the sizes.
func (m *memory) got() (lines []string, sizes []int, times []time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	defer func() { m.sizes = nil }()
	return slices.Clone(m.lines), slices.Clone(m.sizes), slices.Clone(m.times)
}

func (m *memory) count() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.lines)
}

// store appends the lines numbered from to from+n-1 as one batch.
func store(t testing.TB, j *journal.Journal, from, n int) {
	t.Helper()
	var b []byte
	for i := range n {
		b = fmt.Appendf(b, `{"n":%d}`+"\n", from+i)
	}
	if _, err := j.Append(context.Background(), journal.Batch{Lines: b, Records: n}); err != nil {
		t.Fatal(err)
	}
}

func number(t testing.TB, line string) int {
	n, err := strconv.Atoi(strings.TrimSuffix(strings.TrimPrefix(line, `{"n":`), "}"))
	if err != nil {
		t.Fatalf("line %q", line)
	}
	return n
}

func open(t testing.TB, mem disk.FS, o journal.Options) *journal.Journal {
	t.Helper()
	o.Disk = mem
	j, err := journal.Open("/j", o)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// start runs a Runner; stop ends it and returns what Run returned.
func start(t testing.TB, j *journal.Journal, d Destination, o Options) (r *Runner, stop func() error) {
	t.Helper()
	o.Name = "sink"
	r, err := New(j, d, o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	return r, func() error {
		cancel()
		defer r.Close()
		return <-done
	}
}

// ledger checks that all lines from the offset began on are accounted for.
func ledger(t testing.TB, r *Runner, j *journal.Journal, began uint64) Stats {
	t.Helper()
	s := r.Stats()
	sum := s.Delivered + s.Pending
	for _, n := range s.Dropped {
		sum += n
	}
	if sum != j.Next()-began {
		t.Errorf("%d lines, but %+v", j.Next()-began, s)
	}
	return s
}

func TestBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := open(t, disktest.NewMem(), journal.Options{})
		defer j.Close()
		m := &memory{}
		r, stop := start(t, j, m, Options{MaxEvents: 10, MaxBytes: 100, MaxAge: time.Second})
		began := time.Now()
		store(t, j, 0, 3)
		time.Sleep(500 * time.Millisecond)
		store(t, j, 3, 2)
		if m.count() != 0 {
			t.Error("a batch was sent before it was full or old")
		}
		time.Sleep(600 * time.Millisecond)
		lines, sizes, times := m.got()
		if len(lines) != 5 || times[0].Sub(began) != time.Second { // of its first line
			t.Errorf("%d lines in %v at %v", len(lines), sizes, times)
		}
		store(t, j, 5, 25) // by events; the longer ones by bytes
		store(t, j, 1_000_000_000, 1)
		time.Sleep(2 * time.Second)
		if _, sizes, _ := m.got(); fmt.Sprint(sizes) != "[10 10 6]" {
			t.Errorf("batches of %d lines", sizes)
		}
		store(t, j, 1_000_000_000_000_000, 8) // 24 bytes each
		time.Sleep(2 * time.Second)
		if _, sizes, _ := m.got(); fmt.Sprint(sizes) != "[4 4]" {
			t.Errorf("batches of %d long lines", sizes)
		}
		if s := ledger(t, r, j, 0); s.Delivered != 39 || s.Pending != 0 || s.Batches != 6 || s.Cursor != 39 {
			t.Errorf("%+v", s)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// A destination that is down is tried again, ever more rarely, and neither
// appends nor another sink wait for it.
func TestDeadDestination(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := open(t, disktest.NewMem(), journal.Options{})
		defer j.Close()
		dead, alive := &memory{}, &memory{}
		down := errors.New("down")
		var count atomic.Int32
		dead.failWith(func(*Batch) error {
			count.Add(1)
			return down
		})
		r, stop := start(t, j, dead, Options{MaxAge: time.Millisecond})
		other, err := New(j, alive, Options{Name: "other", MaxAge: time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		var running sync.WaitGroup
		defer other.Close()
		running.Go(func() { other.Run(ctx) })
		for i := range 100 {
			store(t, j, i, 1)
			time.Sleep(time.Second)
		}
		if alive.count() != 100 {
			t.Errorf("the other sink has %d lines", alive.count())
		}
		tries := int(count.Load())
		if s := ledger(t, r, j, 0); s.Pending != 100 || !errors.Is(s.LastError, down) || int(s.Retries) > tries || tries < 12 || tries > 40 {
			t.Errorf("%d tries: %+v", tries, s)
		}
		dead.failWith(nil)
		time.Sleep(20 * time.Second)
		if s := ledger(t, r, j, 0); s.Delivered != 100 || s.LastError != nil {
			t.Errorf("%+v", s)
		}
		lines, _, _ := dead.got()
		for i, line := range lines {
			if number(t, line) != i {
				t.Fatalf("line %d is %s", i, line)
			}
		}
		cancel()
		running.Wait()
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// Lines that are refused for good, and lines that were settled before a batch
// came again, are counted once.
func TestRefusedAndSettled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := open(t, disktest.NewMem(), journal.Options{})
		defer j.Close()
		m := &memory{}
		m.failWith(func(b *Batch) error {
			for i := range b.Len() {
				switch n := number(t, string(b.Line(i))); {
				case n%10 == 3:
					b.Refuse(i, errors.New("too large"))
				case n%10 == 4 && !b.Settled(i):
					m.lines = append(m.lines, string(b.Line(i)))
					b.Settle(i)
					return errors.New("broke off")
				}
			}
			return nil
		})
		r, stop := start(t, j, m, Options{})
		for i := range 50 {
			store(t, j, i, 1)
		}
		time.Sleep(time.Minute)
		if s := ledger(t, r, j, 0); s.Delivered != 45 || s.Dropped[ReasonRefused] != 5 || m.count() != 45 || s.Retries != 5 {
			t.Errorf("%d lines, %+v", m.count(), s)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// The process dies again and again: each line comes at least once, in order.
func TestRestarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem := disktest.NewMem()
		m := &memory{}
		rng, faults := rand.New(rand.NewPCG(1, 2)), rand.New(rand.NewPCG(3, 4))
		m.failWith(func(*Batch) error { // one at a time
			if faults.IntN(3) == 0 {
				return errors.New("now and then")
			}
			return nil
		})
		n := 0
		for range 20 {
			j := open(t, mem, journal.Options{SegmentBytes: 2000})
			r, stop := start(t, j, m, Options{MaxEvents: 7, MaxAge: 10 * time.Millisecond})
			began := r.Stats().Cursor
			for range 50 {
				store(t, j, n, 1)
				n++
				time.Sleep(time.Duration(rng.IntN(40)) * time.Millisecond)
			}
			ledger(t, r, j, began)
			killed := mem.KillClone()
			stop()
			j.Close()
			mem = killed
		}
		m.failWith(nil)
		j := open(t, mem, journal.Options{})
		r, stop := start(t, j, m, Options{})
		time.Sleep(time.Minute)
		if s := ledger(t, r, j, r.Stats().Cursor-r.Stats().Delivered); s.Pending != 0 || s.Cursor != uint64(n) {
			t.Errorf("%+v", s)
		}
		stop()
		j.Close()
		next := 0
		lines, _, _ := m.got()
		for _, line := range lines {
			switch k := number(t, line); {
			case k == next:
				next++
			case k > next:
				t.Fatalf("line %d came when %d was due", k, next)
			}
		}
		if next != n {
			t.Errorf("%d of %d lines", next, n)
		}
	})
}

// A sink that may drop loses what retention deletes, and counts it; one that may
// not makes the journal refuse lines instead.
func TestRetention(t *testing.T) {
	for _, drop := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			j := open(t, disktest.NewMem(), journal.Options{SegmentBytes: 500, RetainBytes: 2000, MaxBytes: 4000})
			defer j.Close()
			m := &memory{}
			m.failWith(func(*Batch) error { return errors.New("down") })
			r, stop := start(t, j, m, Options{DropOldest: drop, MaxEvents: 1})
			stored, refused := 0, 0
			for i := range 100 {
				_, err := j.Append(context.Background(), journal.Batch{Lines: fmt.Appendf(nil, `{"n":%d}`+"\n", i), Records: 1})
				switch {
				case err == nil:
					stored++
				case errors.Is(err, journal.ErrFull):
					refused++
				default:
					t.Fatal(err)
				}
				synctest.Wait()
			}
			m.failWith(nil)
			time.Sleep(time.Minute)
			s := ledger(t, r, j, 0)
			if (refused == 0) != drop || (s.Dropped[ReasonRetention] > 0) != drop || s.Pending != 0 || uint64(m.count()) != s.Delivered {
				t.Errorf("drop %v: %d stored, %d refused, %d delivered: %+v", drop, stored, refused, m.count(), s)
			}
			if s.Dropped[ReasonDamaged]+s.Dropped[ReasonRefused] != 0 {
				t.Errorf("%+v", s)
			}
			if err := stop(); err != nil {
				t.Error(err)
			}
		})
	}
}

// Lines of a damaged place are counted, and those after it delivered.
func TestDamage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem := disktest.NewMem()
		j := open(t, mem, journal.Options{SegmentBytes: 1000})
		for i := range 100 {
			store(t, j, i, 1)
		}
		j.Close()
		name := "/j/00000000000000000000.seg"
		b, err := mem.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		at := bytes.Index(b, []byte(`{"n":5}`))
		b[at] ^= 1
		if err := mem.WriteFile(name, b); err != nil {
			t.Fatal(err)
		}
		j = open(t, mem, journal.Options{})
		defer j.Close()
		m := &memory{}
		r, stop := start(t, j, m, Options{})
		time.Sleep(time.Second)
		if s := ledger(t, r, j, 0); s.Delivered != 99 || s.Dropped[ReasonDamaged] != 1 || m.count() != 99 {
			t.Errorf("%+v", s)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// What was not delivered when Run ends is held until Close: requests may still be
// answered meanwhile.
func TestHoldsBehindRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := open(t, disktest.NewMem(), journal.Options{SegmentBytes: 300, RetainBytes: 1000})
		defer j.Close()
		dead := &memory{}
		dead.failWith(func(*Batch) error { return errors.New("down") })
		r, err := New(j, dead, Options{Name: "sink"})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := r.Run(ctx); err != nil {
			t.Fatal(err)
		}
		more := func() {
			for i := range 100 {
				store(t, j, i, 1)
			}
			synctest.Wait() // for retention
		}
		if more(); j.First() != 0 {
			t.Errorf("records below %d were deleted", j.First())
		}
		r.Close()
		if more(); j.First() == 0 {
			t.Error("nothing was deleted")
		}
	})
}

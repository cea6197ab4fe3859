package query

import (
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rollway/rollway/collector/journal"
)

// store is a journal, or a fake of one, that a test fills. Each add is one
// frame.
type store interface {
	First() uint64
	Next() uint64
	reader(from uint64) reader
	add(t testing.TB, lines ...string)
}

// over returns an API over s.
func over(s store, o Options) (*API, error) { return newAPI(source{s.First, s.Next, s.reader}, o) }

// eachStore runs test over a store in memory and over a real journal.
func eachStore(t *testing.T, test func(t *testing.T, s store)) {
	t.Run("memory", func(t *testing.T) { test(t, &memory{}) })
	t.Run("journal", func(t *testing.T) { test(t, openJournal(t, journalDefaults)) })
}

// testLine is a canonical line without its line feed; n seconds after midnight.
func testLine(n int, level, msg string) string {
	at := time.Date(2026, 5, 28, 0, 0, n, 0, time.UTC)
	return fmt.Sprintf(`{"time":"%s","level":"%s","msg":"%s","attrs":{"n":%d}}`, at.Format("2006-01-02T15:04:05.000000000Z"), level, msg, n)
}

// timesOf are the times of the oldest and the newest line.
func timesOf(lines []string) (minimum, maximum int64) {
	minimum, maximum = math.MaxInt64, math.MinInt64
	for _, line := range lines {
		at, err := ParseTime(line[len(`{"time":"`):][:30], testNow)
		if err != nil {
			panic(err)
		}
		minimum, maximum = min(minimum, at.UnixNano()), max(maximum, at.UnixNano())
	}
	return minimum, maximum
}

// memory is a store that can be made to fail.
type memory struct {
	mu     sync.Mutex
	frames []memoryFrame
	first  uint64
	next   uint64
	closed bool
	news   chan struct{} // closed by add and close

	before func(first uint64) error // called by TryNext before the frame at first is returned
}

type memoryFrame struct {
	journal.Frame
	min, max int64
}

func (m *memory) add(_ testing.TB, lines ...string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f := memoryFrame{Frame: journal.Frame{First: m.next, Records: len(lines), Lines: []byte(strings.Join(lines, "\n") + "\n")}}
	f.min, f.max = timesOf(lines)
	m.frames = append(m.frames, f)
	m.next += uint64(len(lines))
	m.wakeLocked()
}

func (m *memory) wakeLocked() {
	if m.news != nil {
		close(m.news)
		m.news = nil
	}
}

func (m *memory) close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	m.wakeLocked()
}

// retain deletes the frames before offset.
func (m *memory) retain(offset uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.first = offset
	m.frames = slices.DeleteFunc(m.frames, func(f memoryFrame) bool { return f.First < offset })
}

func (m *memory) First() uint64 { m.mu.Lock(); defer m.mu.Unlock(); return m.first }
func (m *memory) Next() uint64  { m.mu.Lock(); defer m.mu.Unlock(); return m.next }

func (m *memory) reader(from uint64) reader {
	return &memoryReader{m: m, next: from, min: math.MinInt64, max: math.MaxInt64}
}

type memoryReader struct {
	m        *memory
	next     uint64
	min, max int64
}

func (r *memoryReader) SetTimeRange(minimum, maximum int64) { r.min, r.max = minimum, maximum }
func (r *memoryReader) Offset() uint64                      { return r.next }
func (r *memoryReader) Close() error                        { return nil }

func (r *memoryReader) TryNext() (journal.Frame, bool, error) {
	r.m.mu.Lock()
	defer r.m.mu.Unlock()
	if r.next > r.m.next || r.next < r.m.first {
		g := &journal.Gap{From: r.next, To: r.m.first, Reason: "deleted by retention"}
		if r.next > r.m.next {
			g.To, g.Reason = r.m.next, "the journal was replaced"
		}
		r.next = g.To
		return journal.Frame{}, false, g
	}
	for _, f := range r.m.frames {
		end := f.First + uint64(f.Records)
		if end <= r.next {
			continue
		}
		if f.max < r.min || f.min > r.max {
			r.next = end
			continue
		}
		if before := r.m.before; before != nil {
			r.m.mu.Unlock()
			err := before(f.First)
			r.m.mu.Lock()
			if err != nil {
				return journal.Frame{}, false, err
			}
		}
		for f.First < r.next {
			f.Lines = f.Lines[slices.Index(f.Lines, '\n')+1:]
			f.First++
			f.Records--
		}
		r.next = end
		return f.Frame, true, nil
	}
	if r.m.closed {
		return journal.Frame{}, false, io.EOF
	}
	return journal.Frame{}, false, nil
}

func (r *memoryReader) Next(ctx context.Context) (journal.Frame, error) {
	for {
		r.m.mu.Lock()
		if r.m.news == nil {
			r.m.news = make(chan struct{})
		}
		news := r.m.news
		r.m.mu.Unlock()
		f, ok, err := r.TryNext()
		if ok || err != nil {
			return f, err
		}
		select {
		case <-news:
		case <-ctx.Done():
			return journal.Frame{}, ctx.Err()
		}
	}
}

// journalStore is the real thing, as the collector composes it.
type journalStore struct{ *journal.Journal }

func openJournal(t testing.TB, o journal.Options) journalStore {
	t.Helper()
	j, err := journal.Open(t.TempDir(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := j.Close(); err != nil {
			t.Error(err)
		}
	})
	return journalStore{j}
}

func (s journalStore) add(t testing.TB, lines ...string) {
	b := journal.Batch{Lines: []byte(strings.Join(lines, "\n") + "\n"), Records: len(lines)}
	b.MinTime, b.MaxTime = timesOf(lines)
	if _, err := s.Append(context.Background(), b); err != nil {
		t.Error(err)
	}
}

func (s journalStore) reader(from uint64) reader { return s.Journal.NewReader(from) }

var journalDefaults journal.Options

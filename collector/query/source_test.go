package query

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rollway/rollway/collector/columns"
	"github.com/rollway/rollway/collector/filters"
	"github.com/rollway/rollway/collector/journal"
	"github.com/rollway/rollway/internal/disktest"
)

// store is a journal in memory whose readers can be made to fail. Each add is one frame.
type store struct {
	*journal.Journal
	before func(first uint64) error // called before the frame at first is read
	blind  bool                     // filters are not asked
	sift   func()                   // called before filters are asked
	asking atomic.Int64             // turns in which filters were asked
	blocks atomic.Int64             // that were unpacked
}

// countedTurn is a turn in which filters are asked.
type countedTurn struct {
	journal.Turn
	s *store
}

func (c countedTurn) Begin() {
	c.s.asking.Add(1)
	c.Turn.Begin()
}

func (s *store) Exclude(offset uint64, minTime, maxTime int64, t *filters.Test, turn journal.Turn, ended func() bool) (first, end uint64, parts []journal.Excluded, err error) {
	if s.blind {
		t = nil
	}
	if t != nil && s.sift != nil {
		s.sift()
	}
	return s.Journal.Exclude(offset, minTime, maxTime, t, countedTurn{turn, s}, ended)
}

func newStore(t testing.TB) *store { return openStore(t, journal.Options{Disk: disktest.NewMem()}) }

func openStore(t testing.TB, o journal.Options) *store {
	t.Helper()
	j, err := journal.Open(t.TempDir(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := j.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
			t.Error(err)
		}
	})
	return &store{Journal: j}
}

// over returns an API over s.
func over(s *store, o Options) (*API, error) {
	return newAPI(source{s.First, s.Next, s.Span, s.Exclude, s.reader, s.SegmentsIn, s.Counts}, o)
}

func (s *store) add(t testing.TB, lines ...string) {
	b := journal.Batch{Lines: []byte(strings.Join(lines, "\n") + "\n"), Records: len(lines)}
	b.MinTime, b.MaxTime = timesOf(lines)
	if _, err := s.Append(context.Background(), b); err != nil {
		t.Error(err)
	}
}

func (s *store) reader(from uint64) reader { return &storeReader{Reader: s.NewReader(from), s: s} }

type storeReader struct {
	*journal.Reader
	s    *store
	held *journal.Frame // read, and not returned yet
}

func (r *storeReader) Offset() uint64 {
	if r.held != nil {
		return r.held.First
	}
	return r.Reader.Offset()
}

func (r *storeReader) Seek(offset uint64) error {
	r.held = nil
	return r.Reader.Seek(offset)
}

func (r *storeReader) SetUnpack(unpack journal.Unpack, ahead bool) {
	r.Reader.SetUnpack(func(dst, block []byte, size int, times columns.Range) ([]byte, error) {
		r.s.blocks.Add(1)
		return unpack(dst, block, size, times)
	}, ahead)
}

func (r *storeReader) hold(f journal.Frame) {
	f.Lines = bytes.Clone(f.Lines) // they are lent until the next call
	r.held = &f
}

func (r *storeReader) TryNext() (journal.Frame, bool, error) {
	if r.held == nil {
		f, ok, err := r.Reader.TryNext()
		if err != nil || !ok {
			return f, ok, err
		}
		r.hold(f)
	}
	if r.s.before != nil {
		if err := r.s.before(r.held.First); err != nil {
			return journal.Frame{}, false, err
		}
	}
	f := *r.held
	r.held = nil
	return f, true, nil
}

func (r *storeReader) Next(ctx context.Context) (journal.Frame, error) {
	if r.held == nil {
		f, err := r.Reader.Next(ctx)
		if err != nil {
			return f, err
		}
		r.hold(f)
	}
	f, _, err := r.TryNext()
	return f, err
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

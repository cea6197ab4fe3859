package spool

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollway/rollway/internal/disktest"
)

func TestRefuse(t *testing.T) {
	s := mustOpen(t, disktest.NewMem(), Options{MaxBytes: 10_000, SegmentBytes: 1000})
	n := uint64(0)
	for ; n < 1000; n++ {
		if err := s.Append([]byte(texts(n*2, n*2+2))); err != nil {
			if !errors.Is(err, ErrFull) || !strings.Contains(err.Error(), "bound of 10000") {
				t.Fatal(err)
			}
			break
		}
	}
	balanced(t, s)
	if st := s.Stats(); st.Bytes > 10_000 || st.Bytes < 9000 || st.Refused != 2 || st.Dropped.Total() != 0 {
		t.Fatalf("%+v", st)
	}
	b := mustNext(t, s)
	head := string(b.Data)
	mustAck(t, s, b, len(head))
	mustAppend(t, s, texts(n*2, n*2+2))
	want(t, head+drain(t, s), texts(0, n*2+2))
	if err := s.Append([]byte(text(0, 10_000))); !errors.Is(err, ErrFull) {
		t.Errorf("a line above the bound: %v", err)
	}
}

func TestDropOldest(t *testing.T) {
	s := mustOpen(t, disktest.NewMem(), Options{MaxBytes: 10_000, SegmentBytes: 1000, Full: DropOldest})
	mustAppend(t, s, texts(0, 2))
	inFlight := mustNext(t, s)
	for n := uint64(1); n < 1000; n++ {
		mustAppend(t, s, texts(n*2, n*2+2))
		if st := s.Stats(); st.Bytes > 10_000 {
			t.Fatalf("%+v", st)
		}
	}
	st := s.Stats()
	if st.Refused != 0 || st.Dropped.Full < 1000 || st.Dropped.Full != st.Dropped.Total() || st.First != 0 {
		t.Fatalf("%+v", st)
	}
	want(t, string(inFlight.Data), texts(0, 2)) // still there
	mustAck(t, s, inFlight, len(inFlight.Data))
	from := s.Stats().First
	if from != st.Dropped.Full+2 {
		t.Errorf("first is %d, dropped %+v", from, st.Dropped)
	}
	want(t, drain(t, s), texts(from, 2000))
	if err := s.Append([]byte(text(0, 10_000))); !errors.Is(err, ErrFull) {
		t.Errorf("a line above the bound: %v", err)
	}
}

// What was in flight when its place was taken is counted when it cannot be
// kept any more.
func TestDropOldestInFlightAtClose(t *testing.T) {
	mem := disktest.NewMem()
	s := mustOpen(t, mem, Options{MaxBytes: 3000, SegmentBytes: 500, Full: DropOldest})
	mustAppend(t, s, texts(0, 2))
	mustNext(t, s)
	for n := uint64(1); n < 100; n++ {
		mustAppend(t, s, texts(n*2, n*2+2))
	}
	before := s.Stats()
	s.Close()
	balanced(t, s)
	if st := s.Stats(); st.Dropped.Full != before.Dropped.Full+2 || st.Lines != before.Lines-2 {
		t.Fatalf("%+v, then %+v", before, st)
	}
	left := s.Stats().Lines
	s = mustOpen(t, mem, Options{})
	if st := s.Stats(); st.Recovered != left {
		t.Fatalf("%d left, %+v", left, st)
	}
	want(t, drain(t, s), texts(200-left, 200))
}

func TestMaxAge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := mustOpen(t, disktest.NewMem(), Options{MaxAge: time.Hour, SegmentBytes: 300, MaxBytes: 3000})
		for n := range uint64(10) {
			mustAppend(t, s, texts(n*2, n*2+2))
			time.Sleep(10 * time.Minute)
		}
		// 100, 90, … 10 minutes old
		b := mustNext(t, s)
		if st := s.Stats(); st.Dropped.Old != 8 || time.Since(st.Oldest) != time.Hour {
			t.Fatalf("%+v", st)
		}
		if b.Line != 8 {
			t.Fatalf("first is %d", b.Line)
		}
		mustAck(t, s, b, 20) // in the middle of a batch
		if s.Expire(b) || b.Line != 9 {
			t.Fatalf("%d", b.Line)
		}
		time.Sleep(10 * time.Minute)
		left := s.Expire(b)
		balanced(t, s)
		if st := s.Stats(); left || st.Dropped.Old != 9 || b.Line != 10 || string(b.Data[:3]) != "10 " {
			t.Fatalf("%+v, %d", st, b.Line)
		}
		time.Sleep(2 * time.Hour)
		gone := s.Expire(b)
		balanced(t, s)
		if st := s.Stats(); !gone || len(b.Data) > 0 || st.Dropped.Old != 11 || b.Line != 12 || s.Expire(b) {
			t.Fatalf("%+v, %d", st, b.Line)
		}
		want(t, drain(t, s), "")

		// Append makes room of what is too old before it refuses.
		for n := range uint64(1000) {
			if err := s.Append([]byte(texts(n*2, n*2+2))); err != nil {
				break
			}
		}
		time.Sleep(2 * time.Hour)
		mustAppend(t, s, texts(0, 2))
		if st := s.Stats(); st.Dropped.Old <= 19 {
			t.Fatalf("%+v", st)
		}
		want(t, drain(t, s), texts(0, 2))
	})
}

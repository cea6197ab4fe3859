package shard_test

import (
	"bytes"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollway/rollway/rollwaytest"
	"github.com/rollway/rollway/shard"
)

// reopened notes what it has been given when it is reopened.
type reopened struct {
	*rollwaytest.Destination
	had []string
}

func (r *reopened) Reopen() error {
	r.had = append(r.had, string(r.Bytes()))
	return nil
}

func openReopened(t *testing.T, retry shard.Retry) (*shard.Writer, *reopened) {
	t.Helper()
	dst := &reopened{Destination: new(rollwaytest.Destination)}
	o := small
	o.Retry, o.CloseTimeout = retry, time.Hour
	w, err := shard.New(dst, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		dst.Heal()
		w.Close()
	})
	return w, dst
}

// A destination that has a part of a record, or of an announcement, gets the rest
// before it is reopened.
func TestReopenWaitsForTheRest(t *testing.T) {
	for name, give := range map[string]func(w *shard.Writer) error{
		"record":       func(w *shard.Writer) error { return w.LogBytes([]byte("record")) },
		"announcement": func(w *shard.Writer) error { w.LogBytes(make([]byte, 70_000)); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, dst := openReopened(t, shard.Retry{Min: time.Millisecond, Max: time.Millisecond})
				dst.Next(rollwaytest.Fault{Take: 3, Err: rollwaytest.ErrFault})
				dst.Fail(nil)
				if err := give(w); err != nil {
					t.Error(err)
				}
				time.Sleep(time.Minute)
				if n := len(dst.Bytes()); n != 3 {
					t.Fatalf("the destination has %d bytes", n)
				}
				done := make(chan error)
				go func() { done <- w.Reopen() }()
				synctest.Wait()
				dst.Next(rollwaytest.Fault{Exit: true}) // and another goroutine goes on
				time.Sleep(time.Minute)
				if len(dst.had) > 0 {
					t.Errorf("reopened with %q", dst.had)
				}
				dst.Heal()
				if err := <-done; err != nil {
					t.Error(err)
				}
				if len(dst.had) != 1 || !bytes.HasSuffix([]byte(dst.had[0]), []byte("\n")) {
					t.Errorf("reopened with %q", dst.had)
				}
			})
		})
	}
}

// Reopen ends the wait between two tries: it may be what makes the destination
// work again.
func TestReopenEndsAWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, dst := openReopened(t, shard.Retry{Min: 10 * time.Hour, Max: 10 * time.Hour})
		dst.Fail(nil)
		log(t, w, "one")
		time.Sleep(2 * time.Second) // it has failed, and the wait has begun
		dst.Heal()
		began := time.Now()
		if err := w.Reopen(); err != nil {
			t.Error(err)
		}
		if err := w.Flush(t.Context()); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took > time.Second {
			t.Errorf("it took %v", took)
		}
		settled(t, w, 1, 1)
	})
}

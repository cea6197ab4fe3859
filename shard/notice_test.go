package shard_test

import (
	"bytes"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollway/rollway/rollwaytest"
	"github.com/rollway/rollway/shard"
)

// A loss is announced also when the announcement fails at first and no record
// follows, and when nothing but the loss happens.
func TestNoticesAreOwedUntilTheyAreWritten(t *testing.T) {
	tooLarge := bytes.Repeat([]byte("x"), 70_000)
	notice := func(dst *rollwaytest.Destination) bool {
		return bytes.Contains(dst.Bytes(), []byte(`"reason":"line too large","dropped":1}`))
	}
	t.Run("idle", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w, dst := open(t, small)
			time.Sleep(time.Hour)
			if err := w.LogBytes(tooLarge); !errors.Is(err, shard.ErrTooLarge) {
				t.Errorf("LogBytes = %v", err)
			}
			time.Sleep(2 * time.Second)
			if !notice(dst) {
				t.Errorf("the destination has %q", dst.Bytes())
			}
		})
	})
	t.Run("fails at first", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w, dst := open(t, small)
			dst.FailTimes(1)
			w.LogBytes(tooLarge)
			time.Sleep(time.Minute)
			if err := w.Close(); err != nil {
				t.Error(err)
			}
			if !notice(dst) {
				t.Errorf("the destination has %q", dst.Bytes())
			}
			settled(t, w, 1, 0)
		})
	})
	t.Run("torn", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w, dst := open(t, small)
			dst.Next(rollwaytest.Fault{Take: 10, Err: rollwaytest.ErrFault}, rollwaytest.Fault{Take: 7}, rollwaytest.Fault{Panic: 1}, rollwaytest.Fault{Exit: true})
			w.LogBytes(tooLarge)
			log(t, w, "after")
			if err := w.Close(); err != nil {
				t.Error(err)
			}
			if l := dst.Lines(); len(l) != 2 || !notice(dst) || l[1] != "after" {
				t.Errorf("the destination has %q", l)
			}
			if s := w.Stats(); s.Notices != 1 {
				t.Errorf("Stats %+v", s)
			}
			settled(t, w, 2, 1)
		})
	})
}

package rollwaytest

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/rollway/rollway/line"
)

// eachLevel has the levels of the lines, in turn; some have no name.
var eachLevel = []slog.Level{slog.LevelDebug, slog.LevelInfo, slog.LevelError, slog.LevelWarn, slog.LevelInfo + 2, slog.LevelDebug - 4}

func checkLevels(t *testing.T, su *suite) {
	producers, n := 4, su.some(300)
	w := su.Writer.(line.LevelWriter)
	var wg sync.WaitGroup
	for p := range producers {
		wg.Go(func() {
			var buf []byte
			for seq := range n {
				buf = append(buf[:0], lineOf(p, seq, 100+(seq*37+p*11)%400)...)
				if seq%5 == 0 {
					buf = bytes.TrimSuffix(buf, []byte("\n"))
				}
				write := su.Writer.Write
				if seq%3 > 0 {
					write = func(b []byte) (int, error) { return w.WriteLevel(eachLevel[seq%len(eachLevel)], b) }
				}
				if n, err := write(buf); n != len(buf) || err != nil {
					t.Errorf("line %d of producer %d: %d, %v, want %d, nil", seq, p, n, err, len(buf))
					return
				}
				for i := range buf {
					buf[i] = 'X'
				}
			}
		})
	}
	wg.Wait()
	if n, err := w.WriteLevel(slog.LevelError, nil); n != 0 || err != nil {
		t.Errorf("WriteLevel of nothing = %d, %v, want 0, nil", n, err)
	}
	su.flush(t)
	su.wantAll(t, producers, n)
}

func checkLevelAfterClose(t *testing.T, su *suite) {
	su.write(t, lineOf(0, 0, 150))
	su.close(t)
	for i, level := range eachLevel {
		if n, err := su.Writer.(line.LevelWriter).WriteLevel(level, lineOf(0, 1+i, 150)); n != 0 || !errors.Is(err, os.ErrClosed) {
			t.Errorf("WriteLevel of %v after Close = %d, %v, want 0, os.ErrClosed", level, n, err)
		}
	}
	su.wantAll(t, 1, 1)
	su.wantRejected(t, len(eachLevel))
}

func checkStallSync(t *testing.T, su *suite) {
	su.stuck(t, 3)
	got := make(chan error, 1)
	go func() { got <- su.Writer.Sync() }()
	select {
	case err := <-got:
		if err == nil {
			t.Error("Sync = nil, but no line is at the destination")
		}
	case <-time.After(time.Hour):
		t.Fatal("Sync waits on")
	}
	if su.Ledger != nil {
		l := su.Ledger()
		if l.Check(t); l.Accepted != 3 || l.Pending != 3 {
			t.Errorf("ledger: accepted %d, pending %d, want 3 and 3", l.Accepted, l.Pending)
		}
	}
	su.Heal()
	if err := su.Writer.Sync(); err != nil {
		t.Errorf("Sync on a healed destination = %v, want nil", err)
	}
	su.wantAll(t, 1, 3)
}

func checkFailSync(t *testing.T, su *suite) {
	const n = 30
	su.FailSync()
	for seq := range n {
		su.write(t, lineOf(0, seq, 150))
		if su.Writer.Sync() == nil {
			t.Errorf("line %d: Sync = nil, but the destination's fails", seq)
		}
	}
	su.flush(t)
	su.wantAll(t, 1, n)
	su.Heal()
	su.write(t, lineOf(0, n, 150))
	if err := su.Writer.Sync(); err != nil {
		t.Errorf("Sync on a healed destination = %v, want nil", err)
	}
	su.wantAll(t, 1, n+1)
}

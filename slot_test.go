package rollway

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
)

func TestSlot(t *testing.T) {
	s := NewSlot(0)
	l := mustNew(t, Options{Outputs: []Output{{Writer: s, Level: slog.LevelDebug}}, Caller: LevelOff})
	l.Debug(t.Context(), "one")
	l.Warn(t.Context(), "two")
	if err := l.Flush(t.Context()); err == nil || !strings.Contains(err.Error(), "wait for Attach") {
		t.Errorf("Flush before Attach: %v", err)
	}
	var lb levelBuffer
	if err := s.Attach(&lb); err != nil {
		t.Fatal(err)
	}
	l.Error(t.Context(), "three")
	if got := strings.Join(lb.lines, ""); strings.Count(got, "\n") != 3 || strings.Index(got, "one") > strings.Index(got, "two") || strings.Index(got, "two") > strings.Index(got, "three") {
		t.Errorf("got %s", got)
	}
	if len(lb.levels) != 3 || lb.levels[0] != slog.LevelDebug || lb.levels[1] != slog.LevelWarn {
		t.Errorf("levels %v", lb.levels)
	}
	if err := s.Attach(&lb); err == nil {
		t.Error("a second Attach was taken")
	}
	if err := s.Attach(nil); err == nil {
		t.Error("Attach took nil")
	}
}

func TestSlotBound(t *testing.T) {
	s := NewSlot(1000)
	l := mustNew(t, Options{Outputs: []Output{{Writer: s}}, OnError: func(error) {}, Caller: LevelOff})
	for range 100 {
		l.Info(t.Context(), "a message of some length that is logged early")
	}
	var b bytes.Buffer
	if err := s.Attach(&b); err != nil {
		t.Fatal(err)
	}
	l.Info(t.Context(), "after")
	st := l.Stats().Outputs[0]
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")
	kept := len(lines) - 2 // without the notice and the last
	if uint64(kept+1) != st.Written || uint64(100-kept) != st.Failed {
		t.Errorf("%d early lines came through; Stats say %+v", kept, st)
	}
	if want := "rollway: " + itoa(100-kept) + " lines dropped"; !strings.Contains(lines[kept], want) {
		t.Errorf("line %d is %s, want %q", kept, lines[kept], want)
	}
}

// TestSlotNoticeHasTheFormat: of the lines that it stands among.
func TestSlotNoticeHasTheFormat(t *testing.T) {
	for enc, want := range map[Encoder]string{
		Logfmt{Layout: "level msg attrs"}:  `level=WARN msg="rollway: 2 lines dropped" reason="slot full" dropped=2`,
		Console{Layout: "level msg attrs"}: `WARN  rollway: 2 lines dropped reason="slot full" dropped=2`,
		JSON{Layout: "msg attrs"}:          `{"msg":"rollway: 2 lines dropped","attrs":{"reason":"slot full","dropped":2}}`,
	} {
		s := NewSlot(100)
		l := mustNew(t, Options{Outputs: []Output{{Writer: s, Encoder: enc}}, OnError: func(error) {}})
		l.Info(t.Context(), "kept")
		for range 2 {
			l.Info(t.Context(), strings.Repeat("x", 100))
		}
		var b bytes.Buffer
		if err := s.Attach(&b); err != nil {
			t.Fatal(err)
		}
		if _, got, _ := strings.Cut(b.String(), "\n"); got != want+"\n" {
			t.Errorf("%T: got %swant %s", enc, got, want)
		}
	}
}

func itoa(n int) string { return slog.IntValue(n).String() }

func TestSlotConcurrently(t *testing.T) {
	s := NewSlot(1 << 20)
	l := mustNew(t, Options{Outputs: []Output{{Writer: s}}, Caller: LevelOff})
	var b levelBuffer // has no bound on how long a line may wait
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 500 {
				l.Info(t.Context(), "m")
			}
		})
	}
	if err := s.Attach(&b); err != nil {
		t.Fatal(err)
	}
	wg.Wait()
	if n := len(b.lines); n != 2000 {
		t.Errorf("%d lines, want 2000", n)
	}
}

func TestSlotClose(t *testing.T) {
	s := NewSlot(0)
	if _, err := s.Write([]byte("x\n")); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err == nil || !strings.Contains(err.Error(), "2 bytes are lost") {
		t.Errorf("Close: %v", err)
	}
	if _, err := s.Write([]byte("x\n")); !errors.Is(err, os.ErrClosed) {
		t.Errorf("Write after Close: %v", err)
	}
	if err := s.Attach(&bytes.Buffer{}); !errors.Is(err, os.ErrClosed) {
		t.Errorf("Attach after Close: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Errorf("second Close: %v", err)
	}
}

package rollway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/bits"
	"net/url"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// What users' values, writers and contexts must not be able to do.

func TestCyclicValues(t *testing.T) {
	m := map[string]any{}
	m["m"] = m
	s := make([]any, 1)
	s[0] = s
	for _, enc := range []Encoder{JSON{}, Logfmt{}, Console{}} {
		l, b := newTestLogger(t, enc)
		l.Info(t.Context(), "x", slog.Any("m", m), slog.Any("s", s))
		if got := b.String(); strings.Count(got, "!ERROR") != 2 || strings.Count(got, "\n") != 1 {
			t.Errorf("%T: %s", enc, got)
		}
	}
}

type twice struct{ calls *int }

func (v twice) LogValue() slog.Value {
	*v.calls++
	return slog.GroupValue(slog.Any("a", v), slog.Any("b", v))
}

// TestGroupsThatDouble: 2^32 calls would not end.
func TestGroupsThatDouble(t *testing.T) {
	for name, o := range map[string]Options{"json": {}, "redact": {Redact: &Redaction{Keys: []string{"x"}}}} {
		for _, enc := range []Encoder{JSON{}, Logfmt{}, Console{}} {
			var b bytes.Buffer
			calls := 0
			o.Outputs = []Output{{Writer: &b, Encoder: enc}}
			o.MaxLine = 64 << 10
			mustNew(t, o).Info(t.Context(), "m", slog.Any("v", twice{&calls}))
			if b.Len() > 64<<10 || strings.Count(b.String(), "\n") != 1 || calls > 1_000_000 {
				t.Errorf("%s, %T: %d bytes, %d calls of LogValue", name, enc, b.Len(), calls)
			}
		}
	}
}

type ownSlice struct{ out []byte }

func (e ownSlice) AppendLine([]byte, *Record) []byte { return e.out }

func TestEncoderWithASliceOfItsOwn(t *testing.T) {
	for want, out := range map[string][]byte{"x\n": []byte("x"), "\n": nil} {
		var a, b bytes.Buffer
		l := mustNew(t, Options{Outputs: []Output{{Writer: &a}, {Writer: &b, Encoder: Custom{ownSlice{out}}}}})
		l.Info(t.Context(), "m")
		if b.String() != want || strings.Count(a.String(), "\n") != 1 {
			t.Errorf("got %q and %q", a.String(), b.String())
		}
	}
}

type secretStringer struct{ Password string }

func (s secretStringer) String() string { return "password " + s.Password }

type jsonError struct{}

func (jsonError) Error() string                { return "plain" }
func (jsonError) MarshalJSON() ([]byte, error) { return []byte(`{"t":"hunter2"}`), nil }

func TestRedactionCannotBePassedBy(t *testing.T) {
	u, err := url.Parse("https://bob:hunter2@host/")
	if err != nil {
		t.Fatal(err)
	}
	type hidden struct {
		Name     string
		Password string `json:"-"`
	}
	for _, enc := range []Encoder{JSON{}, JSON{Errors: ErrorDetail}, Logfmt{}, Logfmt{Errors: ErrorDetail}, Console{}, Console{Errors: ErrorDetail}, Custom{new(shout)}} {
		var b bytes.Buffer
		l := mustNew(t, Options{Outputs: []Output{{Writer: &b, Encoder: enc}}, Redact: &Redaction{
			Keys:     []string{"password", "user.ssn", "*token*"},
			Patterns: []*regexp.Regexp{regexp.MustCompile("(?i)hunter2")},
		}})
		l.Info(t.Context(), "m",
			slog.Any("a", hidden{"bob", "hunter2"}), slog.Any("b", secretStringer{"hunter2"}), slog.Any("c", u),
			slog.Any("d", jsonError{}), slog.Any("e", fmt.Errorf("outer: %w", errors.New("hunter2"))),
			slog.String("user.ssn", "hunter2"), slog.String("auth/token", "HUNTER2"), slog.Any("f", []byte("hunter2")))
		if got := b.String(); strings.Contains(strings.ToLower(got), "hunter2") {
			t.Errorf("%T shows a secret: %s", enc, got)
		}
	}
}

// TestOneWriterInTwoOutputs: it is still written one call at a time, and closed
// once.
func TestOneWriterInTwoOutputs(t *testing.T) {
	w := &exclusive{}
	l := mustNew(t, Options{Outputs: []Output{
		{Writer: w, Level: LevelRange{slog.LevelInfo, slog.LevelInfo}},
		{Writer: w, Level: slog.LevelWarn, Encoder: Console{}},
	}, MaxWait: time.Minute})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 200 {
				l.Info(context.Background(), "m")
				l.Warn(context.Background(), "m")
			}
		})
	}
	wg.Wait()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if w.lines != 3200 || w.overlaps.Load() != 0 || w.closes != 1 {
		t.Errorf("%d lines, %d overlaps, closed %d times", w.lines, w.overlaps.Load(), w.closes)
	}
}

// exclusive notices calls that overlap.
type exclusive struct {
	inside, overlaps atomic.Int32
	lines, closes    int
}

func (w *exclusive) Write(p []byte) (int, error) {
	if w.inside.Add(1) > 1 {
		w.overlaps.Add(1)
	}
	w.lines++
	w.inside.Add(-1)
	return len(p), nil
}

func (w *exclusive) Close() error { w.closes++; return nil }

// TestFatalWaitsForASlowWrite: what is logged last is not what is left out.
func TestFatalWaitsForASlowWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b bytes.Buffer
		first := true
		slow := writerFunc(func(p []byte) (int, error) {
			if first {
				first = false
				time.Sleep(3 * defaultMaxWait)
			}
			return b.Write(p)
		})
		exited := false
		l := mustNew(t, Options{Outputs: []Output{{Writer: slow}}, OnError: func(error) {}, Exit: func(int) { exited = true }})
		go l.Info(t.Context(), "slow")
		synctest.Wait()
		l.Info(t.Context(), "left out")
		l.Fatal(t.Context(), "the last word")
		lines := strings.Split(strings.TrimSpace(b.String()), "\n")
		if !exited || len(lines) != 3 || !strings.Contains(lines[0], `"slow"`) || !strings.Contains(lines[2], "the last word") ||
			!strings.Contains(lines[1], `"msg":"rollway: 1 line dropped","attrs":{"reason":"writer stalled or failed","dropped":1}`) {
			t.Errorf("got %s", b.String())
		}
	})
}

// TestLossesAreAnnounced: written lines, and the numbers in the notices, are
// what was logged.
func TestLossesAreAnnounced(t *testing.T) {
	var b bytes.Buffer
	n := 0
	flaky := writerFunc(func(p []byte) (int, error) {
		if n++; n%7 < 3 {
			return 0, errors.New("not now")
		}
		return b.Write(p)
	})
	l := mustNew(t, Options{Outputs: []Output{{Writer: flaky, Encoder: JSON{}}}, OnError: func(error) {}})
	const logged = 1000
	for range logged {
		l.Info(t.Context(), "m")
	}
	written, dropped := 0, 0
	for line := range strings.Lines(b.String()) {
		var got struct{ Attrs struct{ Dropped int } }
		if err := json.Unmarshal([]byte(line), &got); err != nil {
			t.Fatal(err)
		}
		if got.Attrs.Dropped > 0 {
			dropped += got.Attrs.Dropped
		} else {
			written++
		}
	}
	pending := int(l.core.outputs[0].unannounced.Load())
	s := l.Stats().Outputs[0]
	if written+dropped+pending != logged || uint64(written) != s.Written || uint64(dropped+pending) != s.Dropped.GaveUp {
		t.Errorf("written %d, announced %d, not yet %d, of %d; Stats: %+v", written, dropped, pending, logged, s)
	}
}

type brokenContext struct{ context.Context }

func (c *brokenContext) Value(any) any { return c.Context.Value(nil) }

func TestPanicsOfOthersDoNotReachTheCaller(t *testing.T) {
	var nilContext *brokenContext
	l, b := newTestLogger(t, JSON{})
	l.Info(nilContext, "m")
	if got := oneLine(t, b); got != `{"level":"INFO","msg":"m"}` {
		t.Errorf("got %s", got)
	}
	l = mustNew(t, Options{Outputs: []Output{{Writer: b, Level: LevelFunc(func(slog.Level) bool { panic("level") })}}, Caller: LevelOff})
	l.Info(t.Context(), "taken")
	if got := oneLine(t, b); !strings.Contains(got, "taken") {
		t.Errorf("got %s", got)
	}
	l = mustNew(t, Options{Outputs: []Output{{Writer: &flusher{err: io.ErrClosedPipe}}}, OnError: func(error) { panic("handler") }, Exit: func(int) {}})
	l.Fatal(t.Context(), "m")
	if err := l.Flush(noContext); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("Flush(nil) = %v", err)
	}
	if ContextWith(noContext, slog.Int("a", 1)) == nil {
		t.Error("ContextWith(nil) is nil")
	}
	mustNew(t, Options{Outputs: []Output{{Writer: b}}, Levels: new(Levels)}).Named("x").Info(t.Context(), "m")
	var nilVar *slog.LevelVar
	var nilJSON *JSON
	for _, o := range []Options{
		{Outputs: []Output{{Writer: b, Level: nilVar}}},
		{Outputs: []Output{{Writer: b, Encoder: nilJSON}}},
		{Caller: nilVar},
		{Redact: &Redaction{Patterns: []*regexp.Regexp{nil}}},
	} {
		if _, err := New(o); err == nil || !strings.Contains(err.Error(), "nil") {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

// TestGatesAreInlined holds the price of a disabled call.
func TestGatesAreInlined(t *testing.T) {
	if bits.UintSize == 32 {
		t.Skip("where a word has 32 bits the gates cost a call: they exceed the budget of the inliner, as 134 of 80 on 386")
	}
	out, err := exec.Command("go", "build", "-gcflags=-m", ".").CombinedOutput()
	if err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	for _, method := range []string{"Trace", "Debug", "Info", "Warn", "Error", "Log", "Enabled"} {
		if !strings.Contains(string(out), "can inline (*Logger)."+method+"\n") {
			t.Errorf("%s is not inlined any more", method)
		}
	}
}

func TestSetLevelConcurrently(t *testing.T) {
	var v Levels
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for j := range 50 {
				if err := v.SetLevel(fmt.Sprintf("n%d.%d", i, j), slog.LevelDebug); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if n := strings.Count(v.String(), "="); n != 400 {
		t.Errorf("%d of 400 rules", n)
	}
	for _, bad := range []string{"a=b", "a,b", " a"} {
		if err := v.SetLevel(bad, slog.LevelInfo); err == nil {
			t.Errorf("SetLevel took %q", bad)
		}
	}
}

// TestCutKeepsGroups: an attribute does not change its place because the line
// was too long.
func TestCutKeepsGroups(t *testing.T) {
	var b bytes.Buffer
	l := mustNew(t, Options{Outputs: []Output{{Writer: &b}}, MaxLine: 600, Caller: LevelOff})
	l.WithGroup("http").With(slog.String("pad", strings.Repeat("x", 400))).Info(t.Context(), strings.Repeat("m", 300), slog.Any("error", io.EOF), slog.String("path", "/p"))
	var got struct {
		Error any
		Attrs struct{ HTTP struct{ Error, Path string } }
	}
	if err := json.Unmarshal(b.Bytes(), &got); err != nil || got.Error != nil || got.Attrs.HTTP.Error != "EOF" || got.Attrs.HTTP.Path != "/p" {
		t.Errorf("%v: %s", err, b.String())
	}
	b.Reset()
	l.Named(strings.Repeat("n", 1000)).Info(t.Context(), "m")
	if b.Len() > 600 {
		t.Errorf("a long name makes a line of %d bytes", b.Len())
	}
}

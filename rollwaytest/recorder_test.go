package rollwaytest_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollway/rollway"
	"github.com/rollway/rollway/line"
	"github.com/rollway/rollway/rollwaytest"
)

const full = `{"time":"2026-05-28T12:40:00.123456789Z","level":"ERROR","msg":"failed","service":"payment-api","logger":"db","source":"pay.go:12","trace_id":"t1","span_id":"s1","error":{"kind":"timeout","after_ms":1500},"attrs":{"customer_id":"cus_123","retry_count":2,"big":9007199254740993,"ratio":0.5,"list":[1,{"n":2}]}}`

func TestRecorderDecodes(t *testing.T) {
	var r rollwaytest.Recorder
	p := []byte(full + "\n" + `{"level":"WARN+1","msg":"short"}`)
	if n, err := r.Write(p); n != len(p) || err != nil {
		t.Fatalf("Write = %d, %v, want %d, nil", n, err, len(p))
	}
	clear(p)
	want := []rollwaytest.Record{
		{
			Time:    time.Date(2026, 5, 28, 12, 40, 0, 123456789, time.UTC),
			Level:   slog.LevelError,
			Msg:     "failed",
			Service: "payment-api",
			Logger:  "db",
			Source:  "pay.go:12",
			TraceID: "t1",
			SpanID:  "s1",
			Error:   map[string]any{"kind": "timeout", "after_ms": int64(1500)},
			Attrs: map[string]any{
				"customer_id": "cus_123",
				"retry_count": int64(2),
				"big":         int64(9007199254740993),
				"ratio":       0.5,
				"list":        []any{int64(1), map[string]any{"n": int64(2)}},
			},
			Line: full,
		},
		{Level: 5, Msg: "short", Line: `{"level":"WARN+1","msg":"short"}`},
	}
	if got := r.Records(); !reflect.DeepEqual(got, want) {
		t.Errorf("Records = %+v\nwant %+v", got, want)
	}
	if rec, ok := r.Find("short"); !ok || rec.Level != 5 {
		t.Errorf("Find = %+v, %v", rec, ok)
	}
	if rec, ok := r.Find("long"); ok {
		t.Errorf("Find found %+v", rec)
	}
	r.Reset()
	if n := len(r.Records()); n != 0 {
		t.Errorf("%d records after Reset", n)
	}
}

func TestRecorderRefusesWhatIsNotCanonical(t *testing.T) {
	for _, line := range []string{
		"", "plain", "[]", `"x"`, `{"msg":"a"`, `{"msg":"a"} {}`, `{"msg":"a","extra":1}`,
		`{"msg":1}`, `{"level":"LOUD"}`, `{"time":"yesterday"}`, `{"attrs":[]}`,
	} {
		var r rollwaytest.Recorder
		_, err := r.Write([]byte(line + "\n" + `{"msg":"good"}` + "\n"))
		if err == nil || len(r.Invalid()) != 1 || r.Invalid()[0] != line {
			t.Errorf("Write(%q) = %v, invalid %q", line, err, r.Invalid())
		}
		if _, ok := r.Find("good"); !ok {
			t.Errorf("after %q the good line is missing", line)
		}
	}
}

// verdict is a testing.TB that only notes what is reported.
type verdict struct {
	testing.TB
	errors []string
}

func (v *verdict) Helper() {}
func (v *verdict) Errorf(format string, args ...any) {
	v.errors = append(v.errors, fmt.Sprintf(format, args...))
}
func (v *verdict) Error(args ...any) { v.errors = append(v.errors, fmt.Sprint(args...)) }

func TestCheckSettled(t *testing.T) {
	for _, tc := range []struct {
		l      rollwaytest.Ledger
		errors int
	}{
		{rollwaytest.Ledger{Ledger: line.Ledger{Accepted: 10, Written: 8, Dropped: line.Drops{Full: 2}}}, 0},
		{rollwaytest.Ledger{Ledger: line.Ledger{Accepted: 11, Written: 8, Dropped: line.Drops{Full: 2}}}, 2},
		{rollwaytest.Ledger{Ledger: line.Ledger{Accepted: 10, Written: 7, Dropped: line.Drops{Full: 2}, Pending: 1}}, 2},
		{rollwaytest.Ledger{Ledger: line.Ledger{Accepted: 10, Written: 9, Dropped: line.Drops{Full: 1}}}, 1},
	} {
		var v verdict
		tc.l.CheckSettled(&v, 10, 8)
		if len(v.errors) != tc.errors {
			t.Errorf("%+v: reported %q, want %d errors", tc.l, v.errors, tc.errors)
		}
	}
}

func TestRecorderIsSafeForConcurrentUse(t *testing.T) {
	var r rollwaytest.Recorder
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 100 {
				r.Write([]byte(`{"level":"INFO","msg":"a"}` + "\n"))
				r.Records()
				r.Find("a")
			}
		})
	}
	wg.Wait()
	if n := len(r.Records()); n != 800 {
		t.Errorf("%d records, want 800", n)
	}
}

// A Logger gives up on a plain writer that holds up others for long, as a busy
// machine may make any; it does not on one that has WriteLevel.
func TestRecorderIsNeverLeftOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &slowRecorder{}
		log, err := rollway.New(rollway.Options{Outputs: []rollway.Output{{Writer: r}}})
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() { log.Info(t.Context(), "m") })
		}
		wg.Wait()
		if n, s := len(r.Records()), log.Stats().Outputs[0]; n != 8 || s.Dropped.Full != 0 {
			t.Errorf("%d records, want 8; %+v", n, s)
		}
	})
}

// slowRecorder is a Recorder on a machine that is busy for a minute.
type slowRecorder struct{ rollwaytest.Recorder }

func (r *slowRecorder) WriteLevel(level slog.Level, p []byte) (int, error) {
	time.Sleep(time.Minute)
	return r.Recorder.WriteLevel(level, p)
}

func FuzzRecorder(f *testing.F) {
	for _, s := range []string{full, full + "\n\n{}", `{"attrs":{"n":1e999}}`, "\xff\n{\"msg\":\"\xff\"}", `{"level":"WARN-"}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, p []byte) {
		var r rollwaytest.Recorder
		n, err := r.Write(p)
		lines := bytes.Count(p, []byte("\n"))
		if len(p) > 0 && p[len(p)-1] != '\n' {
			lines++
		}
		if got := len(r.Records()) + len(r.Invalid()); n != len(p) || got != lines || (err != nil) != (len(r.Invalid()) > 0) {
			t.Errorf("Write(%q) = %d, %v: %d of %d lines kept, invalid %q", p, n, err, got, lines, r.Invalid())
		}
	})
}

func TestWant(t *testing.T) {
	log, rec := rollwaytest.New(t)
	log.Debug(t.Context(), "charged", slog.String("service", "pay"), slog.Int("n", 1), slog.Duration("took", time.Second), slog.Group("g", slog.Bool("b", true)))
	var v verdict
	for _, attrs := range [][]slog.Attr{
		nil, {slog.Int("n", 1)}, {slog.String("service", "pay"), slog.Duration("took", time.Second), slog.Group("g", slog.Bool("b", true))},
	} {
		if r := rec.Want(&v, slog.LevelDebug, "charged", attrs...); r.Msg != "charged" || len(v.errors) > 0 {
			t.Errorf("%v: %+v, reported %q", attrs, r, v.errors)
		}
	}
	for i, want := range []func(){
		func() { rec.Want(&v, slog.LevelInfo, "charged") },
		func() { rec.Want(&v, slog.LevelDebug, "charge") },
		func() { rec.Want(&v, slog.LevelDebug, "charged", slog.Int("n", 2)) },
		func() { rec.Want(&v, slog.LevelDebug, "charged", slog.String("none", "")) },
	} {
		v.errors = nil
		if want(); len(v.errors) != 1 || !strings.Contains(v.errors[0], `"msg":"charged"`) {
			t.Errorf("%d: reported %q", i, v.errors)
		}
	}
}

func ExampleNew() {
	t := new(testing.T) // a test's own
	log, rec := rollwaytest.New(t)
	log.Warn(context.Background(), "slow", slog.Int("ms", 1500))

	r := rec.Want(t, slog.LevelWarn, "slow", slog.Int("ms", 1500))
	fmt.Println(r.Level, r.Msg)
	// Output: WARN slow
}

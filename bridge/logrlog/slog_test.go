package logrlog_test

import (
	"context"
	"log/slog"
	"math"
	"reflect"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"testing/slogtest"

	"github.com/go-logr/logr"
	"github.com/rollway/rollway"
	"github.com/rollway/rollway/bridge/logrlog"
	"github.com/rollway/rollway/rollwaytest"
)

// TestSlogtest: a Logger behind logr behind slog is a complete slog.Handler.
func TestSlogtest(t *testing.T) {
	var rec *rollwaytest.Recorder
	slogtest.Run(t, func(t *testing.T) slog.Handler {
		var l logr.Logger
		l, rec = newLogger(t, slog.LevelInfo, logrlog.Options{})
		return logr.ToSlogHandler(l)
	}, func(t *testing.T) map[string]any {
		r := one(t, rec)
		m := map[string]any{slog.LevelKey: r.Level, slog.MessageKey: r.Msg}
		if !r.Time.IsZero() {
			m[slog.TimeKey] = r.Time
		}
		for k, v := range r.Attrs {
			m[k] = v
		}
		return m
	})
}

// TestSlogLevels: each record keeps its level, and is written where the output
// takes it, no matter which V level logr asks by.
func TestSlogLevels(t *testing.T) {
	levels := []slog.Level{rollway.LevelTrace, slog.LevelDebug, slog.LevelInfo, slog.LevelWarn, slog.LevelError, rollway.LevelFatal}
	for _, at := range levels {
		l, rec := newLogger(t, at, logrlog.Options{})
		s := slog.New(logr.ToSlogHandler(l))
		for _, level := range levels {
			s.Log(t.Context(), level, "m")
			if got := rec.Records(); (len(got) == 1) != (level >= at) || len(got) == 1 && got[0].Level != level {
				t.Errorf("output at %v: %v gives %v", at, level, got)
			}
			rec.Reset()
		}
		l.Info("m") // V(0) is INFO, whatever Enabled says
		if got := rec.Records(); (len(got) == 1) != (at <= slog.LevelInfo) {
			t.Errorf("output at %v: Info gives %v", at, got)
		}
	}
}

func TestSlogContextSourceAndGroups(t *testing.T) {
	rec := new(rollwaytest.Recorder)
	log, err := rollway.New(rollway.Options{Outputs: []rollway.Output{{Writer: rec}}, Caller: slog.Level(math.MinInt32)})
	if err != nil {
		t.Fatal(err)
	}
	s := slog.New(logr.ToSlogHandler(logrlog.New(log, logrlog.Options{}).WithName("ctl").WithValues("a", 1)))
	ctx := rollway.ContextWith(context.Background(), slog.String("request_id", "r1"))
	_, _, here, _ := runtime.Caller(0)
	s.With("b", 2).WithGroup("g").With("c", 3).InfoContext(ctx, "m", "d", 4)
	r := one(t, rec)
	want := map[string]any{"request_id": "r1", "a": int64(1), "b": int64(2), "g": map[string]any{"c": int64(3), "d": int64(4)}}
	if !reflect.DeepEqual(r.Attrs, want) || r.Logger != "ctl" {
		t.Errorf("got %s", r.Line)
	}
	if source, _ := r.Source.(string); !strings.HasSuffix(source, "/slog_test.go:"+strconv.Itoa(here+1)) {
		t.Errorf("source %v, want line %d", r.Source, here+1)
	}
	// And back: what was slog's becomes logr's again.
	logr.FromSlogHandler(s.Handler()).Info("m")
	one(t, rec)
}

package rollway

import (
	"bytes"
	"io"
	"log/slog"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestLevelsByName(t *testing.T) {
	v, err := NewLevels("warn, db.*=debug ,db.pool=ERROR,http=info+1,noisy.*=off")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := v.String(), "warn,http=info+1,noisy.*=off,db.*=debug,db.pool=error"; len(got) != len(want) {
		t.Errorf("String() = %s, want the rules of %s", got, want)
	}
	again, err := NewLevels(v.String())
	if err != nil || again.String() != v.String() {
		t.Errorf("%s reads back as %v, %v", v, again, err)
	}
	for name, want := range map[string]slog.Level{
		"": slog.LevelWarn, "x": slog.LevelWarn, "db": slog.LevelDebug, "db.conn": slog.LevelDebug, "dbx": slog.LevelWarn,
		"db.pool": slog.LevelError, "db.pool.x": slog.LevelDebug, "http": slog.LevelInfo + 1, "http.x": slog.LevelWarn, "noisy.a.b": LevelOff,
	} {
		if got := v.Level(name); got != want {
			t.Errorf("level of %q is %v, want %v", name, got, want)
		}
	}

	var b, errs bytes.Buffer
	l := mustNew(t, Options{Levels: v, Caller: LevelOff, Outputs: []Output{{Writer: &b}, {Writer: &errs, Level: slog.LevelError}}})
	db, pool := l.Named("db"), l.Named("db").Named("pool")
	ctx := t.Context()
	log := func() (n int) {
		for _, l := range []*Logger{l, db, pool} {
			l.Debug(ctx, "m")
			l.Info(ctx, "m")
			l.Warn(ctx, "m")
			l.Error(ctx, "m")
		}
		n = strings.Count(b.String(), "\n")
		b.Reset()
		return n
	}
	if n := log(); n != 2+4+1 {
		t.Errorf("%d lines, want 7", n)
	}
	if n := strings.Count(errs.String(), "\n"); n != 3 {
		t.Errorf("the output for errors has %d lines, want 3", n)
	}
	if err := v.SetLevel("db.pool", slog.LevelDebug); err != nil {
		t.Fatal(err)
	}
	if n := log(); n != 2+4+4 {
		t.Errorf("after SetLevel %d lines, want 10", n)
	}
	if !pool.Enabled(t.Context(), slog.LevelDebug) || l.Enabled(t.Context(), slog.LevelDebug) || !slog.New(pool.Handler()).Enabled(ctx, slog.LevelDebug) {
		t.Error("Enabled does not follow the rules")
	}
	if err := v.Set("off"); err != nil {
		t.Fatal(err)
	}
	if n := log(); n != 0 {
		t.Errorf("when off %d lines", n)
	}
	before := v.String()
	err = v.Set("info,db=loud,*x=info,=warn,a.*.b=info")
	if err == nil || v.String() != before {
		t.Fatalf("Set of nonsense: %v, rules now %s", err, v)
	}
	for _, want := range []string{`level rule "db=loud": "loud" is no level`, `level rule "*x=info": a *`, `level rule "=warn": there is no name`, `level rule "a.*.b=info": a *`} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not say %q", err, want)
		}
	}
}

// TestLowestLevel compares, for random rules that change, with the lowest of all names
// that there can be.
func TestLowestLevel(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	names := []string{"", "x"}
	for _, part := range []string{"a", "b", "c"} { // each time one part more
		for _, name := range slices.Clone(names) {
			names = append(names, strings.TrimPrefix(name+"."+part, "."))
		}
	}
	at := []string{"trace", "debug", "info", "warn", "error", "off"}
	levels := new(Levels)
	for range 500 {
		l := mustNew(t, Options{Levels: levels, Outputs: []Output{{Writer: io.Discard, Level: slog.Level(r.IntN(5)*4 - 8)}}}).Named(names[r.IntN(len(names))])
		lowest := l.LowestLevel()
		var rules []string
		for range r.IntN(5) {
			rule := names[r.IntN(len(names))] + []string{"", ".*"}[r.IntN(2)]
			rules = append(rules, strings.TrimPrefix(strings.TrimPrefix(rule+"=", ".*="), "=")+at[r.IntN(len(at))])
		}
		if err := levels.Set(strings.Join(rules, ",")); err != nil {
			t.Fatal(err)
		}
		want := LevelOff
		for _, name := range names {
			for _, name := range []string{name, name + ".any", "any"} {
				if name == l.name || l.name == "" || strings.HasPrefix(name, l.name+".") {
					want = min(want, max(levels.Level(name), l.core.floor))
				}
			}
		}
		if got := lowest.Level(); got != want {
			t.Fatalf("rules %q, lowest below %q is %v, want %v", levels, l.name, got, want)
		}
	}
	if got := mustNew(t, Options{Outputs: []Output{{Writer: io.Discard, Level: slog.LevelWarn}}}).LowestLevel().Level(); got != slog.LevelWarn {
		t.Errorf("without rules %v", got)
	}
}

func TestLevelsConcurrently(t *testing.T) {
	v, err := NewLevels("info")
	if err != nil {
		t.Fatal(err)
	}
	l := mustNew(t, Options{Levels: v, Outputs: []Output{{Writer: io.Discard}}})
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 300 {
				l.Named("db").Debug(t.Context(), "m")
			}
		})
		wg.Go(func() {
			for i := range 300 {
				_ = v.SetLevel("db.*", slog.Level(i%8))
				_ = v.String()
			}
		})
	}
	wg.Wait()
}

// TestLevelsForgetNames: Loggers named once per request must not pile up.
func TestLevelsForgetNames(t *testing.T) {
	v, err := NewLevels("info")
	if err != nil {
		t.Fatal(err)
	}
	l := mustNew(t, Options{Levels: v, Outputs: []Output{{Writer: io.Discard}}})
	kept := l.Named("kept")
	for i := range 1000 {
		l.Named("request"+itoa(i)).Info(t.Context(), "m")
	}
	for end := time.Now().Add(time.Minute); time.Now().Before(end); {
		runtime.GC()
		time.Sleep(10 * time.Millisecond) // cleanups run on a goroutine of the runtime's
		v.mu.Lock()
		n := len(v.gates)
		v.mu.Unlock()
		if n == 2 { // of l and of kept
			if err := v.Set("debug"); err != nil || !kept.Enabled(t.Context(), slog.LevelDebug) {
				t.Error("a Logger in use was forgotten")
			}
			runtime.KeepAlive(l)
			return
		}
	}
	t.Error("Loggers are still known that nobody has any more")
}

func TestOutputsByRangeAndPredicate(t *testing.T) {
	var between, odd bytes.Buffer
	l := mustNew(t, Options{Caller: LevelOff, Outputs: []Output{
		{Writer: &between, Level: LevelRange{slog.LevelInfo, slog.LevelWarn}},
		{Writer: &odd, Level: LevelFunc(func(l slog.Level) bool { return l == slog.LevelDebug || l == slog.LevelError })},
	}})
	for _, level := range []slog.Level{LevelTrace, slog.LevelDebug, slog.LevelInfo, slog.LevelWarn, slog.LevelError} {
		l.Log(t.Context(), level, "m")
	}
	if got := strings.Count(between.String(), "\n"); got != 2 || !strings.Contains(between.String(), "INFO") || !strings.Contains(between.String(), "WARN") {
		t.Errorf("range: %s", between.String())
	}
	if got := strings.Count(odd.String(), "\n"); got != 2 || !strings.Contains(odd.String(), "DEBUG") || !strings.Contains(odd.String(), "ERROR") {
		t.Errorf("predicate: %s", odd.String())
	}
	if !l.Enabled(t.Context(), slog.LevelDebug) || l.Enabled(t.Context(), LevelTrace) {
		t.Error("Enabled does not ask the predicate")
	}
}

func itoa(n int) string { return slog.IntValue(n).String() }

package rollway

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"testing"
)

func TestFlushOnPanic(t *testing.T) {
	var b bytes.Buffer
	f := &flusher{}
	l := mustNew(t, Options{Outputs: []Output{{Writer: &b}, {Writer: f}}})
	func() {
		defer func() {
			if r := recover(); r != "boom\n" {
				t.Errorf("it goes on panicking with %v", r)
			}
		}()
		defer l.FlushOnPanic()
		panic("boom\n")
	}()
	if got := oneLine(t, &b); !strings.Contains(got, `"level":"PANIC","msg":"panic: boom\n"`) || !strings.Contains(got, "TestFlushOnPanic") {
		t.Errorf("got %s", got)
	}
	if got := strings.Join(f.calls, " "); got != "write flush" {
		t.Errorf("calls: %s", got)
	}
	func() { defer l.FlushOnPanic() }()
	if len(f.calls) != 2 {
		t.Error("without a panic it did something")
	}
}

func panicsHere() {
	panic("here")
}

// The source of the line is where the panic was, not where it was passed on.
func TestFlushOnPanicNamesThePlace(t *testing.T) {
	var b bytes.Buffer
	l := mustNew(t, Options{Outputs: []Output{{Writer: &b}}})
	var none []int
	_, _, here, _ := runtime.Caller(0)
	places := map[string]struct {
		do   func()
		line int
	}{
		"panic": {func() { panicsHere() }, here - 8},
		"nil": {func() {
			var p *Output
			p.Name = "x"
		}, here + 8},
		"index":        {func() { _ = none[b.Len()] }, here + 10},
		"passed on":    {func() { defer l.FlushOnPanic(); panicsHere() }, here - 8},
		"Logger.Panic": {func() { l.Panic(t.Context(), "m") }, here + 12},
	}
	for name, c := range places {
		b.Reset()
		func() {
			defer func() { _ = recover() }()
			defer l.FlushOnPanic()
			c.do()
		}()
		lines := strings.Split(strings.TrimSpace(b.String()), "\n")
		for _, line := range lines {
			if want := fmt.Sprintf(`/exit_test.go:%d"`, c.line); !strings.Contains(line, want) || !strings.Contains(line, `"level":"PANIC"`) {
				t.Errorf("%s: %s\nwant %s", name, line, want)
			}
		}
	}
}

// With Redact what a LogValuer hides stays hidden when a function panics with it.
func TestFlushOnPanicRedacts(t *testing.T) {
	for name, p := range map[string]any{
		"value":   hidden("secret"),
		"error":   hiddenError{},
		"wrapped": fmt.Errorf("call: %w", hiddenError{}),
		"group":   hiddenGroup{},
	} {
		t.Run(name, func(t *testing.T) {
			var b bytes.Buffer
			l := mustNew(t, Options{Outputs: []Output{{Writer: &b}}, Redact: &Redaction{Keys: []string{"password"}}})
			func() {
				defer func() { _ = recover() }()
				defer l.FlushOnPanic()
				panic(p)
			}()
			if got := b.String(); strings.Contains(got, "secret") || !strings.Contains(got, "shown") {
				t.Errorf("got %s", got)
			}
		})
	}
}

type hidden string

func (hidden) LogValue() slog.Value { return slog.StringValue("shown") }

// hiddenGroup is a group of values that hide, by themselves or by their key.
type hiddenGroup struct{}

func (hiddenGroup) LogValue() slog.Value {
	return slog.GroupValue(slog.Any("a", hidden("secret")), slog.String("password", "secret"))
}

type hiddenError struct{}

func (hiddenError) Error() string        { return "secret" }
func (hiddenError) LogValue() slog.Value { return slog.StringValue("shown") }

// Also of many errors in one.
func TestRedactionOfManyErrors(t *testing.T) {
	for _, n := range []int{20, 1000} {
		var errs []error
		for range n {
			errs = append(errs, hiddenError{})
		}
		var b bytes.Buffer
		l := mustNew(t, Options{Outputs: []Output{{Writer: &b}, {Writer: &b, Encoder: Console{}}, {Writer: &b, Encoder: JSON{Errors: ErrorDetail}}}, Redact: &Redaction{Keys: []string{"none"}}})
		l.Error(t.Context(), "m", slog.Any("error", errors.Join(errs...)))
		if got := b.String(); strings.Contains(got, "secret") || n == 20 && strings.Count(got, "shown") < 3*n {
			t.Errorf("%d errors: %s", n, b.String())
		}
	}
}

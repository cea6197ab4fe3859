package encode

import (
	"bytes"
	"log/slog"
	"testing"
	"time"
)

// logsAgain logs itself whenever it is asked for its value.
type logsAgain struct{ log func(slog.Attr) }

func (l *logsAgain) LogValue() slog.Value {
	l.log(slog.Any("self", l))
	return slog.IntValue(1)
}

type errsAgain struct{ log func(slog.Attr) }

func (e *errsAgain) Error() string {
	e.log(slog.Any("self", e))
	return "again"
}

// TestValueLogsItself: without the limit a full stack would end the process.
func TestValueLogsItself(t *testing.T) {
	for _, o := range []Options{{}, {ErrorDetail: true}, {Kind: Logfmt}, {Kind: Console, ClockLocation: time.UTC}} {
		o.Unit, o.MaxLine = time.Nanosecond, DefaultMaxLine
		f, err := New(o)
		if err != nil {
			t.Fatal(err)
		}
		lines, told := 0, 0
		log := func(a slog.Attr) {
			lines++
			if line := f.Line(nil, new(Scratch), new(Scope), nil, &Record{Message: "again"}, []slog.Attr{a}); bytes.Contains(line, []byte("logs itself")) {
				told++
			}
		}
		log(slog.Any("v", &logsAgain{log}))
		log(slog.Any("e", &errsAgain{log}))
		if lines < 2*maxNesting || told < 2 {
			t.Errorf("%+v: %d lines, %d say that a value logs itself", o, lines, told)
		}
		for i := range nesting {
			if n := nesting[i].n.Load(); n != 0 {
				t.Fatalf("%d calls are still counted", n)
			}
		}
	}
}

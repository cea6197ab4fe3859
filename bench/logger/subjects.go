package logger

import (
	"fmt"
	"runtime"

	"github.com/rollway/rollway/bench/internal/measure"
)

// Subjects lists everything that is measured: each library in each case,
// serial and with as many goroutines as there are processors.
func Subjects() []measure.Subject {
	var subjects []measure.Subject
	add := func(libraries []Library, cases []Case) {
		for _, c := range cases {
			for _, mode := range []string{"serial", "parallel"} {
				for _, l := range libraries {
					if l.Loops(new(Counter))[c.Name] == nil {
						continue
					}
					goroutines := 1
					if mode == "parallel" {
						goroutines = runtime.GOMAXPROCS(0)
					}
					subjects = append(subjects, measure.Subject{
						Case: c.Name, Library: l.Name, Mode: mode, Goroutines: goroutines, Prepare: prepare(l, c),
					})
				}
			}
		}
	}
	add(Libraries(), Cases())
	add(SlogHandlers(), []Case{SlogCase()})
	return subjects
}

func prepare(l Library, c Case) func() (measure.Run, error) {
	return func() (measure.Run, error) {
		counter := new(Counter)
		loop := l.Loops(counter)[c.Name]
		return measure.Run{
			Loop: func(_, n int) { loop(n) },
			Finish: func(ops int) (map[string]float64, error) {
				lines, bytes, broken := counter.Totals()
				if lines != uint64(ops*c.Lines) || broken > 0 {
					return nil, fmt.Errorf("%d operations wrote %d lines, %d of them broken", ops, lines, broken)
				}
				return map[string]float64{"line_bytes": float64(bytes) / float64(ops)}, nil
			},
		}, nil
	}
}

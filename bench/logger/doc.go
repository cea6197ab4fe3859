// Package logger measures package rollway against the loggers that Go programs
// use, in the scenarios of docs/BENCHMARKS.md.
//
// Every library writes JSON with level, RFC 3339 time with nanoseconds and
// message into a Counter. Values come from package variables that the compiler
// cannot know. Before anything is measured, Check compares the line of each
// library in each scenario with the values that went in.
//
// ssgreg/logf is a rival too, but the Go module proxy does not offer its
// current version, so it is not here.
package logger

import "io"

// Case is one scenario: a column of the tables.
type Case struct {
	Name  string
	Title string
	Lines int // written per operation: 0 or 1

	attrs map[string]any // that a line must have

	// What package rollway must reach: a time in ns, one above that of the case
	// message, a factor of the best other library's, of Reference's. 0 is no
	// target of that kind.
	TargetNs, TargetOverMessageNs, TargetOfBest, TargetOfReference float64
}

// Library is one logger: a row of the tables.
type Library struct {
	Name string

	// Reference marks code that is no logger: it makes the same line without one.
	Reference bool

	// Loops returns, by the name of the case, functions that log n times to
	// one logger over w, for any number of goroutines. A case that the library
	// has no means for is missing.
	Loops func(w io.Writer) map[string]func(n int)
}

// Reference is the library that is none.
const Reference = "append by hand"

// Libraries lists the loggers, package rollway first.
func Libraries() []Library {
	return []Library{
		{Name: "rollway", Loops: rollwayLoops},
		{Name: "zerolog", Loops: zerologLoops},
		{Name: "zap", Loops: zapLoops},
		{Name: "phuslu/log", Loops: phusluLoops},
		{Name: "log/slog", Loops: slogLoops},
		{Name: Reference, Reference: true, Loops: handLoops},
	}
}

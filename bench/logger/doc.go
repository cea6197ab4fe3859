// Package logger measures package rollway against the loggers that Go programs
// use, in the scenarios of docs/BENCHMARKS.md.
//
// Every library writes JSON with level, RFC 3339 time with nanoseconds and
// message into a Counter. Values come from package variables that the compiler
// cannot know. Before anything is measured, Check compares the line of each
// library in each scenario with the values that went in.
package logger

import "io"

// Case is one scenario.
type Case struct {
	Name  string
	Lines int // written per operation: 0 or 1

	attrs map[string]any // that a line must have
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

// Reference is no library: it makes lines by hand.
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

// Package rollwaytest helps to test programs that log and writers that carry
// lines.
//
// A Recorder keeps what a logger writes and hands it back as records. A
// Destination is an io.Writer that stalls, fails, writes short and panics when
// told to. TestLineWriter runs the line writer's contract on any LineWriter.
package rollwaytest

// Package rollwaytest helps to test programs that log and writers that carry lines.
//
// [New] returns a Logger and a [Recorder], which keeps its lines as records. A
// [Destination] is an io.Writer that stalls, fails, writes short and panics on demand.
// [TestLineWriter] runs the contract of line.Writer on any writer.
package rollwaytest

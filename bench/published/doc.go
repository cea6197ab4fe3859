// Package published holds the claims of the five publications whose systems this
// project implements against what the programs of package bench have measured. It
// measures nothing itself: each figure is read from a file of raw results. So are
// those of the front page of docs/BENCHMARKS.md.
package published

// Kind is the name of the table's place in its document.
const Kind = "published"

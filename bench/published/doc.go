// Package published compares the claims of the five publications whose systems this
// project implements with the results of the other programs, and makes the front
// page of docs/BENCHMARKS.md. It measures nothing itself: each figure is read from a
// file of raw results.
package published

// Kind is the name of the table's place in its document.
const Kind = "published"

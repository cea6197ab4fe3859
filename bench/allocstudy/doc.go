// Package allocstudy finds out where a logger's allocations come from.
//
// It repeats the measurements of a published article on logging without
// allocations and checks each of its claims, with several toolchains. The
// designs, written anew from the article's description, are in
// testdata/designs, a package each. They are no part of this module: a run
// writes them and a program that calls them to a folder of its own, as a module
// that the oldest toolchain takes, and builds it with each toolchain.
//
// Allocations are counted first, exactly: one goroutine, no collections, values
// that the compiler cannot know beside the article's constant. Each count is
// compared with the study's own statement, so that no conclusion outlives the
// facts. Times come from testing.Benchmark in a process of its own
// for each sample, interleaved.
package allocstudy

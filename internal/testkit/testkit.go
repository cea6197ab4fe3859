// Package testkit has what several packages' tests need: requirements of the machine
// and of the run, free addresses, a buffer to write and read at the same time, memory
// between guard pages, and a count of allocations.
//
// A test that needs something the machine lacks (a program, a right, a file system)
// is skipped, or fails with REQUIRE=all in the environment. A test that the run has
// no time for, or that the race detector disturbs, is skipped too, and marked by an
// attribute ([testing.TB.Attr]) from which scripts/dev knows which other run has it.
package testkit

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// All reports whether nothing may be skipped.
func All() bool { return os.Getenv("REQUIRE") == "all" }

// Missing ends a test that needs what.
func Missing(t testing.TB, what string) {
	t.Helper()
	if All() {
		t.Fatalf("REQUIRE=all, but this needs %s", what)
	}
	t.Skipf("this needs %s", what)
}

// Program returns the path of a program that a test needs.
func Program(t testing.TB, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		Missing(t, "the program "+name)
	}
	return path
}

// Strace returns the path of strace to a test that needs to trace processes.
func Strace(t testing.TB) string {
	t.Helper()
	strace := Program(t, "strace")
	if out, err := exec.Command(strace, "-f", "-qq", "-o", os.DevNull, "true").CombinedOutput(); err != nil {
		Missing(t, fmt.Sprintf("leave to trace processes: %v %s", err, out))
	}
	return strace
}

// The parts of the nightly run that consist of tests. scripts/dev finds the tests
// of a part by the calls of [Nightly] and [Rounds] in their source.
const (
	Engines = "engines" // peers that are large to build, fetch or start
	Senders = "senders" // clients from registries that send to the collector, a browser among them
	Kills   = "kills"   // long series of kills and power cuts
	Bench   = "bench"   // programs that measure
	Redteam = "redteam" // attacks on the collector; their tests call [Attack.Report]
)

// Attributes of tests, as scripts/dev reads them. The value of the first two is a
// part of the nightly run, that of the third a reason, that of the last an [Attack].
const (
	AttrNightly = "nightly" // the test is left to that part
	AttrRounds  = "rounds"  // the test makes more rounds in that part
	AttrNoRace  = "norace"  // the test, or something of it, is left to a run without the race detector
	AttrAttack  = "attack"  // a row of the table of make redteam
)

// Nightly ends a test that only a part of the nightly run has time for.
func Nightly(t testing.TB, part, why string) {
	t.Helper()
	if !underWay(part) {
		t.Attr(AttrNightly, part)
		t.Skipf("left to make nightly PARTS=%s: %s", part, why)
	}
}

// Rounds returns how many rounds a test makes: few, or many in a part of the
// nightly run.
func Rounds(t testing.TB, part string, few, many int) int {
	if underWay(part) {
		return many
	}
	t.Attr(AttrRounds, part)
	return few
}

// underWay reports whether this is a part of the nightly run.
func underWay(part string) bool {
	return slices.Contains(strings.Fields(os.Getenv("ROLLWAY_NIGHTLY")), part)
}

// Race reports whether the race detector is on, to a test that then leaves
// something out. A run without the detector repeats the whole test.
func Race(t testing.TB, why string) bool {
	if race {
		t.Attr(AttrNoRace, why)
	}
	return race
}

// RaceRounds returns how many rounds a test makes that the race detector makes some ten
// times as slow and has little to find in: all, or few under the detector. A run without
// the detector repeats the test with all of them.
func RaceRounds(t testing.TB, few, all int) int {
	t.Helper()
	if Race(t, "more rounds") {
		return few
	}
	return all
}

// NoRace ends a test that fails or says nothing under the race detector.
func NoRace(t testing.TB, why string) {
	t.Helper()
	if Race(t, why) {
		t.Skipf("left to the run without the race detector: %s", why)
	}
}

// OK ends the test if err is not nil.
func OK(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Package needs is for tests that need something of their machine: a program, a
// right, a kind of file system. Where it is not there they are skipped, and with
// REQUIRE=all in the environment they fail.
package needs

import (
	"fmt"
	"os"
	"os/exec"
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

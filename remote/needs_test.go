package remote_test

import (
	"os"
	"os/exec"
	"testing"
)

// needs returns the path of a program. Without it the test is skipped, or, with
// REQUIRE=all in the environment, fails.
func needs(t testing.TB, program string) string {
	t.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		missing(t, err.Error())
	}
	return path
}

// missing skips the test, or fails it with REQUIRE=all.
func missing(t testing.TB, why string) {
	t.Helper()
	if os.Getenv("REQUIRE") == "all" {
		t.Fatalf("REQUIRE=all, but %s", why)
	}
	t.Skip(why)
}

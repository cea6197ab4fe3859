package testkit

import (
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
)

const atOnce = 7

func TestMain(m *testing.M) { RunParallel(m, atOnce) }

// The tests of the group wait for each other: they pass only if they all run at
// once.
func TestTogether(t *testing.T) {
	var all sync.WaitGroup
	all.Add(atOnce)
	for range atOnce {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			all.Done()
			all.Wait()
		})
	}
}

// The flag overrides n, and a failure is reported: with one test at a time they wait
// for ever.
func TestFlag(t *testing.T) {
	out, err := exec.Command(os.Args[0], "-test.run", "^TestTogether$", "-test.parallel", "1", "-test.timeout", "100ms").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "timed out") {
		t.Errorf("%v\n%s", err, out)
	}
}

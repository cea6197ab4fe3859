package needs

import (
	"fmt"
	"testing"
)

// ended is what a test ends by, as a panic.
type ended string

// A recorder is a test that tells how it ended.
type recorder struct{ testing.TB }

func (recorder) Helper()                        {}
func (recorder) Fatalf(format string, a ...any) { panic(ended("failed: " + fmt.Sprintf(format, a...))) }
func (recorder) Skipf(format string, a ...any)  { panic(ended("skipped: " + fmt.Sprintf(format, a...))) }

func TestMissing(t *testing.T) {
	for environment, want := range map[string]ended{
		"":    "skipped: this needs the program there-is-none",
		"all": "failed: REQUIRE=all, but this needs the program there-is-none",
	} {
		t.Setenv("REQUIRE", environment)
		func() {
			defer func() {
				if got := recover(); got != want {
					t.Errorf("REQUIRE=%s: %v", environment, got)
				}
			}()
			Program(recorder{t}, "there-is-none")
		}()
	}
	if path := Program(t, "go"); path == "" {
		t.Error("go has no path")
	}
}

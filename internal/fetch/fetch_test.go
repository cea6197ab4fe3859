package fetch

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// What cannot be fetched at once is fetched by a later attempt, which sees nothing
// of those before it; what never can is told of, and leaves nothing behind.
func TestIntoTriesAgain(t *testing.T) {
	defer func(all []time.Duration) { pauses = all }(pauses)
	pauses = make([]time.Duration, 3)
	for fails := range len(pauses) + 2 {
		cache, attempts := t.TempDir(), 0
		dir := filepath.Join(cache, "kept", "here")
		err := Into(dir, func(part string) *exec.Cmd {
			attempts++
			script := fmt.Sprintf("test ! -e file && echo half > file && echo attempt %d >&2; exit 7", attempts)
			if attempts > fails {
				script = "test ! -e file && echo whole > file"
			}
			return exec.Command("sh", "-c", script)
		})
		text, _ := os.ReadFile(filepath.Join(dir, "file"))
		left, _ := os.ReadDir(filepath.Dir(dir))
		if fails <= len(pauses) {
			if err != nil || attempts != fails+1 || string(text) != "whole\n" || len(left) != 1 {
				t.Errorf("after %d failures: %v, %q, %d files, %d attempts", fails, err, text, len(left), attempts)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), "4 attempts") || !strings.Contains(err.Error(), "attempt 4\n") || len(left) != 0 {
			t.Errorf("never: %v, %d files", err, len(left))
		}
	}
}

// A program that is not there will not be there a minute later.
func TestIntoWithoutTheProgram(t *testing.T) {
	err := Into(filepath.Join(t.TempDir(), "dir"), func(string) *exec.Cmd { return exec.Command("no-such-program-here") })
	if !errors.Is(err, exec.ErrNotFound) || strings.Contains(err.Error(), "attempts") {
		t.Error(err)
	}
}

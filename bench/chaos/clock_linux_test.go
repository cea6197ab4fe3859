package chaos

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/rollway/rollway/bench/internal/child"
)

// All processes share the wall clock, and Go reads it without a system call that
// could be intercepted. So the program is built again with two files replaced:
// package time adds a variable to the wall clock, not to the monotonic one, and
// package main reads that variable from a file every 5 ms.

// clockEnv names that file for the program.
const clockEnv = "ROLLWAY_BENCH_CLOCK"

const clockMain = `package main

import (
	"os"
	"strconv"
	"strings"
	"time"
)

func init() {
	read := func() {
		text, _ := os.ReadFile(os.Getenv("` + clockEnv + `"))
		if n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil {
			time.BenchJump = n
		}
	}
	read()
	go func() {
		for {
			time.Sleep(5 * time.Millisecond)
			read()
		}
	}()
}
`

// buildWithClock builds rollway so that its wall clock can be set.
func buildWithClock(dir string) (string, error) {
	out, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return "", fmt.Errorf("find Go's sources: %w", err)
	}
	original := filepath.Join(strings.TrimSpace(string(out)), "src", "time", "time.go")
	source, err := os.ReadFile(original)
	if err != nil {
		return "", err
	}
	// The one place where the wall clock is read.
	now := []byte("	sec, nsec, mono := runtimeNow()\n")
	if bytes.Count(source, now) != 1 {
		return "", errors.New("package time of this Go reads the clock in another way")
	}
	source = bytes.Replace(source, now, append(now, "	sec += BenchJump\n"...), 1)
	source = append(source, "\n// BenchJump is added to the wall clock, in seconds.\nvar BenchJump int64\n"...)
	module, err := child.CollectorModule()
	if err != nil {
		return "", err
	}
	replace := map[string]string{}
	for at, text := range map[string][]byte{original: source, filepath.Join(module, "cmd", "rollway", "bench_clock.go"): []byte(clockMain)} {
		replace[at] = filepath.Join(dir, filepath.Base(at)+".txt")
		if err := os.WriteFile(replace[at], text, 0o600); err != nil {
			return "", err
		}
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(path, overlay, 0o600); err != nil {
		return "", err
	}
	return child.BuildRollway(dir, "-overlay", path)
}

// clocks sets the collector's clock forth and back while it runs, and between
// two runs.
func clocks(s *scene) (err error) {
	if s.program, err = buildWithClock(s.dir); err != nil {
		return err
	}
	file := filepath.Join(s.dir, "clock")
	set := func(d time.Duration) error {
		return os.WriteFile(file, []byte(fmt.Sprint(int64(d.Seconds()))), 0o600)
	}
	if err := set(0); err != nil {
		return err
	}
	s.env = []string{clockEnv + "=" + file}
	s.config = "journal:\n  segment_size: 1MiB\n  key_age: 30d\n" // longer than any jump, there and back
	if err := s.start(); err != nil {
		return err
	}
	s.load.begin(8, time.Millisecond)
	const day = 24 * time.Hour
	jumps := []time.Duration{25 * time.Hour, -25 * time.Hour, 5 * day, -5 * day, 0, time.Hour, -time.Hour, 10 * day, -10 * day, 0}
	for i, jump := range jumps[:pick(s, len(jumps), 4)] {
		if err := s.more(200); err != nil {
			return err
		}
		if err := set(jump); err != nil {
			return err
		}
		s.try.Rounds++
		if err := s.more(200); err != nil {
			return err
		}
		if i%2 == 1 {
			s.kill()
			if err := set(-jump); err != nil {
				return err
			}
			s.try.Rounds++
			if err := s.check(false); err != nil {
				return err
			}
			if err := s.start(); err != nil {
				return err
			}
		} else if err := s.reconcile(true); err != nil {
			return err
		}
	}
	return s.end()
}

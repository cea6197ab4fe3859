package file_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/rollway/rollway/file"
)

func TestRotateBySize(t *testing.T) {
	t.Parallel()
	eachMode(t, func(t *testing.T, mode file.Mode) {
		path := filepath.Join(t.TempDir(), "log.txt")
		f := open(t, path, file.Options{Mode: mode, MaxSize: 100})
		var all strings.Builder
		for i := range 100 {
			line := fmt.Sprintf("line %d %s\n", i, strings.Repeat("x", i*7%40))
			all.WriteString(line)
			write(t, f, line)
		}
		_, contents := parts(t, path, nil)
		if got := strings.Join(contents, ""); got != all.String() {
			t.Errorf("the series holds %d bytes, want %d", len(got), all.Len())
		}
		for i, c := range contents {
			if len(c) > 100 || i < len(contents)-1 && len(c) < 50 {
				t.Errorf("part %d has %d bytes", i, len(c))
			}
		}
		if s := f.Stats(); s.Rotations != uint64(len(contents)-1) || s.Rotations < 20 {
			t.Errorf("%d rotations, %d files", s.Rotations, len(contents))
		}
		ledger(f).CheckSettled(t, 100, 100)
	})
}

// Rotations at once, without a pause, keep every file: no name is used twice.
func TestRotationsInOneInstant(t *testing.T) {
	t.Parallel()
	eachMode(t, func(t *testing.T, mode file.Mode) {
		path := filepath.Join(t.TempDir(), "log")
		f := open(t, path, file.Options{Mode: mode})
		var wg sync.WaitGroup
		for p := range 4 {
			wg.Go(func() {
				for i := range 50 {
					if _, err := fmt.Fprintf(f, "%d %d\n", p, i); err != nil {
						t.Error(err)
					}
					if err := f.Rotate(); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		_, contents := parts(t, path, nil)
		onceEach(t, strings.Join(contents, ""), 4, 50)
		ledger(f).CheckSettled(t, 200, 200)
	})
}

// onceEach wants lines "P I" for P below producers and I below each, once, and
// in order for each P.
func onceEach(t *testing.T, data string, producers, each int) {
	t.Helper()
	next := make([]int, producers)
	for line := range strings.Lines(data) {
		var p, i int
		if _, err := fmt.Sscanf(line, "%d %d", &p, &i); err != nil || p >= producers || i != next[p] {
			t.Fatalf("line %.40q, want number %d: %v", line, next[p%producers], err)
		}
		next[p]++
	}
	for p, n := range next {
		if n != each {
			t.Errorf("%d lines of producer %d, want %d", n, p, each)
		}
	}
}

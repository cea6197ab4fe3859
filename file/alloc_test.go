//go:build !race

package file_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/rollway/rollway/file"
)

func TestWriteDoesNotAllocate(t *testing.T) {
	for _, mode := range modes {
		t.Run(mode.String(), func(t *testing.T) {
			need(t, mode)
			f := open(t, filepath.Join(t.TempDir(), "log"), file.Options{Mode: mode, MaxSize: 1 << 40, Every: 24 * 365 * time.Hour, CheckEvery: -1})
			line := []byte("2026-11-21T08:03:09Z INFO charged\n")
			if n := testing.AllocsPerRun(1000, func() {
				if _, err := f.Write(line); err != nil {
					t.Fatal(err)
				}
			}); n > 0 {
				t.Errorf("%v allocations a Write, want 0", n)
			}
		})
	}
}

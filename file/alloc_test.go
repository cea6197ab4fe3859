//go:build !race

package file_test

import (
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/rollway/rollway/file"
	"github.com/rollway/rollway/internal/testkit"
)

// Neither a Write nor the look at the path that it makes now and then allocates.
func TestWriteDoesNotAllocate(t *testing.T) {
	for _, mode := range modes {
		t.Run(mode.String(), func(t *testing.T) {
			need(t, mode)
			for _, noFollow := range []bool{true, false} {
				f := openChecking(t, filepath.Join(t.TempDir(), "log"), file.Options{Mode: mode, MaxSize: 1 << 40, Every: 24 * 365 * time.Hour, NoFollow: noFollow}, quick)
				line := []byte("2026-11-21T08:03:09Z INFO charged\n")
				n := testkit.Mallocs(func() {
					for range 1000 {
						if _, err := f.Write(line); err != nil {
							t.Fatal(err)
						}
					}
				})
				if n > 2 && (noFollow || runtime.GOOS == "linux") { // of the runtime's own
					t.Errorf("NoFollow %v: %d allocations in 1,000 Writes, want 0", noFollow, n)
				}
			}
		})
	}
}

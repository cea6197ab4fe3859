//go:build !race

package slab_test

import (
	"bytes"
	"fmt"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollway/rollway/file"
	"github.com/rollway/rollway/internal/testkit"
	"github.com/rollway/rollway/slab"
)

// What a Writer and its file do again and again by themselves allocates nothing:
// batches, a look at the path every second, fsync. The time is virtual, the files
// are real.
func TestBatchesToAFileDoNotAllocate(t *testing.T) {
	for _, mode := range []file.Mode{file.Buffered, file.Uncached, file.Direct} {
		for _, policy := range []file.SyncPolicy{file.SyncNever, file.SyncInterval, file.SyncEachWrite} {
			t.Run(fmt.Sprint(mode, policy), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					f, err := file.Open(filepath.Join(t.TempDir(), "log"), file.Options{Mode: mode, Sync: policy})
					if err != nil {
						t.Fatal(err)
					}
					w, err := slab.New(f, slab.Options{Full: slab.Block, CloseTimeout: time.Hour})
					if err != nil {
						t.Fatal(err)
					}
					defer w.Close()
					line := append(bytes.Repeat([]byte("l"), 255), '\n')
					passes := uint64(0)
					n := testkit.Mallocs(func() {
						passes++
						for range 100 {
							for range 100 {
								if _, err := w.Write(line); err != nil {
									t.Fatal(err)
								}
							}
							time.Sleep(3 * time.Second) // past the next look, and the next fsync
							synctest.Wait()
						}
					})
					if n > 2 { // of the runtime's own
						t.Errorf("%d allocations in 10,000 lines and 100 batches", n)
					}
					if s := w.Stats(); s.Writes < 100*passes || s.Dropped.Total() > 0 || s.Pending > 0 {
						t.Errorf("after %d passes: Stats %+v", passes, s)
					}
				})
			})
		}
	}
}

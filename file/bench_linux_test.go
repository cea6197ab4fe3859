package file_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rollway/rollway/file"
	"github.com/rollway/rollway/slab"
)

// BenchmarkModes writes lines of 256 bytes through a slab.Writer to a file that
// rotates every 128 MiB, and forces them out at the end. It reports MB/s, the
// end included; seconds of processor for each GB, of the whole machine, as the
// page cache is written back by the kernel's own threads (so let nothing else
// run); and how long 99 of a hundred Writes to the file took at most.
func BenchmarkModes(b *testing.B) {
	const total = 1 << 30
	line := []byte(strings.Repeat("x", 255) + "\n")
	for _, batch := range []int{64 << 10, 1 << 20} {
		for _, mode := range modes {
			b.Run(fmt.Sprintf("%v/%dKiB", mode, batch>>10), func(b *testing.B) {
				for range b.N {
					path := filepath.Join(b.TempDir(), "log")
					f, err := file.Open(path, file.Options{Mode: mode, MaxSize: 128 << 20, CloseTimeout: time.Minute})
					if err != nil {
						b.Fatal(err)
					}
					dst := &timed{File: f}
					w, err := slab.New(dst, slab.Options{SlabSize: batch, Full: slab.Block})
					if err != nil {
						b.Fatal(err)
					}
					busy, start := busyTime(b), time.Now()
					for n := 0; n < total; n += len(line) {
						if _, err := w.Write(line); err != nil {
							b.Fatal(err)
						}
					}
					if err := errors.Join(w.Close(), f.Sync()); err != nil {
						b.Fatal(err)
					}
					took, used := time.Since(start), busyTime(b)-busy
					slices.Sort(dst.took)
					b.ReportMetric(total/1e6/took.Seconds(), "MB/s")
					b.ReportMetric(used.Seconds()/(total/1e9), "cpu-s/GB")
					b.ReportMetric(float64(dst.took[len(dst.took)*99/100].Microseconds())/1000, "p99-ms")
					if s := f.Stats(); s.Mode != mode || s.Bytes != total || s.Written != total/uint64(len(line)) {
						b.Fatalf("Stats %+v", s)
					}
					if err := f.Close(); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// timed notes how long Writes take.
type timed struct {
	*file.File
	took []time.Duration
}

func (d *timed) Write(p []byte) (int, error) {
	start := time.Now()
	n, err := d.File.Write(p)
	d.took = append(d.took, time.Since(start))
	return n, err
}

// busyTime returns how long the processors of the machine have worked.
func busyTime(b *testing.B) time.Duration {
	b.Helper()
	data, err := os.ReadFile("/proc/stat")
	if err != nil {
		b.Fatal(err)
	}
	first, _, _ := bytes.Cut(data, []byte("\n"))
	var user, nice, system, idle, wait, irq, soft int64
	if _, err := fmt.Sscanf(string(first), "cpu %d %d %d %d %d %d %d", &user, &nice, &system, &idle, &wait, &irq, &soft); err != nil {
		b.Fatalf("%q: %v", first, err)
	}
	return time.Duration(user+nice+system+irq+soft) * 10 * time.Millisecond // USER_HZ is 100
}

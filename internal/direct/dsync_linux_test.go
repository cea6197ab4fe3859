package direct

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// BenchmarkSync compares a write followed by fdatasync with one that has
// RWF_DSYNC: at the end of a file that is allocated ahead, and over old blocks.
// docs/WRITERS.md has what came of it.
func BenchmarkSync(b *testing.B) {
	memory, err := NewMemorySet(1, 8<<20)
	if err != nil {
		b.Fatal(err)
	}
	defer memory.Free()
	for i := range memory.Bytes(0) {
		memory.Bytes(0)[i] = byte(i*7 + 1)
	}
	for _, over := range []bool{false, true} {
		for _, flag := range []int{unix.O_DIRECT, 0} {
			for _, chunk := range []int{4 << 10, 256 << 10, 1 << 20, 8 << 20} {
				for _, rwf := range []int{0, unix.RWF_DSYNC} {
					name := fmt.Sprintf("%s/%s/%dKiB/%s", pick(over, "over", "append"), pick(flag != 0, "Direct", "Buffered"), chunk>>10, pick(rwf != 0, "dsync", "fdatasync"))
					b.Run(name, func(b *testing.B) { benchmarkSync(b, memory.Bytes(0)[:chunk], over, flag, rwf) })
				}
			}
		}
	}
}

func pick(first bool, a, b string) string {
	if first {
		return a
	}
	return b
}

const syncFile = 64 << 20 // bytes; the place goes round in it

func benchmarkSync(b *testing.B, chunk []byte, over bool, flag, rwf int) {
	f, err := os.OpenFile(filepath.Join(b.TempDir(), "log"), os.O_RDWR|os.O_CREATE|flag, 0o600)
	if err != nil {
		b.Skip("no direct I/O here: ", err)
	}
	defer f.Close()
	fd := int(f.Fd())
	if over {
		for at := int64(0); at < syncFile && err == nil; at += int64(len(chunk)) {
			_, err = unix.Pwrite(fd, chunk, at)
		}
	} else {
		err = unix.Fallocate(fd, unix.FALLOC_FL_KEEP_SIZE, 0, syncFile)
	}
	if err == nil {
		err = f.Sync()
	}
	if err != nil {
		b.Fatal(err)
	}
	var took []time.Duration
	at := int64(0)
	for b.Loop() {
		begin := time.Now()
		if _, err = unix.Pwritev2(fd, [][]byte{chunk}, at, rwf); err == nil && rwf == 0 {
			err = unix.Fdatasync(fd)
		}
		if err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(begin))
		if at += int64(len(chunk)); at == syncFile {
			if at = 0; !over {
				b.StopTimer()
				if err := f.Truncate(0); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
			}
		}
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Nanoseconds())/1000, "p50-µs")
	b.ReportMetric(float64(took[len(took)*99/100].Nanoseconds())/1000, "p99-µs")
}

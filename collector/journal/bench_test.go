package journal

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"testing"
)

// shmDir returns a folder in memory where the system has one, else a usual one.
func shmDir(t testing.TB) string {
	dir, err := os.MkdirTemp("/dev/shm", "journal")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// BenchmarkAppend: one op is one batch; the segments go to the test's temporary
// folder and are deleted by retention.
func BenchmarkAppend(b *testing.B) {
	for _, n := range []int{1, 100} {
		for _, synced := range []bool{false, true} {
			batch := lines(1_000_000, n)
			batch.Synced = synced
			name := fmt.Sprintf("lines=%d/synced=%t", n, synced)
			b.Run(name+"/serial", func(b *testing.B) {
				j := benchJournal(b, batch)
				for b.Loop() {
					if _, err := j.Append(context.Background(), batch); err != nil {
						b.Fatal(err)
					}
				}
				reportBatch(b, j)
			})
			b.Run(name+"/parallel", func(b *testing.B) {
				j := benchJournal(b, batch)
				b.SetParallelism(32 / runtime.GOMAXPROCS(0))
				b.RunParallel(func(pb *testing.PB) {
					for pb.Next() {
						if _, err := j.Append(context.Background(), batch); err != nil {
							b.Error(err)
							return
						}
					}
				})
				reportBatch(b, j)
			})
		}
	}
}

func benchJournal(b *testing.B, batch Batch) *Journal {
	j := mustOpen(b, b.TempDir(), Options{RetainBytes: 512 << 20})
	b.SetBytes(int64(len(batch.Lines)))
	b.ReportAllocs()
	b.ResetTimer()
	return j
}

func reportBatch(b *testing.B, j *Journal) {
	b.StopTimer()
	st := j.Stats()
	b.ReportMetric(float64(st.Appends)/float64(st.Groups), "appends/group")
	if st.Fsyncs > 0 {
		b.ReportMetric(float64(st.Appends)/float64(st.Fsyncs), "appends/fsync")
	}
}

// BenchmarkRead: one op is one frame.
func BenchmarkRead(b *testing.B) {
	for _, n := range []int{1, 100} {
		b.Run(fmt.Sprintf("lines=%d", n), func(b *testing.B) {
			j := mustOpen(b, b.TempDir(), Options{})
			batch := lines(1_000_000, n)
			for range 20_000 / n {
				mustAppend(b, j, batch)
			}
			b.SetBytes(int64(len(batch.Lines)))
			b.ReportAllocs()
			r := j.NewReader(0)
			for b.Loop() {
				_, ok, err := r.TryNext()
				if err != nil {
					b.Fatal(err)
				}
				if !ok {
					r.Close()
					r = j.NewReader(0)
				}
			}
			r.Close()
		})
	}
}

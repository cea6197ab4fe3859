package shard_test

import (
	"bytes"
	"io"
	"testing"

	"github.com/rollway/rollway/shard"
)

// BenchmarkLogBytes compares sizes; the destination costs nothing.
func BenchmarkLogBytes(b *testing.B) {
	for _, size := range []int{256, 4096, 300 << 10} {
		record := bytes.Repeat([]byte{'x'}, size-1)
		w, err := shard.New(io.Discard, shard.Options{Full: shard.Block})
		if err != nil {
			b.Fatal(err)
		}
		b.Run(sizeName(size), func(b *testing.B) {
			b.SetBytes(int64(size))
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					w.LogBytes(record)
				}
			})
		})
		w.Close()
	}
}

func sizeName(n int) string {
	return map[int]string{256: "256B", 4096: "4KiB", 300 << 10: "300KiB"}[n]
}

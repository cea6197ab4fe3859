package slab_test

import (
	"bufio"
	"bytes"
	"io"
	"sync"
	"testing"

	"github.com/rollway/rollway/slab"
)

// lockedBufio is what a program does without this package: a mutex and a
// bufio.Writer of the same size.
type lockedBufio struct {
	mu sync.Mutex
	w  *bufio.Writer
}

func (l *lockedBufio) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}

// BenchmarkWrite compares a Write of 256 bytes with a mutex and a bufio.Writer,
// both in front of a destination that costs nothing. Compare within one run:
//
//	go test -run '^$' -bench Write -cpu 1,2,4,8 -count 6 ./slab
func BenchmarkWrite(b *testing.B) {
	line := append(bytes.Repeat([]byte{'x'}, 255), '\n')
	for _, bm := range []struct {
		name string
		open func(b *testing.B) io.Writer
	}{
		{"slab", func(b *testing.B) io.Writer {
			w, err := slab.New(io.Discard, slab.Options{Full: slab.Block})
			if err != nil {
				b.Fatal(err)
			}
			b.Cleanup(func() { w.Close() })
			return w
		}},
		{"bufio", func(*testing.B) io.Writer {
			return &lockedBufio{w: bufio.NewWriterSize(io.Discard, 64<<10)}
		}},
	} {
		b.Run("serial/"+bm.name, func(b *testing.B) {
			w := bm.open(b)
			b.SetBytes(int64(len(line)))
			b.ReportAllocs()
			for b.Loop() {
				w.Write(line)
			}
		})
		b.Run("parallel/"+bm.name, func(b *testing.B) {
			w := bm.open(b)
			b.SetBytes(int64(len(line)))
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					w.Write(line)
				}
			})
		})
	}
}

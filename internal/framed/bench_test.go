package framed

import (
	"bytes"
	"io"
	"strconv"
	"testing"
)

// BenchmarkPutRecord frames into a buffer that is larger than the caches.
func BenchmarkPutRecord(b *testing.B) {
	for _, size := range []int{256, 4096, 300 << 10} {
		b.Run(strconv.Itoa(size), func(b *testing.B) {
			record, buf := bytes.Repeat([]byte("x"), size), make([]byte, 64<<20)
			seed, n, at := SeedOf(1), RecordSize(size), 0
			b.SetBytes(int64(size))
			for b.Loop() {
				if at+n > len(buf) {
					at = 0
				}
				seed.PutRecord(buf[at:at+n], record)
				at += n
			}
		})
	}
}

// BenchmarkCopy is what remains of BenchmarkPutRecord without framing.
func BenchmarkCopy(b *testing.B) {
	for _, size := range []int{256, 4096, 300 << 10} {
		b.Run(strconv.Itoa(size), func(b *testing.B) {
			record, buf := bytes.Repeat([]byte("x"), size), make([]byte, 64<<20)
			at := 0
			b.SetBytes(int64(size))
			for b.Loop() {
				if at+size > len(buf) {
					at = 0
				}
				copy(buf[at:at+size], record)
				at += size
			}
		})
	}
}

// BenchmarkReader reads a segment in memory, per record.
func BenchmarkReader(b *testing.B) {
	for _, size := range []int{256, 300 << 10} {
		b.Run(strconv.Itoa(size), func(b *testing.B) {
			f := begin(b, nil, 4096, 1)
			records := make([]string, 8<<20/size)
			for i := range records {
				records[i] = string(bytes.Repeat([]byte("x"), size))
			}
			for range 4 {
				f.batch(records...)
			}
			b.SetBytes(int64(size))
			var r *Reader
			for b.Loop() {
				if r == nil {
					r, _ = NewReader(bytes.NewReader(f.bytes), int64(len(f.bytes)), Options{})
				}
				if _, err := r.Next(); err == io.EOF {
					r = nil
				}
			}
		})
	}
}

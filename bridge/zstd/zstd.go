// Package zstd compresses rotated files of file.File and requests of remote.Writer
// with Zstandard. It is a separate module, since the library's own depends on the
// standard library alone and so has only gzip.
//
//	f, err := file.Open(path, file.Options{MaxSize: 100 << 20, Compress: zstd.Compressor{}})
package zstd

import (
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"
)

// Compressor implements file.Compressor and remote's. The zero value is the
// recommended setting. It is safe for concurrent use.
type Compressor struct {
	// Level is from 1, fast, to 22, small, as in the zstd program; some have the same
	// effect here. Default 0: 3.
	Level int
}

// Extension returns ".zst", the ending of names of compressed files.
func (Compressor) Extension() string { return ".zst" }

// Encoding returns "zstd", its name in HTTP.
func (Compressor) Encoding() string { return "zstd" }

// NewWriter returns a writer that compresses into w, in the caller's goroutine. Its
// Close ends the stream and leaves w open.
func (c Compressor) NewWriter(w io.Writer) (io.WriteCloser, error) {
	level := c.Level
	switch {
	case level == 0:
		level = 3
	case level < 0 || level > 22:
		return nil, fmt.Errorf("bad zstd.Compressor.Level %d: give 1 to 22, or 0 for 3", level)
	}
	return zstd.NewWriter(w,
		zstd.WithEncoderLevel(zstd.EncoderLevelFromZstd(level)),
		zstd.WithEncoderConcurrency(1),
		zstd.WithZeroFrames(true), // also empty input makes a stream
	)
}

// NewReader returns a reader of one or more compressed streams in r, in the caller's
// goroutine. At an incomplete stream it returns io.ErrUnexpectedEOF. Close leaves r
// open.
func (Compressor) NewReader(r io.Reader) (io.ReadCloser, error) {
	d, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1))
	if err != nil {
		return nil, err
	}
	return d.IOReadCloser(), nil
}

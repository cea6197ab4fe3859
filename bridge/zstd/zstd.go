// Package zstd packs with Zstandard what file.File rotates and what
// remote.Writer sends. The library's own module depends on the standard library
// alone, so it has gzip only; this is a module apart.
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
	// Level is from 1, fast, to 22, small, as the zstd program has it; several
	// of them do the same here. Default 0: 3.
	Level int
}

// Extension returns ".zst", which packed files end in.
func (Compressor) Extension() string { return ".zst" }

// Encoding returns "zstd", which HTTP calls it.
func (Compressor) Encoding() string { return "zstd" }

// NewWriter returns a writer that packs into w. Its Close ends the stream and
// leaves w open. It works in the caller's goroutine.
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
		zstd.WithZeroFrames(true), // nothing, packed, is not nothing
	)
}

// NewReader returns a reader of what was packed into r, in one stream or
// several on end. Where it is incomplete it returns io.ErrUnexpectedEOF. It
// works in the caller's goroutine; Close leaves r open.
func (Compressor) NewReader(r io.Reader) (io.ReadCloser, error) {
	d, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1))
	if err != nil {
		return nil, err
	}
	return d.IOReadCloser(), nil
}

package file

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
)

// A Compressor packs rotated files. Its methods are called from one goroutine
// for each File, and from Holds.
type Compressor interface {
	// Extension is what a packed file's name ends in: a dot and letters or
	// digits.
	Extension() string
	// NewWriter returns a writer that packs into w, which its Close does not
	// close.
	NewWriter(w io.Writer) (io.WriteCloser, error)
	// NewReader returns a reader of what NewWriter's has packed. It returns an
	// error, not io.EOF, where that is incomplete.
	NewReader(r io.Reader) (io.ReadCloser, error)
}

// Gzip is a Compressor that any gzip program reads.
type Gzip struct {
	// Level is from 1, fast, to 9, small. Default 0: what gzip calls its
	// default, 6.
	Level int
}

// Extension implements Compressor.
func (Gzip) Extension() string { return ".gz" }

// NewWriter implements Compressor.
func (g Gzip) NewWriter(w io.Writer) (io.WriteCloser, error) {
	level := g.Level
	if level == 0 {
		level = gzip.DefaultCompression
	}
	zw, err := gzip.NewWriterLevel(w, level)
	if err != nil {
		return nil, fmt.Errorf("bad Gzip.Level %d: give 1 to 9, or 0 for the default", g.Level)
	}
	return zw, nil
}

// NewReader implements Compressor.
func (Gzip) NewReader(r io.Reader) (io.ReadCloser, error) { return gzip.NewReader(r) }

var errUnknownPacking = errors.New("packed in a way that Options.Compress does not read")

// unpack returns a reader of a file packed with the extension.
func unpack(r io.Reader, ext string, c Compressor) (io.ReadCloser, error) {
	switch {
	case c != nil && c.Extension() == ext:
		return c.NewReader(r)
	case ext == (Gzip{}).Extension():
		return Gzip{}.NewReader(r)
	}
	return nil, errUnknownPacking
}

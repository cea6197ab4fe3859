package file

import (
	"cmp"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/rollway/rollway/internal/logfile"
)

// A Compressor compresses rotated files. One goroutine of a File and Holds call it.
type Compressor interface {
	// Extension is what a compressed file's name ends with: a dot and letters
	// or digits.
	Extension() string
	// NewWriter returns a writer that compresses into w. Its Close does not close w.
	NewWriter(w io.Writer) (io.WriteCloser, error)
	// NewReader returns a reader of what NewWriter's has written. If that is incomplete, it
	// returns an error other than io.EOF.
	NewReader(r io.Reader) (io.ReadCloser, error)
}

// Gzip is a Compressor that any gzip program reads.
type Gzip struct {
	// Level is from 1, fast, to 9, small. Default 0: gzip's default, 6.
	Level int
}

// Extension implements Compressor.
func (Gzip) Extension() string { return ".gz" }

// NewWriter implements Compressor.
func (g Gzip) NewWriter(w io.Writer) (io.WriteCloser, error) {
	zw, err := gzip.NewWriterLevel(w, cmp.Or(g.Level, gzip.DefaultCompression))
	if err != nil {
		return nil, fmt.Errorf("bad Gzip.Level %d: give 1 to 9, or 0 for the default", g.Level)
	}
	return zw, nil
}

// NewReader implements Compressor.
func (Gzip) NewReader(r io.Reader) (io.ReadCloser, error) { return gzip.NewReader(r) }

var errUnknownCompression = errors.New("compressed in a way that Options.Compress does not read")

func uncompress(r io.Reader, ext string, c Compressor) (io.ReadCloser, error) {
	switch {
	case c != nil && c.Extension() == ext:
		return c.NewReader(r)
	case ext == (Gzip{}).Extension():
		return Gzip{}.NewReader(r)
	}
	return nil, errUnknownCompression
}

// compress replaces x.plain by a compressed copy.
func (m *maintenance) compress(x *rotatedFile) error {
	src, err := acquireNamed(x.plain)
	if err != nil {
		return fmt.Errorf("compress: %w", err)
	}
	defer src.Close()
	name := x.plain + m.f.opt.Compress.Extension()
	from, to, err := m.copyInto(name, src)
	if err != nil {
		os.Remove(name + partial)
		return fmt.Errorf("compress %s, which stays as it is: %w", x.plain, err)
	}
	m.f.count(func(s *Stats) {
		s.Compressed++
		s.CompressedFrom += uint64(from)
		s.CompressedTo += uint64(to)
	})
	if err := remove(x.plain); err != nil {
		m.f.tell(removing, m.f.fail("tidy", err)) // the next pass sees both
	} else {
		m.release(src)
	}
	x.compressed, x.plain, x.size = name, "", to
	m.tellRotated(name)
	return nil
}

// copyInto makes name a durable compressed copy of src, and returns the sizes of both.
func (m *maintenance) copyInto(name string, src *os.File) (from, to int64, err error) {
	dst, err := openFile(name+partial, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return 0, 0, err
	}
	defer dst.Close()
	lockExclusive(dst)
	from, err = compressInto(m.ctx, dst, src, m.f.opt.Compress)
	old, oldErr := src.Stat()
	packed, packedErr := dst.Stat()
	if err = errors.Join(err, oldErr, packedErr); err != nil {
		return 0, 0, err
	}
	m.f.inherit(dst, old)
	if err := dst.Sync(); err != nil {
		return 0, 0, err
	}
	if err := os.Chtimes(name+partial, old.ModTime(), old.ModTime()); err != nil {
		return 0, 0, err
	}
	if err := logfile.RenameNew(name+partial, name); err != nil {
		return 0, 0, err
	}
	err = syncFolders(filepath.Dir(name))
	// A writer that ignores locks may have come in between.
	if now, statErr := src.Stat(); statErr != nil || now.Size() != from {
		err = errors.Join(errors.New("it grew while it was compressed"), err, statErr)
	}
	if err != nil {
		err = errors.Join(err, os.Remove(name))
	}
	return from, packed.Size(), err
}

func compressInto(ctx context.Context, dst io.Writer, src io.Reader, c Compressor) (size int64, err error) {
	defer recovered(&err)
	w, err := c.NewWriter(dst)
	if err != nil {
		return 0, err
	}
	size, err = io.Copy(w, &reader{ctx, src})
	return size, errors.Join(err, w.Close())
}

func recovered(err *error) {
	if v := recover(); v != nil {
		*err = fmt.Errorf("Options.Compress panicked: %v", v)
	}
}

type reader struct {
	ctx context.Context
	r   io.Reader
}

func (r *reader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.r.Read(p)
}

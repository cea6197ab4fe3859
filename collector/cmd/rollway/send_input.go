package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/rollway/rollway/internal/disk"
)

// An input reads the lines of a file or a stream, decompressed. It is not safe for
// concurrent use.
type input struct {
	name   string
	stream bool // has no size, cannot be resumed, and may block

	file     *os.File
	info     os.FileInfo // nil for a stream
	raw      *countingReader
	text     *bufio.Reader // decompressed
	unpacker io.Closer     // nil for uncompressed input

	size     int64 // of the file on disk
	rawStart int64 // where this run began, in bytes of the file
	opened   time.Time

	lines     int   // lines consumed, from the start of the file
	offset    int64 // decompressed bytes consumed, from the start of the file
	whole     bool  // a last line without an end is a line
	left      int64 // length of a last line without an end that was not read
	tailStart int64 // start of the last line consumed if it has no end, else -1
	long      []byte
	part      func([]byte) // is called with each part of a line that is read; nil: nothing is

	lock disk.Lock // excludes other runs; nil: not held
}

const (
	readBuffer = 256 << 10
	headBytes  = 1 << 10 // hashed at the start of a file and before the position, to recognize it
)

// openInput opens a file, or standard input for "-". Anything but a regular file is read
// as a stream. ctx bounds waiting for a stream.
func openInput(ctx context.Context, name string, stdin *os.File) (*input, error) {
	if name == "-" {
		return newInput("standard input", stdin, &contextReader{ctx: ctx, r: stdin})
	}
	var info os.FileInfo
	f, err := await(ctx, func() (f *os.File, err error) { // opening a named pipe waits for its writer
		f, info, err = openRegular(name)
		return f, err
	})
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return newInput(name, f, &contextReader{ctx: ctx, r: f})
	}
	in, err := newInput(name, f, f)
	if err != nil {
		return nil, err
	}
	in.info, in.size, in.stream, in.whole = info, info.Size(), false, in.unpacker != nil
	if head, _ := in.text.Peek(512); 10*bytes.Count(head, []byte{0}) > len(head) { // the next read returns the error
		in.Close()
		return nil, fmt.Errorf("%s has many NUL bytes, like a binary file or UTF-16 text; nothing was sent; rollway send - <FILE sends it anyway", name)
	}
	return in, nil
}

// newInput returns an input that reads r as a stream and closes f.
func newInput(name string, f *os.File, r io.Reader) (*input, error) {
	in := &input{name: name, file: f, stream: true, whole: true, opened: time.Now(), tailStart: -1}
	if err := in.begin(r); err != nil {
		in.Close()
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return in, nil
}

// begin detects the compression of r.
func (in *input) begin(r io.Reader) error {
	in.raw = &countingReader{r: r}
	packed := bufio.NewReaderSize(in.raw, readBuffer)
	// A stream may be slow: wait for no more bytes than needed.
	first, _ := packed.Peek(1)
	magic := first
	if len(first) == 1 && (first[0] == 0x1f || first[0] == 0x28) {
		magic, _ = packed.Peek(4)
	}
	switch {
	case bytes.HasPrefix(magic, []byte{0x1f, 0x8b}):
		z, err := gzip.NewReader(packed)
		if err != nil {
			return fmt.Errorf("read gzip header: %w", err)
		}
		in.unpacker, in.text = z, bufio.NewReaderSize(z, readBuffer)
	case bytes.Equal(magic, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		z, err := zstd.NewReader(packed, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(128<<20))
		if err != nil {
			return fmt.Errorf("read zstd header: %w", err)
		}
		in.unpacker, in.text = z.IOReadCloser(), bufio.NewReaderSize(z, readBuffer)
	default:
		in.text = packed
	}
	return nil
}

// Close closes the file and lets other runs have it.
func (in *input) Close() {
	if in.unpacker != nil {
		in.unpacker.Close()
	}
	if in.lock != nil {
		in.lock.Close()
	}
	in.file.Close()
}

// seek goes to an offset in the decompressed text.
func (in *input) seek(offset int64) error {
	if in.unpacker == nil {
		if _, err := in.file.Seek(offset, io.SeekStart); err != nil {
			return err
		}
		in.raw.n, in.rawStart = offset, offset
		in.text.Reset(in.raw)
		return nil
	}
	in.unpacker.Close()
	if _, err := in.file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	if err := in.begin(in.file); err != nil {
		return err
	}
	_, err := io.CopyN(io.Discard, in.text, offset)
	in.rawStart = in.raw.n
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return err
}

// skipTo seeks to the position p and reports whether there is more. A last line that was
// sent without an end and has grown since is sent again as a whole.
func (in *input) skipTo(p *position) (more bool, err error) {
	if err := in.seek(p.Offset); err != nil {
		return false, err
	}
	in.lines, in.offset, in.tailStart = p.Lines, p.Offset, p.TailStart
	next, err := in.text.Peek(2)
	if len(next) == 0 {
		return false, noEOF(err)
	}
	if p.TailStart < 0 {
		return true, nil
	}
	if end := bytes.IndexByte(next, '\n') + 1; end == 1 || end == 2 && next[0] == '\r' {
		n, _ := in.text.Discard(end)
		in.offset, in.tailStart = in.offset+int64(n), -1
		_, err := in.text.Peek(1)
		return err == nil, noEOF(err)
	}
	if err := in.seek(p.TailStart); err != nil {
		return false, err
	}
	in.lines, in.offset, in.tailStart = p.Lines-1, p.TailStart, -1
	return true, nil
}

func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// A textLine is a line of the file.
type textLine struct {
	text    []byte // without LF or CR LF, valid until the next call
	tooLong int64  // its length if it exceeds the limit; text is then empty
}

// next reads one line. At the end it returns io.EOF. A last line without an end is a
// line only if in.whole is set. A line cut by an error of the decompressor is not one.
func (in *input) next(limit int) (line textLine, err error) {
	in.long = in.long[:0]
	size, err := int64(0), bufio.ErrBufferFull
	for errors.Is(err, bufio.ErrBufferFull) {
		var part []byte
		part, err = in.text.ReadSlice('\n')
		size += int64(len(part))
		if len(in.long) <= limit+len("\r\n") {
			in.long = append(in.long, part...)
		}
		if in.part != nil {
			in.part(part)
		}
	}
	switch {
	case err == nil:
		in.tailStart = -1
	case errors.Is(err, io.EOF) && (size == 0 || !in.whole):
		in.left = size
		return line, io.EOF
	case errors.Is(err, io.EOF):
		in.tailStart = in.offset
	case in.unpacker != nil && errors.Is(err, io.ErrUnexpectedEOF):
		return line, fmt.Errorf("%s: read line %d: the compressed file is truncated or still being written: %w", in.name, in.lines+1, err)
	default:
		return line, fmt.Errorf("%s: read line %d: %w", in.name, in.lines+1, err)
	}
	in.lines++
	in.offset += size
	line.text = bytes.TrimSuffix(bytes.TrimSuffix(in.long, []byte("\n")), []byte("\r"))
	if len(in.long) > limit+len("\r\n") {
		return textLine{tooLong: size}, nil
	}
	if len(line.text) > limit {
		return textLine{tooLong: int64(len(line.text))}, nil
	}
	return line, nil
}

// sum hashes n bytes of the file at an offset, at most headBytes, and returns how many
// it covers.
func (in *input) sum(from int64, n int) (sum string, covered int, err error) {
	buf := make([]byte, min(n, headBytes))
	covered, err = in.file.ReadAt(buf, from)
	if err != nil && !errors.Is(err, io.EOF) {
		return "", 0, err
	}
	hash := sha256.Sum256(buf[:covered])
	return hex.EncodeToString(hash[:]), covered, nil
}

// tail hashes the last bytes before an offset.
func (in *input) tail(end int64) (string, error) {
	from := max(0, end-headBytes)
	sum, _, err := in.sum(from, int(end-from))
	return sum, err
}

type countingReader struct {
	r io.Reader
	n int64
}

func (c *countingReader) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}

// contextReader returns from a blocked read when ctx ends, and abandons that read.
type contextReader struct {
	ctx context.Context
	r   io.Reader
	buf []byte
}

func (c *contextReader) Read(p []byte) (int, error) {
	if len(c.buf) < len(p) {
		c.buf = make([]byte, len(p))
	}
	buf := c.buf[:len(p)]
	n, err := await(c.ctx, func() (int, error) { return c.r.Read(buf) })
	return copy(p, buf[:n]), err
}

// await returns the result of f, or context.Canceled once ctx has ended. It then
// abandons f.
func await[T any](ctx context.Context, f func() (T, error)) (result T, err error) {
	if ctx.Err() != nil {
		return result, context.Canceled
	}
	type outcome struct {
		result T
		err    error
	}
	ended := make(chan outcome, 1)
	go func() {
		result, err := f()
		ended <- outcome{result, err}
	}()
	select {
	case o := <-ended:
		return o.result, o.err
	case <-ctx.Done():
		return result, context.Canceled
	}
}

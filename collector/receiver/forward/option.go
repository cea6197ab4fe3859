package forward

import (
	"bufio"
	"encoding/base64"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"strconv"

	"github.com/klauspost/compress/zstd"

	"github.com/rollway/rollway/collector/normalize"
	"github.com/rollway/rollway/collector/receiver"
)

// option is what matters of a message's option.
type option struct {
	chunk  []byte // the value as it was sent; nil: no acknowledgement is wanted
	packed []byte // how the entries are compressed; empty: not at all
	id     id
	named  bool // id is that of this message alone
}

// read reads it from r; anything but a map is no option.
func (o *option) read(r *reader) {
	head := r.next()
	if head.kind != isMap {
		r.skip(head)
		return
	}
	fluentBit := false
	for range head.n {
		key := r.next()
		r.skip(key)
		before := r.b
		v := r.next()
		r.skip(v)
		switch string(key.data) {
		case "chunk":
			if v.kind == isString || v.kind == isBinary {
				o.chunk = before[:len(before)-len(r.b)]
				o.named = o.id.parse(v.data)
			}
		case "fluent_signal":
			fluentBit = true
		case "compressed":
			o.packed = v.data
			if string(v.data) == "text" {
				o.packed = nil
			}
		}
	}
	o.named = o.named && !fluentBit
}

// Bounds of what inflate takes at a time, and from where on it looks at the
// ratio.
const (
	firstInflate = 64 << 10
	ratioFloor   = 4 << 20
	maxRatio     = 200
)

// Memory of a decoder of zstd: the largest window that it may have to use, as over
// HTTP, and more than it needs beside it.
const (
	maxWindow   = 8 << 20
	zstdScratch = 512 << 10
)

// unpacker returns what unpacks packed, of one or several members or frames; done
// is to be called in the end.
func (s *session) unpacker(c *receiver.Chunk, how, packed []byte) (src io.Reader, done func(), err error) {
	s.packed.Reset(packed)
	switch string(how) {
	case "gzip":
		if s.buffered == nil {
			s.buffered = bufio.NewReader(nil)
		}
		s.buffered.Reset(&s.packed)
		return &s.gzip, func() {}, s.gzip.Reset(s.buffered)
	case "zstd":
		if !c.Acquire(maxWindow + zstdScratch) {
			return nil, nil, errMemory
		}
		z, err := zstd.NewReader(&s.packed, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxWindow))
		if err != nil {
			return nil, nil, err
		}
		return z, z.Close, nil
	}
	return nil, nil, errors.New("known here are gzip and zstd")
}

// inflate unpacks packed into memory of the session. An error is that of the
// message.
func (s *session) inflate(c *receiver.Chunk, how, packed []byte) ([]byte, error) {
	defer s.packed.Reset(nil)
	if len(packed) == 0 {
		return nil, nil
	}
	src, done, err := s.unpacker(c, how, packed)
	if err != nil {
		return nil, fmt.Errorf("the entries of a message are not %.20q: %w", how, err)
	}
	defer done()
	out := s.unpacked[:0]
	defer func() { s.unpacked = keep(out) }()
	for held := 0; ; {
		if len(out) == held {
			size := min(max(firstInflate, 2*len(out)), s.MaxUnpacked+1)
			// Each byte counts twice, for itself and for its line.
			if !c.Acquire(2 * (size - held)) {
				return nil, errMemory
			}
			held = size
			if cap(out) < size {
				out = append(make([]byte, 0, size), out...)
			}
		}
		n, err := src.Read(out[len(out):held])
		out = out[:len(out)+n]
		if len(out) > s.MaxUnpacked || len(out) > ratioFloor && len(out)/maxRatio > len(packed) {
			return nil, fmt.Errorf("%w: its %d bytes unpack to more than %d bytes or %d times as many", errLarge, len(packed), s.MaxUnpacked, maxRatio)
		}
		if err == io.EOF {
			return out, nil
		}
		if err != nil {
			return nil, fmt.Errorf("the entries of a message are not whole %.20q: %w", how, err)
		}
	}
}

var (
	errMemory = errors.New("there is no memory to unpack a message")
	errLarge  = errors.New("a message is too large")
)

const keepUnpacked = 1 << 20 // a larger buffer is not kept between messages

func keep(b []byte) []byte {
	if cap(b) > keepUnpacked {
		return nil
	}
	return b[:0]
}

// id is the unique id of a message.
type id [16]byte

// parse reads an id from base64, which Fluentd ends with a line break. Anything else
// is not known to be unique: Fluent Bit before 2.0 sends half a hash of the content as
// hexadecimal digits.
func (i *id) parse(text []byte) bool {
	var buf [21]byte
	if len(text) > base64.StdEncoding.EncodedLen(len(buf)) {
		return false
	}
	n, err := base64.StdEncoding.Decode(buf[:], text)
	return err == nil && n == copy(i[:], buf[:])
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// key names a message of content, which b has the events of. The content is in it, so
// that of a client which gives one id to many messages none but equal ones are lost;
// the number of events, so that a message which has become other events, since limits
// have changed, is another one.
func (m *delivery) key(b *normalize.Batch, content []byte) string {
	sum := crc32.Update(crc32.Checksum(m.tag, castagnoli), castagnoli, content)
	key := base64.RawStdEncoding.AppendEncode([]byte("forward/"), m.id[:])
	for _, n := range [...]int{int(sum), len(content), b.Events()} {
		key = strconv.AppendInt(append(key, '/'), int64(n), 36)
	}
	return string(key)
}

package forward

import (
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/gzip"

	"github.com/rollway/rollway/collector/receive"
)

// option is what matters of a message's option.
type option struct {
	chunk []byte // the value as it was sent; nil: no acknowledgement is wanted
	gzip  bool
}

// read reads it from r; anything but a map is no option.
func (o *option) read(r *reader) {
	head := r.next()
	if head.kind != isMap {
		r.skip(head)
		return
	}
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
			}
		case "compressed":
			o.gzip = string(v.data) == "gzip"
		}
	}
}

// Bounds of what inflate takes at a time, and from where on it looks at the
// ratio.
const (
	firstInflate = 64 << 10
	ratioFloor   = 4 << 20
	maxRatio     = 200
)

// inflate unpacks packed, of one or several members, into memory of the
// session. An error is that of the message.
func (s *session) inflate(c *receive.Chunk, packed []byte) ([]byte, error) {
	s.packed.Reset(packed)
	defer s.packed.Reset(nil)
	if len(packed) == 0 {
		return nil, nil
	}
	if s.unpack == nil {
		s.unpack = new(gzip.Reader)
	}
	if err := s.nextMember(); err != nil {
		s.unpack = nil
		return nil, fmt.Errorf("the entries of a message are not gzip: %w", err)
	}
	out := s.unpacked[:0]
	defer func() { s.unpacked = keep(out) }()
	for held := 0; ; {
		if len(out) == held {
			size := min(max(firstInflate, 2*len(out)), s.MaxUnpacked+1)
			// Each byte counts twice, for itself and for its line.
			if !c.Take(2 * (size - held)) {
				return nil, errMemory
			}
			held = size
			if cap(out) < size {
				out = append(make([]byte, 0, size), out...)
			}
		}
		n, err := s.unpack.Read(out[len(out):held])
		out = out[:len(out)+n]
		if len(out) > s.MaxUnpacked || len(out) > ratioFloor && len(out)/maxRatio > len(packed) {
			return nil, fmt.Errorf("%w: its %d bytes unpack to more than %d bytes or %d times as many", errLarge, len(packed), s.MaxUnpacked, maxRatio)
		}
		if err == io.EOF && s.packed.Len() == 0 {
			return out, nil
		}
		if err == io.EOF {
			err = s.nextMember()
		}
		if err != nil {
			return nil, fmt.Errorf("the entries of a message are not whole gzip: %w", err)
		}
	}
}

// nextMember begins a member of packed, of which there is more. Read together, a
// header that ends within its name would be taken for the end of all.
func (s *session) nextMember() error {
	err := s.unpack.Reset(&s.packed)
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	s.unpack.Multistream(false)
	return err
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

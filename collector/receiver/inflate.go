package receiver

import (
	"bufio"
	"errors"
	"fmt"
	"io"

	"github.com/rollway/rollway/collector/pool"
)

// firstInflate is what an Inflater takes at first.
const firstInflate = 64 << 10

// KeptInflated is how large a buffer an Inflater keeps between frames.
const KeptInflated = 1 << 20

// Errors of Inflater.Unpack.
var (
	ErrInflateMemory = errors.New("there is no memory to unpack a message") // if it is sent again it may succeed
	ErrInflateLarge  = errors.New("a message is too large")
)

// An Inflater unpacks what frames and datagrams hold, one after another. It is for one
// goroutine.
type Inflater struct {
	unpackers
	buffered *bufio.Reader // reads src; nil until needed
	out      []byte
}

// Unpack unpacks packed, by "gzip", "zlib" or "zstd", of one or several members or frames,
// to at most most bytes. These are valid until the next call. Their memory, and as much for
// their lines, is taken from the budget before.
func (u *Inflater) Unpack(c *Chunk, how, packed []byte, most int) ([]byte, error) {
	defer u.release()
	if len(packed) == 0 {
		return nil, nil
	}
	src, done, err := u.begin(c, how, packed)
	if err != nil {
		return nil, fmt.Errorf("not %.20q: %w", how, err)
	}
	if done != nil {
		defer done()
	}
	out := u.out[:0]
	defer func() {
		if u.out = out[:0]; cap(out) > KeptInflated {
			u.out = nil
		}
	}()
	for held := 0; ; {
		if len(out) == held {
			size := min(max(firstInflate, 2*len(out)), most+1)
			if !c.scratch(2 * size) {
				return nil, ErrInflateMemory
			}
			held = size
			if cap(out) < size {
				out = append(make([]byte, 0, size), out...)
			}
		}
		n, err := src.Read(out[len(out):held])
		out = out[:len(out)+n]
		if ratio := c.maxRatio(); len(out) > most || len(out) > ratioFloor && len(out)/ratio > len(packed) {
			return nil, fmt.Errorf("%w: its %d bytes unpack to more than %d bytes or %d times as many", ErrInflateLarge, len(packed), most, ratio)
		}
		if err == io.EOF {
			return out, nil
		}
		if err != nil {
			return nil, fmt.Errorf("not whole %.20q: %w", how, err)
		}
	}
}

// Overwrite is called when what Unpack has returned is read; see package pool.
func (u *Inflater) Overwrite() { pool.Overwrite(u.out) }

// begin is reader for packed.
func (u *Inflater) begin(c *Chunk, how, packed []byte) (src io.Reader, done func(), err error) {
	coding := inGzip
	switch string(how) {
	case "gzip":
	case "zlib":
		coding = inZlib
	case "zstd":
		if coding = inZstd; !c.Acquire(maxWindow + zstdScratch) {
			return nil, nil, ErrInflateMemory
		}
	default:
		return nil, nil, errors.New("known here are gzip and zstd")
	}
	if u.buffered == nil {
		u.buffered = bufio.NewReader(nil)
	}
	u.src.Reset(packed)
	u.buffered.Reset(&u.src)
	return u.reader(coding, u.buffered)
}

package relay

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/rollway/rollway/internal/promtext"
)

// What a client asks an upstream for.
const (
	opUpload   = 'U' // length bytes follow; the upstream answers with a receipt
	opDownload = 'D' // the upstream sends length bytes in writes of chunk bytes
	opEcho     = 'E' // length messages of chunk bytes come back one by one
)

// A request precedes everything that a client sends.
//
//	offset  bytes
//	0       1      operation
//	1       4      chunk, big-endian
//	5       8      length, big-endian
type request struct {
	op            byte
	chunk, length int
}

const requestBytes = 13

func (q request) write(w io.Writer) error {
	b := make([]byte, 0, requestBytes)
	b = append(b, q.op)
	b = binary.BigEndian.AppendUint32(b, uint32(q.chunk))
	b = binary.BigEndian.AppendUint64(b, uint64(q.length))
	_, err := w.Write(b)
	return err
}

// readRequest returns io.EOF where the client has ended between requests.
func readRequest(r io.Reader) (request, error) {
	var b [requestBytes]byte
	if _, err := io.ReadFull(r, b[:]); err != nil {
		return request{}, err
	}
	q := request{b[0], int(binary.BigEndian.Uint32(b[1:])), int(binary.BigEndian.Uint64(b[5:]))}
	if q.chunk < 1 || q.chunk > burst || q.length < 0 {
		return request{}, fmt.Errorf("a request for %d bytes in chunks of %d", q.length, q.chunk)
	}
	return q, nil
}

// blockBytes is after how many bytes the content of a stream begins anew.
const blockBytes = 1 << 20

// content is one block and as much again as the longest write.
var content = sync.OnceValue(func() []byte {
	b := make([]byte, blockBytes, blockBytes+burst)
	rand.NewChaCha8([32]byte{'r', 'e', 'l', 'a', 'y'}).Read(b)
	return append(b, b[:burst]...)
})

var (
	castagnoli = crc32.MakeTable(crc32.Castagnoli)
	sums       sync.Map // length to sum
)

// sum is the CRC-32C of a stream of this many bytes.
func sum(length int) uint32 {
	if s, ok := sums.Load(length); ok {
		return s.(uint32)
	}
	var s uint32
	for left := length; left > 0; left -= blockBytes {
		s = crc32.Update(s, castagnoli, content()[:min(left, blockBytes)])
	}
	sums.Store(length, s)
	return s
}

// send writes a stream of length bytes in writes of at most chunk bytes.
func send(w io.Writer, length, chunk int) error {
	b := content()
	for at := 0; at < length; {
		n := min(chunk, length-at)
		if _, err := w.Write(b[at%blockBytes:][:n]); err != nil {
			return fmt.Errorf("send at byte %d of %d: %w", at, length, err)
		}
		at += n
	}
	return nil
}

var receiveBuffers = sync.Pool{New: func() any { b := make([]byte, 256<<10); return &b }}

// receive reads length bytes and returns their CRC-32C.
func receive(r io.Reader, length int) (uint32, error) {
	pooled := receiveBuffers.Get().(*[]byte)
	defer receiveBuffers.Put(pooled)
	buf := *pooled
	var s uint32
	for at := 0; at < length; {
		n, err := r.Read(buf[:min(len(buf), length-at)])
		s = crc32.Update(s, castagnoli, buf[:n])
		if at += n; err != nil && at < length {
			return 0, fmt.Errorf("receive at byte %d of %d: %w", at, length, err)
		}
	}
	return s, nil
}

var errContent = errors.New("what came out is not what went in")

// checkSum compares the checksum of length received bytes.
func checkSum(got uint32, length int) error {
	if want := sum(length); got != want {
		return fmt.Errorf("%d bytes with checksum %08x instead of %08x: %w", length, got, want, errContent)
	}
	return nil
}

// upload sends length bytes and waits until the upstream has them all.
func upload(c io.ReadWriter, length, chunk int) error {
	if err := (request{opUpload, chunk, length}).write(c); err != nil {
		return err
	}
	if err := send(c, length, chunk); err != nil {
		return err
	}
	var receipt [12]byte
	if _, err := io.ReadFull(c, receipt[:]); err != nil {
		return fmt.Errorf("read receipt: %w", err)
	}
	if n := binary.BigEndian.Uint64(receipt[:]); n != uint64(length) {
		return fmt.Errorf("a receipt for %d of %d bytes: %w", n, length, errContent)
	}
	return checkSum(binary.BigEndian.Uint32(receipt[8:]), length)
}

// download has the upstream send length bytes.
func download(c io.ReadWriter, length, chunk int) error {
	if err := (request{opDownload, chunk, length}).write(c); err != nil {
		return err
	}
	got, err := receive(c, length)
	if err != nil {
		return err
	}
	return checkSum(got, length)
}

// pingPong sends n messages one after the other, each when the one before is
// back, and records the round trips in h if it is not nil.
func pingPong(c io.ReadWriter, n, size int, h *promtext.Histogram) error {
	if err := (request{opEcho, size, n}).write(c); err != nil {
		return err
	}
	back := make([]byte, size)
	for i := range n {
		out := content()[i%blockBytes:][:size]
		begin := time.Now()
		if _, err := c.Write(out); err != nil {
			return fmt.Errorf("message %d: %w", i, err)
		}
		if _, err := io.ReadFull(c, back); err != nil {
			return fmt.Errorf("answer %d: %w", i, err)
		}
		if h != nil {
			h.Record(time.Since(begin))
		}
		if string(back) != string(out) {
			return fmt.Errorf("answer %d: %w", i, errContent)
		}
	}
	return nil
}

// answer does what the requests on a connection ask for until the client ends.
func answer(c io.ReadWriter) error {
	for {
		q, err := readRequest(c)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		switch q.op {
		case opUpload:
			var got uint32
			if got, err = receive(c, q.length); err == nil {
				receipt := binary.BigEndian.AppendUint64(nil, uint64(q.length))
				_, err = c.Write(binary.BigEndian.AppendUint32(receipt, got))
			}
		case opDownload:
			err = send(c, q.length, q.chunk)
		case opEcho:
			err = echo(c, q.length, q.chunk)
		default:
			err = fmt.Errorf("a request for %q", q.op)
		}
		if err != nil {
			return err
		}
	}
}

func echo(c io.ReadWriter, n, size int) error {
	buf := make([]byte, size)
	for range n {
		if _, err := io.ReadFull(c, buf); err != nil {
			return err
		}
		if _, err := c.Write(buf); err != nil {
			return err
		}
	}
	return nil
}

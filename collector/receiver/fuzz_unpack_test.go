package receiver

import (
	"bufio"
	"bytes"
	stdflate "compress/flate"
	stdgzip "compress/gzip"
	stdzlib "compress/zlib"
	"errors"
	"io"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
)

// bodies is a Protocol that keeps what it is given to decode.
type bodies struct {
	got  []byte
	room int // of the buffer that it came in
	seen bool
}

func (b *bodies) Decode(q *Request) error {
	b.got, b.room, b.seen = bytes.Clone(q.Body), cap(q.Body), true
	return nil
}

func (*bodies) Answer(*Answer) {}

// FuzzUnpack sends any bytes under any coding, and wants what the standard library
// and the plain readers of zstd, Snappy and Brotli unpack them to, within the limits: the
// same bytes, or an answer that says that there are none.
func FuzzUnpack(f *testing.F) {
	names := []string{"", "identity", "gzip", "zstd", "deflate", "snappy", "br"}
	for _, p := range packers {
		for i := range names {
			f.Add([]byte(p.pack("{\"msg\":\"x\"}\n{}")), byte(i))
		}
		f.Add([]byte(p.pack(strings.Repeat("0123456789", 5000))), byte(2))
	}
	f.Add([]byte(zstdFrame(0, 2)), byte(3))
	f.Add([]byte(gzipped("a", "b")+"\x00"), byte(2))
	const maxUnpacked = 1 << 17
	f.Fuzz(func(t *testing.T, body []byte, kind byte) {
		if len(body) == 0 || len(body) > 3 && body[0] == 0x1f && body[3]&0xe0 != 0 {
			return // RFC 1952 wants a gzip with reserved flags refused; the standard library takes it
		}
		name := names[int(kind)%len(names)]
		b := new(bodies)
		r := New(storesNothing, Options{MaxBody: 1 << 16, MaxUnpacked: maxUnpacked})
		req := httptest.NewRequest("POST", "/", bytes.NewReader(body))
		req.Header.Set("Content-Encoding", name)
		res := httptest.NewRecorder()
		r.Handler(b).ServeHTTP(res, req)
		want, err := plainUnpack(body, name, maxUnpacked)
		switch {
		case r.Stats().InFlight != 0:
			t.Fatalf("%d bytes of the budget are kept", r.Stats().InFlight)
		case len(body) > 1<<16:
			if b.seen || res.Code != 413 {
				t.Fatalf("%d for %d bytes", res.Code, len(body))
			}
		case b.seen && (err != nil || !bytes.Equal(b.got, want) || res.Code != 200):
			t.Fatalf("%q in %q became %q, want %q, %v", body, name, b.got, want, err)
		case !b.seen && (err == nil || res.Code != 400 && res.Code != 413):
			t.Fatalf("%d for %q in %q, which is %q", res.Code, body, name, want)
		case !b.seen && errors.Is(err, errUnpacked) && res.Code != 413 && !oversized(body):
			t.Fatalf("%d for %q in %q: %v", res.Code, body, name, err)
		case b.room > keepBuffer:
			t.Fatalf("%d bytes came in a buffer of %d", len(b.got), b.room)
		}
	})
}

// oversized reports whether body may have a block of zstd that is larger than any
// may be: the stream reader sees only that there is too much.
func oversized(body []byte) bool { return bytes.HasPrefix(body, []byte("\x28\xb5\x2f\xfd")) }

var errUnpacked = errors.New("over the limit")

// plainUnpack unpacks body, which is packed as its beginning says or else by name.
func plainUnpack(body []byte, name string, limit int) ([]byte, error) {
	begins := func(magic string) bool { return strings.HasPrefix(string(body), magic) }
	from := bufio.NewReader(bytes.NewReader(body))
	var src io.Reader
	var err error
	anything := name == "deflate" || name == "br"
	framed := !anything && begins("\xff\x06\x00\x00sNaPpY")
	isGzip, isZstd := name == "gzip", name == "zstd"
	if name != "snappy" && !anything && !framed {
		isGzip = begins("\x1f\x8b") || isGzip && !begins("\x28\xb5\x2f\xfd")
		isZstd = begins("\x28\xb5\x2f\xfd") || isZstd
	}
	switch {
	case framed:
		src = snappy.NewReader(from)
	case isGzip:
		src, err = stdgzip.NewReader(from)
	case isZstd:
		z, newErr := zstd.NewReader(from, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(8<<20))
		if err = newErr; err == nil {
			defer z.Close()
		}
		src = z
	case name == "deflate":
		if src, err = stdzlib.NewReader(from); err != nil {
			from.Reset(bytes.NewReader(body))
			src, err = stdflate.NewReader(from), nil
		}
	case name == "br":
		src = brotli.NewReader(from)
	case name == "snappy":
		n, err := snappy.DecodedLen(body)
		if err != nil {
			return nil, err
		}
		if n > limit {
			return nil, errUnpacked
		}
		if n/32 > len(body) { // which no copies come to
			return nil, io.ErrUnexpectedEOF
		}
		return snappy.Decode(nil, body)
	default:
		src = from
	}
	if err != nil {
		return nil, err
	}
	out, err := io.ReadAll(io.LimitReader(src, int64(limit)+1))
	if len(out) > limit {
		return nil, errUnpacked
	}
	if err == nil && name == "deflate" {
		if _, more := from.Peek(1); more == nil {
			return nil, errors.New("bytes after the end")
		}
	}
	return out, err
}

package receiver

import (
	"bytes"
	stdflate "compress/flate"
	stdzlib "compress/zlib"
	"encoding/binary"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"

	"github.com/rollway/rollway/internal/testkit"
)

// packers by what a test calls them; each with the header that goes with it.
var packers = []struct {
	name, header string
	magic        bool // it needs no header
	pack         func(string) string
}{
	{"gzip", "gzip", true, func(s string) string { return gzipped(s) }},
	{"zstd in a stream", "zstd", true, func(s string) string {
		return written(func(w io.Writer) (io.WriteCloser, error) { return zstd.NewWriter(w) }, s)
	}},
	{"zstd in one segment", "zstd", true, func(s string) string {
		e, _ := zstd.NewWriter(nil, zstd.WithSingleSegment(true))
		return string(e.EncodeAll([]byte(s), nil))
	}},
	{"zstd in frames", "zstd", true, func(s string) string {
		e, _ := zstd.NewWriter(nil)
		half := len(s) / 2
		return string(e.EncodeAll([]byte(s[half:]), e.EncodeAll([]byte(s[:half]), nil)))
	}},
	{"zstd behind a frame to skip", "zstd", false, func(s string) string {
		e, _ := zstd.NewWriter(nil)
		return "\x5a\x2a\x4d\x18\x03\x00\x00\x00xyz" + string(e.EncodeAll([]byte(s), nil))
	}},
	{"zlib", "deflate", false, func(s string) string {
		return written(func(w io.Writer) (io.WriteCloser, error) { return stdzlib.NewWriter(w), nil }, s)
	}},
	{"zlib by that name", "zlib", false, func(s string) string {
		return written(func(w io.Writer) (io.WriteCloser, error) { return stdzlib.NewWriterLevel(w, 1) }, s)
	}},
	{"raw deflate", "deflate", false, rawDeflate},
	{"snappy blocks", "snappy", false, func(s string) string { return string(snappy.Encode(nil, []byte(s))) }},
	{"snappy framed", "snappy", true, func(s string) string {
		return written(func(w io.Writer) (io.WriteCloser, error) { return snappy.NewBufferedWriter(w), nil }, s)
	}},
	{"brotli", "br", false, func(s string) string {
		return written(func(w io.Writer) (io.WriteCloser, error) { return brotli.NewWriterLevel(w, 4), nil }, s)
	}},
	{"snappy framed by that name", "x-snappy-framed", true, func(s string) string {
		return written(func(w io.Writer) (io.WriteCloser, error) { return snappy.NewBufferedWriter(w), nil }, s)
	}},
}

func rawDeflate(s string) string {
	return written(func(w io.Writer) (io.WriteCloser, error) { return stdflate.NewWriter(w, 6) }, s)
}

func written(open func(io.Writer) (io.WriteCloser, error), s string) string {
	var b bytes.Buffer
	w, err := open(&b)
	if err != nil {
		panic(err)
	}
	io.WriteString(w, s)
	w.Close()
	return b.String()
}

func TestCodings(t *testing.T) {
	m := &memory{}
	url := newServer(t, newReceiver(t, m, Options{})).URL
	const small, large = 3, 30_000 // events; the latter is over 1 MiB
	for _, p := range packers {
		for _, events := range []int{small, large} {
			body := p.pack(strings.Repeat(`{"msg":"the same line again and again"}`+"\n", events))
			if rep := post(t, url, strings.NewReader(body), "Content-Encoding", p.header); rep.Code != 200 || rep.Accepted != events {
				t.Errorf("%s, %d events: %d accepted, %+v", p.name, events, rep.Accepted, rep.Error)
			}
			rep := post(t, url, strings.NewReader(body))
			if p.magic && (rep.Code != 200 || rep.Accepted != events) || !p.magic && rep.Code != 400 {
				t.Errorf("%s, %d events without the header: %+v", p.name, events, rep.Error)
			}
			for _, cut := range []int{1, 5, len(body) / 2, len(body) - 1} {
				if p.name == "zstd in frames" && cut == len(body)/2 {
					continue // a whole frame
				}
				if rep := post(t, url, strings.NewReader(body[:cut]), "Content-Encoding", p.header); rep.Code != 400 || !strings.Contains(rep.Error, "the body is") && !strings.Contains(rep.Error, "but the body is not") {
					t.Errorf("%s, %d of %d bytes: %+v", p.name, cut, len(body), rep)
				}
			}
			if rep := post(t, url, strings.NewReader(body+"x"), "Content-Encoding", p.header); rep.Code != 400 {
				t.Errorf("%s and one byte: %+v", p.name, rep)
			}
		}
		if rep := post(t, url, strings.NewReader(p.pack("")), "Content-Encoding", p.header); rep.Code != 400 || !strings.Contains(rep.Error, "the body is empty") {
			t.Errorf("nothing in %s: %+v", p.name, rep)
		}
		if rep := post(t, url, strings.NewReader("{}"), "Content-Encoding", p.header); rep.Code != 400 || rep.RejectedTotal != 0 {
			t.Errorf("%s announced, none sent: %+v", p.name, rep)
		}
	}
}

// zstdFrame returns a frame of a window of 1 KiB << log whose blocks each unpack
// to 128 KiB of one byte.
func zstdFrame(log byte, blocks int) string {
	b := []byte(zstdMagic + string([]byte{0, log << 3}))
	for i := range blocks {
		head := uint32(128<<10)<<3 | 1<<1
		if i == blocks-1 {
			head |= 1
		}
		b = append(b, byte(head), byte(head>>8), byte(head>>16), '\n')
	}
	return string(b)
}

// TestBombsOfEveryCoding sends what unpacks to far more than is allowed and
// checks that it is found out before memory is taken.
func TestBombsOfEveryCoding(t *testing.T) {
	const unpacked = 1 << 20
	r := newReceiver(t, &memory{}, Options{MaxUnpacked: unpacked, MaxBody: 1 << 20})
	text := strings.Repeat("\n", 4<<20)
	bombs := map[string][2]string{
		"snappy that lies about its length": {"snappy", string(binary.AppendUvarint(nil, 1<<32-1)) + "abc"},
		"a little over, in snappy":          {"snappy", string(snappy.Encode(nil, []byte(text[:unpacked+1])))},
		"zstd of repeated bytes":            {"zstd", zstdFrame(7, 1000)},
		"zstd that says its size":           {"zstd", zstdMagic + "\xe0\x00\x00\x00\x00\x00\x00\x00\x10" + "\x01\x00\x00"},
		"zstd with a window of 1 GiB":       {"zstd", zstdFrame(20, 1)},
	}
	for _, p := range packers {
		if p.header != "snappy" || p.magic { // as blocks it would be over MaxBody
			bombs["4 MiB in "+p.name] = [2]string{p.header, p.pack(text)}
		}
	}
	for name, bomb := range bombs {
		if len(bomb[1]) > 2<<20 {
			t.Fatalf("%s is of %d bytes", name, len(bomb[1]))
		}
		send := func() *httptest.ResponseRecorder {
			req := httptest.NewRequest("POST", "/", strings.NewReader(bomb[1]))
			req.Header.Set("Content-Encoding", bomb[0])
			res := httptest.NewRecorder()
			r.ServeHTTP(res, req)
			return res
		}
		res := send()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		send()
		runtime.ReadMemStats(&after)
		if res.Code != 413 && (res.Code != 400 || !strings.Contains(name, "says") && !strings.Contains(res.Body.String(), "window")) {
			t.Errorf("%s: %d %s", name, res.Code, res.Body)
		}
		if got := after.TotalAlloc - before.TotalAlloc; got > 16<<20 {
			t.Errorf("%s: %d MiB were allocated", name, got>>20)
		}
	}
}

// A body that says at its beginning that it is too large is refused before the rest of it is
// read.
func TestAnnouncedTooLarge(t *testing.T) {
	r := newReceiver(t, &memory{}, Options{MaxUnpacked: 1000, MaxBody: 2000})
	for name, c := range map[string]struct {
		length       int64
		coding, head string
		handler      http.Handler
	}{
		"a length over MaxBody":      {2001, "", "", r},
		"a length over MaxUnpacked":  {1001, "", "{", r},
		"snappy":                     {100, "snappy", "\xe9\x07\xf0\x10\x11", r},
		"snappy, of any length":      {-1, "snappy", "\xe9\x07\xf0\x10\x11", r},
		"zstd":                       {100, "zstd", zstdMagic + "\xe0\xe9\x03\x00\x00\x00\x00\x00\x00\x10", r},
		"a message over MaxBody":     {-1, "", "\x00\x00\x00\x07\xd1", r.GRPC(plain{})},
		"a message over MaxUnpacked": {-1, "", "\x00\x00\x00\x03\xe9{", r.GRPC(plain{})},
		"a message in snappy":        {-1, "snappy", "\x01\x00\x00\x00\x64\xe9\x07\xf0\x10\x11", r.GRPC(plain{})},
	} {
		rest := &endless{}
		req := httptest.NewRequest("POST", "/", io.MultiReader(strings.NewReader(c.head), rest))
		req.ContentLength = c.length
		req.Header.Set("Content-Encoding", c.coding)
		req.Header.Set("Grpc-Encoding", c.coding)
		before := r.Stats().Requests[http.StatusRequestEntityTooLarge]
		c.handler.ServeHTTP(httptest.NewRecorder(), req)
		// A peek of the header of zstd may take one read more.
		if after := r.Stats().Requests[http.StatusRequestEntityTooLarge]; after != before+1 || rest.n.Load() > peekBuffer {
			t.Errorf("%s: %d refused, %d bytes of the rest were read", name, after-before, rest.n.Load())
		}
	}
}

// TestBudgetIsTakenBeforeUnpacking holds nearly all of the budget.
func TestBudgetIsTakenBeforeUnpacking(t *testing.T) {
	m := &memory{}
	r := newReceiver(t, m, Options{MaxUnpacked: 4 << 20})
	url := newServer(t, r).URL
	text, other := strings.Repeat("{}\n", 1<<20), r.opts.Admission.Named("other", 1)
	for _, p := range packers {
		body := p.pack(text)
		held := r.opts.InFlight - 3<<20
		r.memory.Acquire(other, held)
		if rep := post(t, url, strings.NewReader(body), "Content-Encoding", p.header); rep.Code != 503 || rep.Header.Get("Retry-After") != "1" {
			t.Errorf("%s: %d %s", p.name, rep.Code, rep.Error)
		}
		r.memory.Release(other, held)
	}
	if m.count() != 0 {
		t.Errorf("%d events stored", m.count())
	}
}

// TestUnpackingAllocatesNothing but with the first request.
func TestUnpackingAllocatesNothing(t *testing.T) {
	testkit.NoRace(t, "the race detector allocates")
	r := newReceiver(t, &memory{}, Options{})
	text := strings.Repeat("{}\n", 1000)
	for _, p := range packers {
		if p.name == "brotli" {
			continue // see unpackBrotli
		}
		body := p.pack(text)
		w := r.get()
		req := &http.Request{ContentLength: -1}
		src := strings.NewReader("")
		req.Body = io.NopCloser(src)
		declared := mustDeclare(p.header)
		allocs := testing.AllocsPerRun(20, func() {
			src.Reset(body)
			if f := r.readBody(w, req, declared, ""); f.code != 0 || string(w.buf) != text {
				t.Fatalf("%s: %+v", p.name, f)
			}
			r.release(w)
			w.reset()
		})
		if allocs > 0 {
			t.Errorf("%s: %v allocations", p.name, allocs)
		}
	}
}

func mustDeclare(header string) string {
	name, f := declared(http.Header{"Content-Encoding": {header}}, contentEncoding)
	if f.code != 0 {
		panic(f.text)
	}
	return name
}

// TestMeasureZstd against what a decoder makes of it.
func TestMeasureZstd(t *testing.T) {
	for _, size := range []int{0, 1, 100, 1 << 10, 128 << 10, 128<<10 + 1, 3 << 20} {
		text := strings.Repeat("0123456789abcdef\n", size/17+1)[:size]
		for _, p := range packers {
			if p.header != "zstd" {
				continue
			}
			got, err := measureZstd([]byte(p.pack(text)))
			if err != nil || got.least > int64(size) || got.most < int64(size) || got.window > maxWindow {
				t.Errorf("%s of %d bytes: %+v, %v", p.name, size, got, err)
			}
		}
	}
}

// Package decodetest tests one protocol alone: what it makes of bodies, and what it
// answers with a backend in memory. Tests inside a protocol's package can use it: unlike
// package receivertest it runs no collector.
package decodetest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rollway/rollway/collector/normalize"
	"github.com/rollway/rollway/collector/receiver"
)

// A Server is a Receiver with a backend in memory. One goroutine uses it, and Stored while it serves.
type Server struct {
	*receiver.Receiver
	mu       sync.Mutex               // held by Store
	Lines    []string                 // that are stored
	Fail     error                    // that Store returns, if it is set; nothing is stored then, unless it is receiver.ErrNotSynced
	Options  receiver.StoreOptions    // of the batch that was stored last
	OnReject func(b *normalize.Batch) // gets the batches in which events were rejected; nil: nobody does
}

// NewServer returns one with the options as change leaves them. At the end of
// the test each event must be accounted for.
func NewServer(t testing.TB, change func(*receiver.Options)) *Server {
	s := new(Server)
	o := receiver.Options{KeepRejected: 1 << 20}
	if change != nil {
		change(&o)
	}
	s.Receiver = receiver.New(backend{s}, o)
	t.Cleanup(func() {
		st := s.Stats()
		if st.Received != st.Stored+st.RejectedTotal()+st.IgnoredTotal()+st.Failed || int(st.Stored) != len(s.Lines) || st.InFlight != 0 {
			t.Errorf("%+v with %d lines", st, len(s.Lines))
		}
	})
	return s
}

// Stored returns Lines while there are requests.
func (s *Server) Stored() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.Lines)
}

// backend is what a Server is to its Receiver.
type backend struct{ *Server }

func (s backend) Store(_ context.Context, b *normalize.Batch, o receiver.StoreOptions) (receiver.Stored, error) {
	if s.Fail != nil && s.Fail != receiver.ErrNotSynced {
		return receiver.Stored{}, s.Fail
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Options = o
	stored := receiver.Stored{First: uint64(len(s.Lines))}
	for line := range strings.Lines(string(b.AppendTo(nil))) {
		s.Lines = append(s.Lines, strings.TrimSuffix(line, "\n"))
	}
	return stored, s.Fail
}

func (backend) Policy() *receiver.Policy { return new(receiver.Policy) }

func (s backend) Reject(_ receiver.Origin, b *normalize.Batch) {
	if s.OnReject != nil {
		s.OnReject(b)
	}
}

// Send has h answer a POST. Header lists names and values in turn.
func Send(h http.Handler, path, body string, header ...string) *httptest.ResponseRecorder {
	req := httptest.NewRequest("POST", path, strings.NewReader(body))
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, req)
	return rec
}

// CheckSlowBody sends p the beginning of a body that does not go on. The answer must
// be 503 with Retry-After, to send it again, and its body begin with text.
func CheckSlowBody(t testing.TB, p receiver.Protocol, contentType, begin, text string) {
	t.Helper()
	s := NewServer(t, func(o *receiver.Options) { o.BodyTimeout = 50 * time.Millisecond })
	server := httptest.NewServer(s.Handler(p))
	defer server.Close()
	body, end := io.Pipe()
	defer end.Close()
	go io.WriteString(end, begin)
	resp, err := http.Post(server.URL, contentType, body)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, _ := io.ReadAll(resp.Body)
	if resp.StatusCode != http.StatusServiceUnavailable || resp.Header.Get("Retry-After") != "1" || !strings.HasPrefix(string(answer), text) {
		t.Errorf("%s %v %s", resp.Status, resp.Header, answer)
	}
}

// Decode runs p's Decode alone, at a fixed time, and returns the note it made.
func Decode(p receiver.Protocol, norm *normalize.Normalizer, batch *normalize.Batch, req *http.Request, body, note []byte) ([]byte, error) {
	q := receiver.Request{HTTP: req, Body: body, Received: time.Unix(1779972000, 0), Norm: norm, Batch: batch, Note: note}
	err := p.Decode(&q)
	return q.Note, err
}

// Lines returns the lines that p makes of a body, and their batch. The body is
// overwritten before, so that nothing may point there.
func Lines(t testing.TB, p receiver.Protocol, contentType, body string, received time.Time) ([]string, *normalize.Batch) {
	t.Helper()
	req := httptest.NewRequest("POST", "/", nil)
	req.Header.Set("Content-Type", contentType)
	b := new(normalize.Batch)
	q := &receiver.Request{HTTP: req, Body: []byte(body), Received: received, Norm: normalize.New(normalize.Limits{}), Batch: b}
	if err := p.Decode(q); err != nil {
		t.Fatalf("%v in %q", err, body)
	}
	for i := range q.Body {
		q.Body[i] = 0xDB
	}
	return strings.Split(strings.TrimSuffix(string(b.AppendTo(nil)), "\n"), "\n"), b
}

// FuzzLimits are what each body is decoded with: the defaults, and limits that
// small bodies reach.
func FuzzLimits() []normalize.Limits {
	return []normalize.Limits{{}, {MaxEventBytes: 300, MaxDepth: 6, MaxFields: 8, MaxKeyBytes: 20, MaxValueBytes: 100, MaxEvents: 5, MaxRejections: 3}}
}

// Recorded returns what is in the files of testdata whose names pattern matches.
func Recorded(f *testing.F, pattern string) [][]byte {
	f.Helper()
	names, err := filepath.Glob(filepath.Join("testdata", pattern))
	if err != nil || len(names) == 0 {
		f.Fatalf("no %s in testdata (%v)", pattern, err)
	}
	var all [][]byte
	for _, name := range names {
		b, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		all = append(all, b)
	}
	return all
}

// Requests reads a recorded file. Bodies are as they were sent.
func Requests(t testing.TB, file string) (list []*http.Request) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return ReadRequests(t, b)
}

// ReadRequests is Requests for the contents of a file.
func ReadRequests(t testing.TB, recorded []byte) (list []*http.Request) {
	t.Helper()
	for r := bufio.NewReader(bytes.NewReader(recorded)); ; {
		req, err := http.ReadRequest(r)
		if err == io.EOF {
			return list
		}
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(req.Body)
		if err != nil {
			t.Fatal(err)
		}
		req.Body = io.NopCloser(bytes.NewReader(body))
		list = append(list, req)
	}
}

// AddRecorded adds the bodies of the first requests in testdata/*.request.
func AddRecorded(f *testing.F) {
	for _, b := range Recorded(f, "*.request") {
		f.Add(b[bytes.Index(b, []byte("\r\n\r\n"))+4:])
	}
}

// CheckLines fails unless the batch holds whole lines of JSON, as many as it
// counts.
func CheckLines(t testing.TB, b *normalize.Batch) {
	t.Helper()
	lines := b.AppendTo(nil)
	if bytes.Count(lines, []byte("\n")) != b.Records {
		t.Fatalf("%d records in %q", b.Records, lines)
	}
	for line := range bytes.Lines(lines) {
		if !json.Valid(line) {
			t.Fatalf("%q", line)
		}
	}
}

// Benchmark has p decode a body of so many events again and again.
func Benchmark(b *testing.B, p receiver.Protocol, contentType, body string, events int) {
	norm, batch := normalize.New(normalize.Limits{}), new(normalize.Batch)
	req := httptest.NewRequest("POST", "/", nil)
	req.Header.Set("Content-Type", contentType)
	text := []byte(body)
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	var note []byte
	var err error
	for b.Loop() {
		batch.Reset()
		if note, err = Decode(p, norm, batch, req, text, note[:0]); err != nil || batch.Records != events {
			b.Fatal(err, batch.Records)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(events), "ns/event")
}

// Pieces has a session decode text that comes in pieces, cut at each of cuts, and then its
// end. It returns what is not decoded.
func Pieces(s receiver.Session, c *receiver.Chunk, text string, cuts ...int) (left []byte, err error) {
	at := 0
	for _, cut := range append(cuts, len(text), len(text)) {
		cut = min(max(cut, at), len(text))
		left, c.End = append(left, text[at:cut]...), at == len(text)
		c.Data, at = bytes.Clone(left), cut
		n, err := s.Decode(c)
		if left = left[n:]; err != nil {
			return left, err
		}
	}
	return left, nil
}

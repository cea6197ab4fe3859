package receiver

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rollway/rollway/collector/normalize"
)

var errOther = errors.New("broken disk")

// memory is a backend that can fail.
type memory struct {
	mu       sync.Mutex
	lines    []string
	fail     func(*normalize.Batch) error // nil: never
	policy   Policy
	rejected func(*normalize.Batch)    // gets what Reject gets; nil: nobody does
	asked    func(StoreOptions) Stored // gets what Store gets, and says the rest of what it returns; nil: nobody does
}

func (m *memory) Policy() *Policy { return &m.policy }

func (m *memory) Reject(_ Origin, b *normalize.Batch) {
	if m.rejected != nil {
		m.rejected(b)
	}
}

func (m *memory) Store(_ context.Context, b *normalize.Batch, o StoreOptions) (s Stored, err error) {
	m.mu.Lock()
	fail := m.fail
	m.mu.Unlock()
	if m.asked != nil {
		s = m.asked(o)
	}
	if fail != nil {
		err = fail(b)
	}
	if err == nil || err == ErrNotSynced {
		m.mu.Lock()
		defer m.mu.Unlock()
		s.First = uint64(len(m.lines))
		for line := range strings.Lines(string(b.AppendTo(nil))) {
			m.lines = append(m.lines, strings.TrimSuffix(line, "\n"))
		}
	}
	return s, err
}

func (m *memory) failWith(f func(*normalize.Batch) error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.fail = f
}

func (m *memory) count() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.lines)
}

// newReceiver returns a receiver over m whose ledger is checked at the end.
func newReceiver(t testing.TB, m *memory, o Options) *Receiver {
	r := New(m, o)
	t.Cleanup(func() { checkLedger(t, r, m) })
	return r
}

// checkLedger checks, once nothing is under way, that each event is accounted
// for and no byte of the budget is kept.
func checkLedger(t testing.TB, r *Receiver, m *memory) {
	t.Helper()
	var s Stats
	// The handler counts before it answers, but gives back after.
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if s = r.Stats(); s.InFlight == 0 && s.Connections == 0 {
			break
		}
	}
	if s.Received != s.Stored+s.RejectedTotal()+s.Failed {
		t.Errorf("received %d, but stored %d + rejected %v + failed %d", s.Received, s.Stored, s.Rejected, s.Failed)
	}
	if s.Stored != uint64(m.count()) {
		t.Errorf("%d events are counted as stored, %d are", s.Stored, m.count())
	}
	if used := r.streams.Used(); used != 0 {
		t.Errorf("%d bytes of what connections share are kept", used)
	}
	if s.InFlight != 0 || s.Connections != 0 {
		t.Errorf("%d bytes are still in flight, %d connections open", s.InFlight, s.Connections)
	}
	for reason := range s.Rejected {
		if !strings.Contains(strings.Join(Reasons(), " "), reason) {
			t.Errorf("unknown reason %q", reason)
		}
	}
}

func newServer(t testing.TB, r *Receiver) *httptest.Server {
	server := httptest.NewServer(r)
	t.Cleanup(server.Close)
	return server
}

// reply is an answer as a client sees it.
type reply struct {
	Code        int
	Header      http.Header
	Error       string
	Accepted    int
	FirstOffset *uint64 `json:"first_offset"`
	Rejected    []struct {
		Index, Line    int
		Offset         int64
		Reason, Detail string
	}
	RejectedTotal int `json:"rejected_total"`
}

func parseReply(t testing.TB, res *http.Response) reply {
	t.Helper()
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	var rep reply
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&rep); err != nil {
		t.Fatalf("answer %q: %v", body, err)
	}
	rep.Code, rep.Header = res.StatusCode, res.Header
	if got := res.Header.Get("Content-Type"); got != "application/json" {
		t.Errorf("Content-Type %q", got)
	}
	if (rep.Error == "") != (rep.Code == 200) {
		t.Errorf("%d with error %q", rep.Code, rep.Error)
	}
	if len(body) > 64<<10 {
		t.Errorf("answer of %d bytes", len(body))
	}
	return rep
}

func post(t testing.TB, url string, body io.Reader, header ...string) reply {
	t.Helper()
	req, err := http.NewRequest("POST", url, body)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	return parseReply(t, res)
}

func gzipped(parts ...string) string {
	var b bytes.Buffer
	for _, p := range parts {
		z := gzip.NewWriter(&b)
		io.WriteString(z, p)
		z.Close()
	}
	return b.String()
}

func TestAnswers(t *testing.T) {
	m := &memory{}
	r := newReceiver(t, m, Options{MaxBody: 10_000, MaxUnpacked: 50_000})
	url := newServer(t, r).URL
	packed := gzipped(`{"a":1}`)
	for _, c := range []struct {
		name, body string
		header     []string
		code       int
		accepted   int
		rejected   int
		text       string // in error
	}{
		{"object", `{"msg":"x"}`, nil, 200, 1, 0, ""},
		{"curl's Content-Type", `{"msg":"x"}`, []string{"Content-Type", "application/x-www-form-urlencoded"}, 200, 1, 0, ""},
		{"array", `[{},{}]`, nil, 200, 2, 0, ""},
		{"empty array", `[]`, nil, 200, 0, 0, ""},
		{"NDJSON with a bad line", "{}\nbad\n{}\n", nil, 200, 2, 1, ""},
		{"gzip", packed, []string{"Content-Encoding", "gzip"}, 200, 1, 0, ""},
		{"GZIP", packed, []string{"Content-Encoding", " X-GZIP"}, 200, 1, 0, ""},
		{"gzip without the header", packed, nil, 200, 1, 0, ""},
		{"gzip in members", gzipped("{}\n{\"a\":", "1}\n", "{}"), []string{"Content-Encoding", "gzip"}, 200, 3, 0, ""},
		{"identity", `{}`, []string{"Content-Encoding", "identity"}, 200, 1, 0, ""},
		{"empty", "", nil, 400, 0, 0, `such as {"level":"info","msg":"hello"}`},
		{"blank", " \n", nil, 400, 0, 0, "the body is empty"},
		{"empty, gzip announced", "", []string{"Content-Encoding", "gzip"}, 400, 0, 0, "the body is empty"},
		{"one byte", "x", nil, 400, 0, 1, "line 1, column 1"},
		{"nothing in gzip", gzipped(""), nil, 400, 0, 0, "the body is empty"},
		{"not JSON", "hello", nil, 400, 0, 1, "not valid JSON at line 1"},
		{"broken array", `[{},{]`, nil, 400, 0, 1, "nothing was stored"},
		{"all bad", "1\n2\n", nil, 400, 0, 2, "event 0 is a number, expected an object"},
		{"bad UTF-8", "{\"a\":\"\xff\"}", nil, 200, 1, 0, ""},
		{"gzip announced, none sent", `{}`, []string{"Content-Encoding", "gzip"}, 400, 0, 0, "does not start with 1f 8b"},
		{"gzip cut off", packed[:len(packed)-9], nil, 400, 0, 0, "it ends early"},
		{"gzip cut off in its header", packed[:5], nil, 400, 0, 0, "it ends early"},
		{"gzip with a wrong sum", packed[:len(packed)-8] + "12345678", nil, 400, 0, 0, "checksum"},
		{"gzip with garbage behind", packed + "garbage behind", nil, 400, 0, 0, "not valid gzip"},
		{"another coding", "x", []string{"Content-Encoding", "compress"}, 415, 0, 0, "supported are gzip, zstd, deflate, snappy, br and identity"},
		{"twice packed", "x", []string{"Content-Encoding", "gzip, gzip"}, 415, 0, 0, "gzip, gzip"},
		{"too large", strings.Repeat("x", 10_001), nil, 413, 0, 0, "over the limit of 10000 bytes"},
		{"too large unpacked", gzipped(strings.Repeat("{}\n", 20_000)), nil, 413, 0, 0, "more than 50000 bytes"},
		{"another origin's page", `{}`, []string{"Origin", "http://evil.example"}, 403, 0, 0, "origin"},
		{"another site's page", `{}`, []string{"Sec-Fetch-Site", "cross-site"}, 403, 0, 0, "origin"},
		{"own page", `{}`, []string{"Origin", url}, 200, 1, 0, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := m.count()
			rep := post(t, url, strings.NewReader(c.body), c.header...)
			if rep.Code != c.code || rep.Accepted != c.accepted || rep.RejectedTotal != c.rejected ||
				len(rep.Rejected) != c.rejected || !strings.Contains(rep.Error, c.text) {
				t.Errorf("got %+v", rep)
			}
			if got := m.count() - before; got != c.accepted {
				t.Errorf("%d stored", got)
			}
			if c.accepted > 0 && (rep.FirstOffset == nil || *rep.FirstOffset != uint64(before)) {
				t.Errorf("first_offset %v, want %d", rep.FirstOffset, before)
			}
		})
	}
	res, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	if rep := parseReply(t, res); rep.Code != 405 || rep.Header.Get("Allow") != "POST" {
		t.Errorf("GET: %+v", rep)
	}
	s := r.Stats()
	if s.Requests[405] != 1 || s.Requests[403] != 2 || s.Requests[415] != 2 || s.Requests[413] != 2 || s.Rejected[normalize.ReasonSyntax] != 4 {
		t.Errorf("stats %+v", s)
	}
}

func TestRejectionsAreListedUpToALimit(t *testing.T) {
	r := newReceiver(t, &memory{}, Options{})
	rep := post(t, newServer(t, r).URL, strings.NewReader("{}\n"+strings.Repeat("bad\n", 5000)))
	if rep.Code != 200 || rep.Accepted != 1 || rep.RejectedTotal != 5000 || len(rep.Rejected) != 100 {
		t.Errorf("%d, accepted %d, rejected %d, listed %d", rep.Code, rep.Accepted, rep.RejectedTotal, len(rep.Rejected))
	}
	if got := rep.Rejected[99]; got.Index != 100 || got.Line != 101 || got.Offset != 3+99*4 || got.Reason != normalize.ReasonSyntax {
		t.Errorf("%+v", got)
	}
}

// Fluent Bit has room for 4096 bytes of an answer, its header included.
func TestAnswersToFluentBitAreShort(t *testing.T) {
	url := newServer(t, newReceiver(t, &memory{}, Options{})).URL
	for _, good := range []string{"{}\n", ""} {
		req, err := http.NewRequest("POST", url, strings.NewReader(good+strings.Repeat("bad\n", 200)))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("User-Agent", "Fluent-Bit")
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		whole, err := httputil.DumpResponse(res, true)
		if err != nil || len(whole) >= 4096 {
			t.Errorf("%d bytes, %v", len(whole), err)
		}
		if rep := parseReply(t, res); rep.RejectedTotal != 200 || len(rep.Rejected) < 10 || rep.Rejected[9].Index != 9+len(good)/3 {
			t.Errorf("rejected %d, listed %d: %+v", rep.RejectedTotal, len(rep.Rejected), rep.Rejected)
		}
	}
}

package journald

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"context"
	"encoding/binary"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"

	"github.com/rollway/rollway/collector/normalize"
	"github.com/rollway/rollway/collector/pool"
	"github.com/rollway/rollway/collector/receiver"
	"github.com/rollway/rollway/collector/receiver/decodetest"
	"github.com/rollway/rollway/internal/testkit"
)

// sized is a field whose value may be anything.
func sized(name, value string) string {
	return name + "\n" + string(binary.LittleEndian.AppendUint64(nil, uint64(len(value)))) + value + "\n"
}

// entry is what journalctl -o export prints of a service's line.
const entry = `__CURSOR=s=1;i=2
__REALTIME_TIMESTAMP=1779972000118000
__MONOTONIC_TIMESTAMP=5
_BOOT_ID=b7
PRIORITY=3
SYSLOG_FACILITY=3
SYSLOG_IDENTIFIER=sshd
_PID=812
_HOSTNAME=web-1
_SYSTEMD_UNIT=ssh.service
MESSAGE=disk full: é

`

const line = `{"time":"2026-05-28T12:40:00.118000000Z","level":"ERROR","msg":"disk full: é","service":"sshd","attrs":{"_BOOT_ID":"b7","facility":"daemon","procid":"812","host":"web-1","_SYSTEMD_UNIT":"ssh.service"}}` + "\n"

const stamp = `{"time":"2026-05-28T12:40:00.000000000Z","level":"INFO",`

// mostBytes is what an entry may have in these tests.
const mostBytes = 1000

var received = time.Unix(1779972000, 0)

// send sends text as a body, cut at each of cuts.
func send(t testing.TB, limits normalize.Limits, text string, cuts ...int) (c *receiver.Chunk, left []byte, err error) {
	t.Helper()
	limits.MaxPast, limits.MaxFuture = -1, -1
	c = &receiver.Chunk{Received: received, Norm: normalize.New(limits), Batch: new(normalize.Batch)}
	c.Batch.KeepDeadLetters(1 << 20)
	left, err = decodetest.Pieces(&session{most: mostBytes}, c, text, cuts...)
	return c, left, err
}

func lines(b *normalize.Batch) string { return string(b.AppendTo(nil)) }

func TestEntries(t *testing.T) {
	long := strings.Repeat("x", 3000)
	for _, tt := range []struct{ name, body, want, rejected string }{
		{"an entry", entry, line, ""},
		{"several", "\n" + entry + "\n\n" + entry, line + line, ""},
		{"a message of lines", sized("MESSAGE", "a\nb") + "\n", stamp + `"msg":"a\nb"}` + "\n", ""},
		{"a message in Latin-1", sized("MESSAGE", "caf\xe9s") + "\n", stamp + `"msg":"caf` + "\ufffd" + `s"}` + "\n", ""},
		{"bytes", "MESSAGE=m\n" + sized("DATA", "\x00\xff\n") + "\n", stamp + `"msg":"m","attrs":{"DATA":"AP8K"}}` + "\n", ""},
		{"nothing in a value", "MESSAGE=\nA=\n" + sized("B", "") + "\n", stamp + `"msg":"","attrs":{"A":"","B":""}}` + "\n", ""},
		{"a unit alone", "_SYSTEMD_UNIT=ssh.service\nMESSAGE=m\n\n", stamp + `"msg":"m","service":"ssh.service","attrs":{"_SYSTEMD_UNIT":"ssh.service"}}` + "\n", ""},
		{"a field that comes twice", "A=1\nA=2\n\n", stamp + `"attrs":{"A":"1","A_2":"2"}}` + "\n", ""},
		{"no level", "PRIORITY=9\nSYSLOG_FACILITY=99\n\n", stamp + `"attrs":{"PRIORITY":"9","facility":"99"}}` + "\n", ""},
		{"a line that is too long", "A=1\nMESSAGE=" + long + "\nB=2\n\n" + entry, line, "too_large"},
		{"a value that is too long", sized("MESSAGE", long) + "B=2\n\n" + entry, line, "too_large"},
		{"fields that are too long", strings.Repeat("A=1234567\n", 300) + "\n" + entry, line, "too_large"},
		{"too long with its end in a value", "A=1\n" + sized("MESSAGE", long+"\n\n") + "\n" + entry, line, "too_large"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for step := range 3 {
				var cuts []int
				for at := 0; step > 0 && at < len(tt.body); at += step {
					cuts = append(cuts, at)
				}
				c, left, err := send(t, normalize.Limits{}, tt.body, cuts...)
				rejected := ""
				for _, r := range c.Batch.Rejected {
					rejected += r.Reason
				}
				if got := lines(c.Batch); err != nil || len(left) > 0 || got != tt.want || rejected != tt.rejected {
					t.Errorf("in pieces of %d: %v, %q is left, %+v\ngot  %swant %s", step, err, left, c.Batch.Rejected, got, tt.want)
				}
			}
		})
	}
	for _, body := range []string{"=x\n\n", "NAME\n12345678\xff\xff\xff", sized("A", "b")[:11] + "cd\n\n", strings.Repeat("N", 300)} {
		if c, left, err := send(t, normalize.Limits{}, entry+body); err == nil || lines(c.Batch) != line || c.Batch.RejectedFor(normalize.ReasonSyntax) != 1 || string(left) != body {
			t.Errorf("%q: %v, %q is left, %s", body, err, left, lines(c.Batch))
		}
	}
	// A body that ends within an entry.
	for n := range entry[:len(entry)-1] {
		if c, left, err := send(t, normalize.Limits{}, entry+entry[:n]); err != nil || lines(c.Batch) != line || string(left) != entry[:n] {
			t.Fatalf("cut at %d: %v, %q is left, %s", n, err, left, lines(c.Batch))
		}
	}
}

// Lines that a service prints belong to the one before if they only continue it, in whatever
// pieces they come, unless the next one has not begun to arrive.
func TestJoined(t *testing.T) {
	of := func(stream, priority, message string) string {
		return "__CURSOR=" + strconv.Itoa(len(message)) + "\nPRIORITY=" + priority + "\n_STREAM_ID=" + stream + "\nMESSAGE=" + message + "\nA=b\n\n"
	}
	body := of("a", "6", "it failed") + of("a", "6", "\tat a.B(C.java:7)") + of("a", "6", "Caused by: x") + // one event
		of("b", "6", " of another") + of("b", "3", " at another level") + of("b", "3", "\tand more") +
		strings.Replace(of("b", "3", " of no _STREAM_ID=b"), "_STREAM_ID=", "_STREAM=", 1) + of("c", "6", " ") + of("c", "6", "\tx") + of("c", "6", "done")
	want := []string{`"it failed\n\tat a.B(C.java:7)\nCaused by: x"`, `" of another"`, `" at another level\n\tand more"`, `" of no _STREAM_ID=b"`, `" "`, `"\tx"`, `"done"`}
	for cut := range body {
		c, left, err := send(t, normalize.Limits{}, body, cut)
		got := strings.Split(strings.TrimSuffix(lines(c.Batch), "\n"), "\n")
		if strings.HasSuffix(body[:cut], "\n\n") && len(got) == len(want)+1 {
			continue // the next line had not begun to arrive
		}
		if err != nil || len(left) > 0 || len(got) != len(want) {
			t.Fatalf("cut at %d: %v, %q is left, %q", cut, err, left, got)
		}
		for i, w := range want {
			if !strings.Contains(got[i], `"msg":`+w) {
				t.Errorf("cut at %d: %s has no message %s", cut, got[i], w)
			}
		}
	}
	if c, _, _ := send(t, normalize.Limits{Text: normalize.Text{Apart: true}}, body); c.Batch.Records != 10 {
		t.Errorf("%d events with joining off", c.Batch.Records)
	}
}

// upload sends a body to a server. Its answer comes once next has returned false.
func post(t *testing.T, s *decodetest.Server, kind string, body io.Reader) (int, string) {
	t.Helper()
	req := httptest.NewRequest("POST", "/upload", body)
	req.Header.Set("Content-Type", kind)
	rec := httptest.NewRecorder()
	s.Handler(Upload).ServeHTTP(rec, req)
	return rec.Code, rec.Body.String()
}

func TestAnswers(t *testing.T) {
	for _, tt := range []struct {
		kind, body string
		code       int
		text       string
		stored     int
	}{
		{mediaType, entry + entry, 202, "OK.\n", 2},
		{mediaType, "", 202, "OK.\n", 0},
		{mediaType, entry + "MESSAGE=x\n", 417, "the body ended inside of an event: its 10 bytes are lost\n", 1},
		{mediaType, entry + "=x\n\n", 400, "the connection is closed: not the journal's export format: expected NAME=value, or NAME, a size and a value\n", 1},
		{"text/plain", entry, 415, "Content-Type: application/vnd.fdo.journal is required\n", 0},
	} {
		s := decodetest.NewServer(t, nil)
		if code, text := post(t, s, tt.kind, strings.NewReader(tt.body)); code != tt.code || text != tt.text || len(s.Lines) != tt.stored {
			t.Errorf("%q: %d %q, %d stored", tt.body, code, text, len(s.Lines))
		}
	}
}

// packers are the codings that a body may have, by Content-Encoding.
var packers = map[string]func(w io.Writer) flusher{
	"gzip":            func(w io.Writer) flusher { return gzip.NewWriter(w) },
	"deflate":         func(w io.Writer) flusher { return zlib.NewWriter(w) },
	"zstd":            func(w io.Writer) flusher { z, _ := zstd.NewWriter(w); return z },
	"br":              func(w io.Writer) flusher { return brotli.NewWriter(w) },
	"x-snappy-framed": func(w io.Writer) flusher { return snappy.NewBufferedWriter(w) },
}

type flusher interface {
	io.WriteCloser
	Flush() error
}

// A packed body is stored as it arrives, too.
func TestPacked(t *testing.T) {
	for name, pack := range packers {
		s := decodetest.NewServer(t, nil)
		body, in := io.Pipe()
		req := httptest.NewRequest("POST", "/upload", body)
		req.Header.Set("Content-Type", mediaType)
		req.Header.Set("Content-Encoding", name)
		rec, done := httptest.NewRecorder(), make(chan bool)
		go func() {
			s.Handler(Upload).ServeHTTP(rec, req)
			close(done)
		}()
		z := pack(in)
		for n := range 3 {
			for range 1000 {
				io.WriteString(z, entry)
			}
			testkit.OK(t, z.Flush())
			for end := time.Now().Add(time.Minute); s.Stats().Stored < uint64(1000*n+1000); time.Sleep(time.Millisecond) {
				if time.Now().After(end) {
					t.Fatalf("%s: %d of %d events are stored before the request ends", name, s.Stats().Stored, 1000*n+1000)
				}
			}
		}
		testkit.OK(t, z.Close())
		in.Close()
		if <-done; rec.Code != 202 {
			t.Errorf("%s: %d %s", name, rec.Code, rec.Body)
		}
		if st := s.Stats(); st.UnpackedBytes != uint64(3000*len(entry)) || st.WireBytes*10 > st.UnpackedBytes {
			t.Errorf("%s: %d bytes of the wire, %d unpacked", name, st.WireBytes, st.UnpackedBytes)
		}
	}
}

// What is wrong with the packing ends the request; what was before it stays.
func TestBadPacking(t *testing.T) {
	pack := func(text string) string {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		io.WriteString(z, text)
		z.Close()
		return b.String()
	}
	good := pack(strings.Repeat(entry, 1000))
	for _, tt := range []struct {
		coding, body string
		code         int
		text         string
		stored       int
	}{
		{"gzip", good, 202, "OK.", 1000},
		{"", good, 202, "OK.", 1000}, // as by its beginning
		{"gzip", entry, 400, "does not start with 1f 8b", 0},
		{"gzip", good[:len(good)-4], 400, "the body is not valid gzip after 217000 unpacked bytes: it ends early; what has arrived before is stored", 1000},
		{"gzip", good[:12], 400, "it ends early", 0},
		{"gzip", "", 202, "OK.", 0},
		{"zstd", "\x28\xb5\x2f\xfdxxxxxxxxxxxxx", 400, "not valid zstd", 0},
		{"snappy", "x", 415, "cannot be in snappy's block format", 0},
		{"lz4", entry, 415, `"lz4" is not supported`, 0},
		{"gzip", pack(strings.Repeat("\n", 8<<20)), 413, "more than 200 times its size", 0},
	} {
		s := decodetest.NewServer(t, nil)
		rec := decodetest.Send(s.Handler(Upload), "/upload", tt.body, "Content-Type", mediaType, "Content-Encoding", tt.coding)
		if rec.Code != tt.code || !strings.Contains(rec.Body.String(), tt.text) || len(s.Lines) != tt.stored {
			t.Errorf("%s %.20q: %d %s, %d stored", tt.coding, tt.body, rec.Code, rec.Body, len(s.Lines))
		}
	}
}

// Events of a request that does not end are stored as they arrive, in little memory, and
// Stop ends it.
func TestEndless(t *testing.T) {
	s := decodetest.NewServer(t, func(o *receiver.Options) { o.InFlight, o.MaxUnpacked, o.MaxBody = 3<<20, 1<<20, 1<<20 })
	server := httptest.NewServer(s.Handler(Upload))
	defer server.Close()
	body, in := io.Pipe()
	req, err := http.NewRequestWithContext(context.Background(), "POST", server.URL+"/upload", body)
	testkit.OK(t, err)
	req.Header.Set("Content-Type", mediaType)
	answer := make(chan int, 1)
	go func() {
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			answer <- 0
			return
		}
		resp.Body.Close()
		answer <- resp.StatusCode
	}()
	sent := 0
	for _, n := range []int{1, 3, 20_000} { // 5 MB, more than the budget
		for range n {
			if _, err := io.WriteString(in, entry); err != nil {
				t.Fatal(err)
			}
		}
		sent += n
		for end := time.Now().Add(time.Minute); s.Stats().Stored < uint64(sent); time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%d of %d events are stored before the request ends", s.Stats().Stored, sent)
			}
		}
		if used := s.Stats().InFlight; used > 1<<20 {
			t.Errorf("%d bytes are in use", used)
		}
	}
	s.Stop()
	if code := <-answer; code != 503 && code != 0 { // 0: the client was still sending
		t.Errorf("answered %d", code)
	}
	in.Close()
	if st := s.Stats(); st.Received != uint64(sent) {
		t.Errorf("%+v", st)
	}
}

// An entry that was rejected is read again as it came.
func TestReread(t *testing.T) {
	c, _, err := send(t, normalize.Limits{MaxFields: 3}, entry)
	letters := c.Batch.DeadLetters()
	if err != nil || len(letters) != 1 {
		t.Fatal(err, c.Batch.Rejected)
	}
	b := new(normalize.Batch)
	q := &receiver.Request{HTTP: httptest.NewRequest("POST", "/upload", nil), Body: []byte(strings.TrimSuffix(entry, "\n")), Received: received, Norm: normalize.New(normalize.Limits{MaxPast: -1}), Batch: b}
	if err := Upload.Decode(q); err != nil || lines(b) != line {
		t.Errorf("%v, %s", err, lines(b))
	}
}

func TestNoAllocationPerEvent(t *testing.T) {
	c := &receiver.Chunk{Received: received, Norm: normalize.New(normalize.Limits{}), Batch: new(normalize.Batch)}
	session, data := upload{}.Open(), []byte(strings.Repeat(entry+sized("MESSAGE", "a\nb\xff")+"\n", 500))
	got := testkit.Mallocs(func() {
		c.Batch.Reset()
		c.Data = data
		if n, err := session.Decode(c); n != len(data) || err != nil || c.Batch.Records != 1000 {
			t.Fatal(n, err, c.Batch.Records)
		}
	})
	if got > 0 && !pool.Poisons { // such a pool allocates
		t.Errorf("%d allocations for 1000 events", got)
	}
}

// FuzzDecode sends any bytes in two pieces, and any texts as values: with their size and, if
// they can be, as lines they become the same events.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(entry+sized("A", "x\n\n")+"\n"), 30)
	f.Add([]byte("MESSAGE=hello|PRIORITY=4|\xff=\x00|"+strings.Repeat("long", 300)), 9)
	f.Add([]byte("A\n\xff\xff\xff\xff\xff\xff\xff\xff"), 3)
	f.Add([]byte("_STREAM_ID=a\nMESSAGE=x\n\n_STREAM_ID=a\nMESSAGE= y\n\n"), 30)
	limits := normalize.Limits{MaxEventBytes: 800}
	f.Fuzz(func(t *testing.T, data []byte, cut int) {
		joined, _, _ := send(t, limits, string(data))
		decodetest.CheckLines(t, joined.Batch)
		limits := limits
		limits.Text.Apart = true // else what has come decides
		want, rest, whole := send(t, limits, string(data))
		got, left, err := send(t, limits, string(data), cut)
		if (err == nil) != (whole == nil) || err == nil && !bytes.Equal(rest, left) || lines(got.Batch) != lines(want.Batch) || got.Batch.Events() != want.Batch.Events() {
			t.Fatalf("%q cut at %d: %v, %q is left, %+v\n%swhole: %v, %q is left, %+v\n%s", data, cut, err, left, got.Batch.Rejected, lines(got.Batch), whole, rest, want.Batch.Rejected, lines(want.Batch))
		}
		decodetest.CheckLines(t, got.Batch)
		var asLines, withSize strings.Builder
		for text := range strings.SplitSeq(strings.ReplaceAll(string(data), "\n", " "), "|") {
			name, value, found := strings.Cut(text, "=")
			if !found || name == "" || len(name) > maxName {
				name, value = "MESSAGE", text
			}
			asLines.WriteString(name + "=" + value + "\n")
			withSize.WriteString(sized(name, value))
		}
		if asLines.Len() > mostBytes-9*strings.Count(asLines.String(), "\n") {
			return // one is too long, perhaps
		}
		want, rest, whole = send(t, normalize.Limits{}, asLines.String()+"\n", cut)
		got, left, err = send(t, normalize.Limits{}, withSize.String()+"\n", cut)
		if whole != nil || err != nil || len(rest)+len(left) > 0 || lines(got.Batch) != lines(want.Batch) {
			t.Fatalf("%q: %v, %q is left\n%swith sizes: %v, %q is left\n%s", data, whole, rest, lines(want.Batch), err, left, lines(got.Batch))
		}
	})
}

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"
)

// Bad input gets a clear answer, and meanwhile and afterwards everybody else is
// served.
func TestHostileInput(t *testing.T) {
	d := serveDaemon(t)
	stop, served := make(chan struct{}), atomic.Int64{}
	var other sync.WaitGroup
	other.Go(func() {
		for n := 0; ; n++ {
			select {
			case <-stop:
				return
			default:
			}
			resp, err := http.Post(d.addr+"/api/logs", "", strings.NewReader(`{"msg":"good","n":`+fmt.Sprint(n)+`}`))
			if err != nil {
				t.Errorf("another client: %v", err)
				return
			}
			resp.Body.Close()
			if resp.StatusCode != http.StatusOK {
				t.Errorf("another client gets %s", resp.Status)
				return
			}
			served.Add(1)
			time.Sleep(time.Millisecond)
		}
	})
	zeros := gzipMembers(t, 64, 16<<20) // 1 GiB
	for _, tt := range []struct {
		name   string
		header map[string]string
		body   io.Reader
		length int64 // of the body; -1: chunked
		code   int
		want   []string
	}{
		{"not JSON", nil, strings.NewReader("hello there"), 11, 400, []string{"nothing was stored", `"line":1`, `"reason":"syntax"`, "expected a JSON object"}},
		{"a form", map[string]string{"Content-Type": "application/x-www-form-urlencoded"}, strings.NewReader("level=info&msg=%zz"), 18, 400, []string{"nothing was stored", "is not encoded as a form is"}},
		{"text", nil, strings.NewReader("hello, world"), 12, 400, []string{"nothing was stored", `expected a JSON object, an array of objects, or one object per line, such as {\"level\":\"info\",\"msg\":\"hello\"}`}},
		{"half JSON", nil, strings.NewReader(`{"msg":"x"`), 10, 400, []string{`"reason":"syntax"`}},
		{"an array of numbers", nil, strings.NewReader(`[1,2]`), 5, 400, []string{`"reason":"not_object"`, `"index":1`}},
		{"nothing", nil, nil, 0, 400, []string{"the body is empty"}},
		{"a body of 1 GiB, announced", nil, endless{}, 1 << 30, 413, []string{"1073741824 bytes is over the limit of 16777216"}},
		{"a body of 1 GiB, chunked", nil, io.LimitReader(endless{}, 1<<30), -1, 413, []string{"is over the limit of 16777216 bytes"}},
		{"a gzip bomb", map[string]string{"Content-Encoding": "gzip"}, bytes.NewReader(zeros), int64(len(zeros)), 413, []string{"unpacks to more than"}},
		{"a gzip bomb, unannounced", nil, bytes.NewReader(zeros), -1, 413, []string{"unpacks to more than"}},
		{"not gzip", map[string]string{"Content-Encoding": "gzip"}, strings.NewReader("{}"), 2, 400, []string{"the body is not"}},
		{"gzip cut off", map[string]string{"Content-Encoding": "gzip"}, strings.NewReader(gzipped(t, `{"msg":"cut"}`)[:25]), 25, 400, []string{"not valid gzip", "ends early"}},
		{"unknown encoding", map[string]string{"Content-Encoding": "compress"}, strings.NewReader("x"), 1, 415, []string{`"compress\" is not supported`}},
		{"nesting 100,000 deep", nil, strings.NewReader(`{"a":` + strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000) + "}"), -1, 400, []string{`"reason":"`, "nothing was stored"}},
		{"100,000 open brackets", nil, strings.NewReader(strings.Repeat("[", 100_000)), -1, 400, []string{"nothing was stored"}},
		{"an event too large", nil, strings.NewReader(`{"msg":"` + strings.Repeat("x", 2<<20) + `"}`), -1, 400, []string{`"reason":"too_large"`}},
		{"too many fields", nil, strings.NewReader(manyFields(5000)), -1, 400, []string{`"reason":"too_many_fields"`}},
		{"a request line of 1 MiB", map[string]string{"X-Long": strings.Repeat("x", 1<<20)}, strings.NewReader("{}"), 2, 431, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			code, body := rawPost(t, d, tt.header, tt.body, tt.length)
			if code != tt.code {
				t.Errorf("status %d, want %d", code, tt.code)
			}
			var answer struct {
				Error    string `json:"error"`
				Accepted *int   `json:"accepted"`
			}
			if code != 431 && (json.Unmarshal([]byte(body), &answer) != nil || answer.Error == "" || answer.Accepted == nil || *answer.Accepted != 0) {
				t.Errorf("the answer is not an error object: %.500s", body)
			}
			for _, w := range tt.want {
				if !strings.Contains(body, w) {
					t.Errorf("the answer lacks %q: %.500s", w, body)
				}
			}
			if code, _ := d.post(t, `{"msg":"after `+tt.name+`"}`); code != 200 {
				t.Errorf("afterwards: status %d", code)
			}
		})
	}
	t.Run("invalid UTF-8", func(t *testing.T) {
		code, body := d.post(t, "{\"msg\":\"fine\"}\n{\"msg\":\"mended a\xffb\"}\n")
		if code != 200 || !strings.Contains(body, `"accepted":2`) {
			t.Errorf("%d %s", code, body)
		}
		if found := d.query(t, "mended"); len(found) != 1 || !strings.Contains(found[0], "\"mended a\ufffdb\"") {
			t.Errorf("found %q", found)
		}
	})
	t.Run("one bad line among good ones", func(t *testing.T) {
		code, body := d.post(t, "{\"msg\":\"one\"}\nbad\n{\"msg\":\"two\"}\n")
		if code != 200 || !strings.Contains(body, `"accepted":2`) || !strings.Contains(body, `"line":2`) {
			t.Errorf("%d %s", code, body)
		}
	})
	t.Run("other methods and places", func(t *testing.T) {
		for path, want := range map[string]int{"/api/logs": 405, "/api/nothing": 404, "/api/query?q=(": 400, "/api/query?such=1": 400, "/api/tail?from=x": 400} {
			if code, body := d.get(t, path); code != want || !strings.Contains(body, `"error":"`) {
				t.Errorf("GET %s: %d %s, want %d", path, code, body, want)
			}
		}
	})
	t.Run("a page of another site", func(t *testing.T) {
		for _, h := range []map[string]string{{"Host": "evil.example"}, {"Origin": "http://evil.example"}} {
			req, err := http.NewRequest("GET", d.addr+"/api/query", nil)
			if err != nil {
				t.Fatal(err)
			}
			for k, v := range h {
				req.Header.Set(k, v)
			}
			if h["Host"] != "" {
				req.Host = h["Host"]
			}
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			if resp.StatusCode != 403 {
				t.Errorf("%v: %s", h, resp.Status)
			}
		}
	})
	close(stop)
	other.Wait()
	if n := int(served.Load()); n == 0 || len(d.query(t, "msg=good")) != n {
		t.Errorf("another client had %d lines accepted, %d are found", n, len(d.query(t, "msg=good")))
	}
	d.end(t)
}

// endless is JSON that does not end.
type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}

// gzipMembers is n gzip members, of size zeros each.
func gzipMembers(t testing.TB, n, size int) []byte {
	t.Helper()
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestSpeed)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := z.Write(make([]byte, size)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return bytes.Repeat(b.Bytes(), n)
}

func manyFields(n int) string {
	var b strings.Builder
	b.WriteString(`{"msg":"x"`)
	for i := range n {
		fmt.Fprintf(&b, `,"f%d":%d`, i, i)
	}
	return b.String() + "}"
}

// rawPost posts body over a connection of its own and returns the answer, which
// may come before the body's end; then the rest of the body is not sent.
func rawPost(t *testing.T, d *daemon, header map[string]string, body io.Reader, length int64) (int, string) {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(d.addr, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(time.Minute))
	if body == nil {
		body = http.NoBody
	}
	req, err := http.NewRequest("POST", d.addr+"/api/logs", io.NopCloser(body))
	if err != nil {
		t.Fatal(err)
	}
	for k, v := range header {
		req.Header.Set(k, v)
	}
	req.ContentLength = length
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		_ = req.Write(conn) // cut off once the answer is there
	}()
	resp, err := http.ReadResponse(bufio.NewReader(conn), req)
	if err != nil {
		t.Fatalf("no answer: %v", err)
	}
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("read the answer: %v", err)
	}
	conn.Close()
	<-sent
	return resp.StatusCode, string(text)
}

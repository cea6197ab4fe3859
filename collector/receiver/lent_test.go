package receiver

import (
	"bytes"
	"io"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
)

// lentBody is a body that a server has in memory.
type lentBody struct{ *bytes.Reader }

func (b lentBody) Whole() []byte {
	all := make([]byte, b.Len())
	b.ReadAt(all, b.Size()-int64(b.Len()))
	return all
}
func (lentBody) Close() error { return nil }

// TestLentBodies: a request whose body is in memory is answered, stored and counted
// as one whose body is read.
func TestLentBodies(t *testing.T) {
	const event = `{"msg":"hello"}`
	for _, tt := range []struct{ name, coding, body string }{
		{"plain", "", event},
		{"an array", "identity", "[" + event + "," + event + "]"},
		{"one bad line", "", event + "\n{]\n" + event},
		{"packed", "gzip", gzipped(event)},
		{"packed and not said", "", gzipped(event)},
		{"said and not packed", "gzip", event},
		{"of an unknown coding", "compress", event},
		{"empty", "", ""},
		{"over MaxBody", "", `{"msg":"` + strings.Repeat("a", 5000) + `"}`},
	} {
		var said [2][]string
		for i := range said {
			m := &memory{}
			r := newReceiver(t, m, Options{MaxBody: 4096})
			for range 2 { // the second with memory of the first
				req := httptest.NewRequest("POST", "/", strings.NewReader(tt.body))
				if i == 1 {
					req.Body = lentBody{bytes.NewReader([]byte(tt.body))}
				}
				if tt.coding != "" {
					req.Header.Set("Content-Encoding", tt.coding)
				}
				w := httptest.NewRecorder()
				r.ServeHTTP(w, req)
				text, err := io.ReadAll(w.Body)
				if err != nil {
					t.Fatal(err)
				}
				said[i] = append(said[i], w.Result().Status, string(text))
			}
			s := r.Stats()
			if s.Received != s.Stored+s.RejectedTotal()+s.Failed || s.InFlight != 0 {
				t.Errorf("%s: %+v", tt.name, s)
			}
			said[i] = append(said[i], m.lines...)
			if tt.coding != "compress" && tt.body != "" && len(tt.body) < 4096 && s.WireBytes != 2*uint64(len(tt.body)) {
				t.Errorf("%s, lent %v: %d bytes on the wire", tt.name, i == 1, s.WireBytes)
			}
		}
		stripTimes(said[0])
		stripTimes(said[1])
		if !slices.Equal(said[0], said[1]) {
			t.Errorf("%s: read\n%q\nlent\n%q", tt.name, said[0], said[1])
		}
	}
}

// stripTimes takes the times of reception out of lines.
func stripTimes(lines []string) {
	const head = `{"time":"`
	for i, line := range lines {
		if strings.HasPrefix(line, head) {
			_, lines[i], _ = strings.Cut(line[len(head):], `"`)
		}
	}
}

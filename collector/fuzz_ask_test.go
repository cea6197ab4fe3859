package collector

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rollway/rollway/collector/config"
	"github.com/rollway/rollway/collector/receiver"
)

// asking are the headers of a fuzzed request, each with its values or without.
type asking struct{ key, durability, hash, kind, encoding []string }

func (a *asking) header(h http.Header) {
	for name, values := range map[string][]string{
		receiver.KeyHeader: a.key, receiver.DurabilityHeader: a.durability, receiver.HashHeader: a.hash,
		"Content-Type": a.kind, "Content-Encoding": a.encoding,
	} {
		if values != nil {
			h[http.CanonicalHeaderKey(name)] = values
		}
	}
}

// valid reports whether each header is given at most once and says something that
// it may say.
func (a *asking) valid() bool {
	printable := func(key string) bool {
		return len(key) > 0 && len(key) <= 255 && strings.IndexFunc(key, func(r rune) bool { return r < ' ' || r > '~' }) < 0
	}
	return (a.key == nil || len(a.key) == 1 && printable(a.key[0])) &&
		(a.durability == nil || len(a.durability) == 1 && slices.Contains([]string{"buffered", "synced"}, a.durability[0])) &&
		(a.hash == nil || len(a.hash) == 1 && a.hash[0] == "body")
}

// answered is what became of a request.
type answered struct {
	code          int
	body          string
	replayed      bool
	accepted      int
	events        uint64 // that it had
	stored, again uint64 // of them
}

// askedOf sends a request to a collector and checks its answer and the ledger.
func askedOf(t *testing.T, c *Collector, a asking, body []byte) answered {
	t.Helper()
	before := c.Stats()
	req := httptest.NewRequest("POST", "/api/logs", bytes.NewReader(body))
	a.header(req.Header)
	rec := httptest.NewRecorder()
	c.server.ServeHTTP(rec, req)
	after := c.Stats()
	s := &after.Receive
	if s.Received != s.Stored+s.RejectedTotal()+s.Failed+s.Duplicate+s.DroppedTotal() || s.InFlight != 0 || s.Storing != 0 || s.Panics != 0 {
		t.Fatalf("the ledger does not close: %+v", s)
	}
	got := answered{
		code: rec.Code, body: rec.Body.String(), replayed: rec.Header().Get(receiver.ReplayedHeader) == "true",
		events: s.Received - before.Receive.Received, stored: s.Stored - before.Receive.Stored, again: s.Duplicate - before.Receive.Duplicate,
	}
	var says struct{ Accepted int }
	if err := json.Unmarshal(rec.Body.Bytes(), &says); err != nil {
		t.Fatalf("%d %q: %v", rec.Code, rec.Body, err)
	}
	got.accepted = says.Accepted
	if after.Journal.Next-before.Journal.Next != got.stored || got.accepted > 0 != (got.stored+got.again > 0) || got.stored > 0 && got.accepted != int(got.stored) {
		t.Fatalf("%d %s: %d stored, %d duplicates, the journal grew by %d", got.code, got.body, got.stored, got.again, after.Journal.Next-before.Journal.Next)
	}
	switch {
	case !a.valid():
		if got.events > 0 || got.code != 400 && got.code != 415 {
			t.Fatalf("%d %s with headers that are not valid: %+v", got.code, got.body, a)
		}
	case got.accepted > 0:
		want := "buffered"
		if a.durability != nil {
			want = a.durability[0]
		}
		if got.code != 200 || rec.Header().Get(receiver.DurabilityHeader) != want || got.replayed != (got.stored == 0) {
			t.Fatalf("%d %s %v, %d stored", got.code, got.body, rec.Header(), got.stored)
		}
	case !slices.Contains([]int{200, 400, 413, 415, 422}, got.code):
		t.Fatalf("%d %s", got.code, got.body)
	}
	return got
}

// FuzzAsk sends any request with any headers that ask for something, sends it again,
// sends another one under its key, and sends it once more, perhaps after a restart.
// After each the ledger closes, and the journal has what the answers say, once.
func FuzzAsk(f *testing.F) {
	sent, err := filepath.Glob("receiver/receivertest/testdata/*.request") // by curl
	if err != nil || len(sent) == 0 {
		f.Fatalf("no recorded requests (%v)", err)
	}
	for _, name := range sent {
		b, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		req, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(b)))
		if err != nil {
			f.Fatal(err)
		}
		body, err := io.ReadAll(req.Body)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(byte(31+64), "key", "synced", "body", req.Header.Get("Content-Type"), req.Header.Get("Content-Encoding"), body, []byte("{}"))
	}
	two, array := []byte("{\"msg\":\"a\"}\nnot JSON\n"), []byte(`[{"msg":"b"},7]`)
	for _, key := range []string{"k", "", " ~", "a\nb", "tab\t", "é", strings.Repeat("k", 255), strings.Repeat("k", 256), "\x1fbody/x"} {
		f.Add(byte(1), key, "", "", "", "", two, array)
		f.Add(byte(7), key, "buffered", "body", "", "", array, two)
	}
	f.Add(byte(4+32), "", "", "body", "", "", two, two)
	f.Add(byte(2+32), "", "Synced", "", "", "", two, two)
	f.Add(byte(4), "", "", "Body", "", "", two, two)
	f.Add(byte(8+1), "k", "", "", "application/x-www-form-urlencoded", "", []byte(`{"msg":"a"}`), []byte("[]"))
	f.Add(byte(16+1), "k", "", "", "", "compress", two, []byte(""))
	f.Add(byte(16+1), "k", "", "", "", "zstd", []byte("{}"), []byte("7"))
	f.Fuzz(func(t *testing.T, which byte, key, durability, hash, kind, encoding string, body, other []byte) {
		var a asking
		for i, to := range []struct {
			values *[]string
			text   string
		}{{&a.key, key}, {&a.durability, durability}, {&a.hash, hash}, {&a.kind, kind}, {&a.encoding, encoding}} {
			if which>>i&1 != 0 {
				*to.values = strings.Split(to.text, "\n")
			}
		}
		cfg := config.Default()
		cfg.Listen, cfg.Data = "127.0.0.1:0", t.TempDir()
		cfg.Rejected.KeepSize = 0
		open := func() *Collector {
			c, err := New(cfg, nil)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { c.Close() })
			c.health.Start()
			return c
		}
		c := open()
		first := askedOf(t, c, a, body)
		if first.replayed {
			t.Fatalf("the first request is answered as a repeated one: %+v", first)
		}
		named := a.key != nil || a.hash != nil
		again := func() {
			t.Helper()
			b := a
			b.kind = nil // which says nothing
			got := askedOf(t, c, b, body)
			switch {
			case first.accepted == 0 || named:
				// What is wrong with a body the library tells differently with another buffer.
				if got.code != first.code || first.accepted > 0 && got.body != first.body || got.stored > 0 || got.again != first.stored {
					t.Fatalf("%+v, and again %+v", first, got)
				}
			case got.stored != first.stored:
				t.Fatalf("without a name, %+v, and again %+v", first, got)
			}
		}
		again()
		second := askedOf(t, c, a, other)
		if a.key != nil && first.accepted > 0 && second.events > 0 && second.code != 400 {
			if same := second.events == first.events; second.stored > 0 || same != second.replayed || same != (second.code == 200) {
				t.Fatalf("%+v, and another under its key %+v", first, second)
			}
		}
		if which&64 != 0 {
			if err := c.Close(); err != nil {
				t.Fatal(err)
			}
			c = open()
		}
		if first.accepted > 0 { // another may have come under the key of one that was not stored
			again()
		}
		rec := httptest.NewRecorder()
		c.server.ServeHTTP(rec, httptest.NewRequest("GET", "http://127.0.0.1/api/query?last=10000", nil))
		if lines, next := bytes.Count(rec.Body.Bytes(), []byte("\n")), c.Stats().Journal.Next; rec.Code != 200 || uint64(lines) != next && next <= 10000 {
			t.Fatalf("the journal is at %d and has %d lines: %d", next, lines, rec.Code)
		}
	})
}

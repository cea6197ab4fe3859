package remote_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/rollway/rollway/line"
	"github.com/rollway/rollway/remote"
)

func TestElasticDocuments(t *testing.T) {
	peer := startElasticPeer(t)
	w := open(t, peer.url(), remote.Options{DisableCompression: true})
	begin := time.Now()
	write(t, w, `{"time":"2026-05-28T14:40:00.123456789+02:00","level":"INFO","msg":"a"}
{"@timestamp":"2026-05-28T12:40:01Z","message":"other logger"}
panic: "oh"
{}
 { "msg" : "spaces" }
`)
	for i, want := range []string{
		`{"@timestamp":"2026-05-28T12:40:00.123456789Z","time":"2026-05-28T14:40:00.123456789+02:00","level":"INFO","msg":"a"}`,
		`{"@timestamp":"2026-05-28T12:40:01Z","message":"other logger"}`,
		`{"@timestamp":"NOW","message":"panic: \"oh\""}`,
		`{"@timestamp":"NOW"}`,
		`{"@timestamp":"NOW","msg" : "spaces" }`,
	} {
		got := peer.docs[i]
		if before, after, ok := strings.Cut(want, "NOW"); ok && strings.HasPrefix(got, before) {
			end := strings.IndexByte(got[len(before):], '"') + len(before)
			if at, err := time.Parse(time.RFC3339Nano, got[len(before):end]); err != nil || at.Before(begin) || at.After(time.Now()) {
				t.Errorf("document %d: time %v, %v", i, at, err)
			}
			want = before + got[len(before):end] + after
		}
		if got != want {
			t.Errorf("document %d is\n %s\nwant\n %s", i, got, want)
		}
	}
	settled(t, w, 5, 5)
}

// Lines that the engine has no room for are sent again, and only they, also by
// a later Write; those it refuses are lost; what is there already counts.
func TestElasticItems(t *testing.T) {
	peer := startElasticPeer(t)
	busy := map[string]bool{`"seq":1}`: true, `"seq":3}`: true}
	peer.decide(func(doc string) (int, string, string) {
		for seq := range busy {
			if strings.Contains(doc, seq) {
				return 429, "es_rejected_execution_exception", "queue is full"
			}
		}
		if strings.Contains(doc, "poison") {
			return 400, "document_parsing_exception", "failed to parse field [attrs]"
		}
		return 0, "", ""
	})
	var told []error
	w := open(t, peer.url(), remote.Options{OnError: func(err error) { told = append(told, err) }})
	all := numbered(0, 2) + "{\"msg\":\"poison\"}\n" + numbered(2, 6)
	n, err := w.Write([]byte(all))
	if want := len(numbered(0, 1)); n != want || err == nil || !strings.Contains(err.Error(), "queue is full") {
		t.Fatalf("Write = %d, %v, want %d and 429", n, err, want)
	}
	settled(t, w, 1, 1)
	delete(busy, `"seq":1}`)
	m, err := w.Write([]byte(all[n:]))
	if n += m; err == nil || all[n:] != numbered(3, 6) {
		t.Fatalf("second Write = %d, %v, and %q is left", m, err, all[n:])
	}
	settled(t, w, 4, 3)
	delete(busy, `"seq":3}`)
	write(t, w, all[n:])
	settled(t, w, 7, 6)
	peer.want(t, numbered(0, 1)+numbered(2, 3)+numbered(4, 6)+numbered(1, 2)+numbered(3, 4))
	if fmt.Sprint(peer.requests) != "[7 2 1]" {
		t.Errorf("requests with %v documents, want 7 2 1", peer.requests)
	}
	w.Close()
	if d := w.Stats().Dropped; d != (line.Drops{Refused: 1}) {
		t.Errorf("Dropped = %+v", d)
	}
	w.Told()
	if len(told) != 1 || !strings.Contains(told[0].Error(), "line 3 of its request: 400 document_parsing_exception: failed to parse") {
		t.Errorf("OnError was told %v", told)
	}
}

// What an index or a user lacks is not the lines' fault.
func TestElasticKeepsLines(t *testing.T) {
	for _, c := range []struct {
		status int
		kind   string
	}{{401, "security_exception"}, {403, "cluster_block_exception"}, {404, "index_not_found_exception"}, {500, "exception"}} {
		peer := startElasticPeer(t)
		peer.decide(func(string) (int, string, string) { return c.status, c.kind, "why" })
		w := open(t, peer.url(), remote.Options{})
		n, err := w.Write([]byte(numbered(0, 3)))
		if n != 0 || err == nil || !strings.Contains(err.Error(), c.kind) {
			t.Errorf("%d: Write = %d, %v", c.status, n, err)
		}
		settled(t, w, 0, 0)
		peer.decide(nil)
		write(t, w, numbered(0, 3))
		peer.want(t, numbered(0, 3))
		settled(t, w, 3, 3)
	}
}

func TestElasticRetriesWithinOneWrite(t *testing.T) {
	t.Parallel()
	peer := startElasticPeer(t)
	left := 2
	peer.decide(func(doc string) (int, string, string) {
		if strings.Contains(doc, `"seq":5}`) && left > 0 {
			left--
			return 503, "unavailable_shards_exception", "primary shard is not active"
		}
		return 0, "", ""
	})
	w := open(t, peer.url(), remote.Options{Retries: 3})
	write(t, w, numbered(0, 10))
	settled(t, w, 10, 10)
	if fmt.Sprint(peer.requests) != "[10 1 1]" {
		t.Errorf("requests with %v documents", peer.requests)
	}
}

// Lines that wait on disk while the process ends keep the ids of their documents.
func TestElasticStoresOnceAcrossARestart(t *testing.T) {
	t.Parallel()
	peer := startElasticPeer(t)
	peer.decide(func(doc string) (int, string, string) {
		if strings.Contains(doc, `"seq":0}`) {
			return 429, "es_rejected_execution_exception", "queue is full"
		}
		return 0, "", ""
	})
	dir := t.TempDir()
	o := remote.Options{Spill: remote.Spill{Dir: dir}, CloseTimeout: 50 * time.Millisecond}
	w := open(t, peer.url(), o)
	write(t, w, numbered(0, 100)) // all but the first are stored, and all stay on disk
	eventually(t, "the peer has answered", func() bool { return w.Stats().Failing })
	write(t, w, numbered(100, 110))
	if err := w.Close(); !errors.Is(err, line.ErrPending) {
		t.Errorf("Close = %v, want that lines are on disk", err)
	}
	if got := strings.Count(string(peer.bytes()), "\n"); got != 99 {
		t.Errorf("%d documents before the restart, want 99", got)
	}
	peer.decide(nil)
	o.CloseTimeout = 0
	w = open(t, peer.url(), o)
	write(t, w, numbered(110, 111))
	if err := w.Sync(); err != nil {
		t.Errorf("Sync = %v", err)
	}
	peer.want(t, numbered(1, 100)+numbered(0, 1)+numbered(100, 111))
	if s := w.Stats(); s.Recovered != 110 || s.Written != 111 || s.Pending != 0 {
		t.Errorf("Stats = %+v", s)
	}
}

func TestElasticAnswersAsAWhole(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		code int
		body string
		want string
	}{
		{401, "who?", "Options.Token"},
		{404, "", "an index or a data stream"},
		{429, "slow", "429"},
		{503, "", "503"},
	} {
		peer := startElasticPeer(t)
		peer.always = status(c.code, c.body)
		w := open(t, peer.url(), remote.Options{})
		n, err := w.Write([]byte(numbered(0, 3)))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%d %q: Write = %d, %v, want %q", c.code, c.body, n, err, c.want)
		}
		s := w.Stats()
		settled(t, w, int(3-s.Returned), int(s.Written))
	}
}

func TestElasticSplitAfter413(t *testing.T) {
	t.Parallel()
	peer := startElasticPeer(t)
	const limit = 100 << 10
	peer.always = func(rw http.ResponseWriter, r *http.Request) {
		if b, _ := io.ReadAll(r.Body); len(b) > limit {
			rw.WriteHeader(413)
		}
	}
	w := open(t, peer.url(), remote.Options{DisableCompression: true})
	long := `{"msg":"` + strings.Repeat("x", limit) + "\"}\n"
	all := numbered(0, 2000) + long + numbered(2000, 2100)
	write(t, w, all)
	peer.want(t, numbered(0, 2100))
	settled(t, w, 2101, 2100)
	if d := w.Stats().Dropped; d.TooLarge != 1 {
		t.Errorf("Dropped = %+v", d)
	}
}

func TestElasticURL(t *testing.T) {
	for _, url := range []string{"elastic+http://h:9200", "elastic+http://h:9200/", "elastic+https://h/_bulk"} {
		if _, err := remote.Open(url, remote.Options{}); err == nil || !strings.Contains(err.Error(), "has no index") {
			t.Errorf("%s: %v", url, err)
		}
	}
	peer := startElasticPeer(t)
	for _, url := range []string{peer.url() + "/", peer.url() + "/_bulk", peer.url() + "?pipeline=shop"} {
		w := open(t, url, remote.Options{})
		write(t, w, numbered(0, 1))
	}
}

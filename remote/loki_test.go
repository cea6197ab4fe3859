package remote_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rollway/rollway/line"
	"github.com/rollway/rollway/remote"
)

// A lokiPeer answers pushes as Loki 3 does. The distributor refuses entries
// that are too old or too long and passes the others on; the ingester refuses
// what is too far behind its stream, and of several streams that have such
// entries it tells the last. In both cases the rest is stored and the answer is
// 400. An entry that is there already is ignored.
type lokiPeer struct {
	*httptest.Server
	always http.HandlerFunc // answers instead, if it writes a status

	mu      sync.Mutex
	oldest  time.Time     // distributor: entries before are refused
	longest int           // distributor: of an entry in bytes; 0: no limit
	older   bool          // its texts are of an older version
	behind  time.Duration // ingester: how far behind its stream's newest an entry may be; 0: as far as it likes
	listed  int           // ingester: entries that a refusal names one by one; 0: 10
	entries []lokiEntry
	have    map[lokiEntry]bool   // entries
	newest  map[string]time.Time // by stream
	pushes  int
}

type lokiEntry struct {
	stream string
	at     int64
	line   string
}

// newLokiPeer returns a peer that is no server yet.
func newLokiPeer() *lokiPeer {
	return &lokiPeer{newest: map[string]time.Time{}, have: map[lokiEntry]bool{}}
}

func startLokiPeer(t testing.TB) *lokiPeer {
	p := newLokiPeer()
	p.Server = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) { p.serve(t, rw, r) }))
	t.Cleanup(p.Close)
	return p
}

func (p *lokiPeer) url() string { return "loki+" + p.URL }

func (p *lokiPeer) serve(t testing.TB, rw http.ResponseWriter, r *http.Request) {
	if p.always != nil {
		status := &statusRecorder{ResponseWriter: rw}
		if p.always(status, r); status.code != 0 {
			return
		}
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	if r.URL.Path != "/loki/api/v1/push" || r.Header.Get("Content-Type") != "application/json" {
		t.Errorf("%s %s with %s", r.Method, r.URL, r.Header.Get("Content-Type"))
	}
	var push struct {
		Streams []struct {
			Stream map[string]string
			Values [][2]string
		}
	}
	if err := json.Unmarshal(body, &push); err != nil {
		t.Errorf("push %.300q: %v", body, err)
		rw.WriteHeader(400)
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pushes++
	var refused string
	for _, s := range push.Streams {
		var labels []string
		for _, name := range slices.Sorted(maps.Keys(s.Stream)) {
			labels = append(labels, fmt.Sprintf("%s=%q", name, s.Stream[name]))
		}
		stream := "{" + strings.Join(labels, ", ") + "}"
		var behind []string
		for _, v := range s.Values {
			ns, err := strconv.ParseInt(v[0], 10, 64)
			if err != nil {
				t.Errorf("timestamp %q", v[0])
			}
			at := time.Unix(0, ns)
			switch {
			case at.Before(p.oldest):
				refused = fmt.Sprintf("entry for stream '%s' has timestamp too old: %v, oldest acceptable timestamp is: %v", stream, at, p.oldest)
				continue
			case p.longest > 0 && len(v[1]) > p.longest:
				refused = fmt.Sprintf("max entry size '%d' bytes exceeded for stream '%s' while adding an entry with length '%d' bytes", p.longest, stream, len(v[1]))
				continue
			case p.behind > 0 && at.Before(p.newest[stream].Add(-p.behind)):
				behind = append(behind, fmt.Sprintf("entry with timestamp %v ignored, reason: 'entry too far behind, entry timestamp is: %v, oldest acceptable timestamp is: %v',\n", at, at, p.newest[stream].Add(-p.behind)))
				continue
			}
			if at.After(p.newest[stream]) {
				p.newest[stream] = at
			}
			if e := (lokiEntry{stream, ns, v[1]}); !p.have[e] {
				p.have[e] = true
				p.entries = append(p.entries, e)
			}
		}
		if len(behind) > 0 {
			refused = fmt.Sprintf("%suser 'fake', total ignored: %d out of %d for stream: %s", strings.Join(behind[:min(len(behind), cmp.Or(p.listed, 10))], ""), len(behind), len(s.Values), stream)
		}
	}
	if p.older {
		refused = strings.Replace(refused, "max entry", "Max entry", 1)
	}
	if refused != "" {
		http.Error(rw, refused, http.StatusBadRequest)
		return
	}
	rw.WriteHeader(http.StatusNoContent)
}

// bytes returns the lines of all streams in the order of their coming.
func (p *lokiPeer) bytes() []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []byte
	for _, e := range p.entries {
		all = append(append(all, e.line...), '\n')
	}
	return all
}

func TestLokiEntries(t *testing.T) {
	peer := startLokiPeer(t)
	peer.always = func(_ http.ResponseWriter, r *http.Request) {
		if got := r.Header.Get("X-Scope-OrgID"); got != "team-a" {
			t.Errorf("X-Scope-OrgID is %q", got)
		}
	}
	begin := time.Now().UnixNano()
	w := open(t, peer.url()+"/", remote.Options{
		Loki:   remote.Loki{Labels: map[string]string{"app": `sh"op`, "env": "test"}},
		Header: http.Header{"X-Scope-OrgID": {"team-a"}},
	})
	lines := []string{
		`{"time":"2026-05-28T12:40:00.123456789Z","level":"ERROR","msg":"a"}`,
		`{"time":"2026-05-28T12:40:00.123456790Z","level":"INFO","msg":"b"}`,
		"panic: \"oh\"\t\x01",
		`{"level":"ERROR+1","msg":"c"}`,
		`{"level":"FATAL"}`,
	}
	write(t, w, strings.Join(lines, "\n")+"\n")
	settled(t, w, 5, 5)
	byLine := map[string]lokiEntry{}
	for _, e := range peer.entries {
		byLine[e.line] = e
	}
	for i, level := range []string{"error", "info", "unknown", "error", "fatal"} {
		e, ok := byLine[lines[i]]
		if want := fmt.Sprintf(`{app="sh\"op", env="test", level=%q}`, level); !ok || e.stream != want {
			t.Errorf("line %d is in stream %s, want %s", i, e.stream, want)
		}
	}
	at := time.Date(2026, 5, 28, 12, 40, 0, 123456789, time.UTC).UnixNano()
	if byLine[lines[0]].at != at || byLine[lines[1]].at != at+1 || byLine[lines[2]].at < begin || byLine[lines[2]].at > time.Now().UnixNano() {
		t.Errorf("entries %+v", peer.entries)
	}
	if peer.pushes != 1 {
		t.Errorf("%d pushes", peer.pushes)
	}
}

func TestLokiLabels(t *testing.T) {
	peer := startLokiPeer(t)
	w := open(t, peer.url(), remote.Options{Loki: remote.Loki{LevelLabel: "-"}})
	write(t, w, `{"level":"ERROR"}`+"\n"+`{"level":"INFO"}`+"\n")
	if len(peer.newest) != 1 || len(peer.entries) != 2 || !strings.HasPrefix(peer.entries[0].stream, fmt.Sprintf("{service_name=%q", strings.TrimSuffix(filepath.Base(os.Args[0]), ".exe"))) {
		t.Errorf("entries %+v", peer.entries)
	}
	for _, o := range []remote.Loki{
		{Labels: map[string]string{"a b": "c"}},
		{Labels: map[string]string{"__a": "c"}},
		{Labels: map[string]string{"a": ""}},
		{Labels: map[string]string{"a": "\xff"}},
		{Labels: map[string]string{"level": "c"}},
		{Labels: map[string]string{}, LevelLabel: "-"},
		{LevelLabel: "a-b"},
	} {
		if _, err := remote.Open(peer.url(), remote.Options{Loki: o}); err == nil || !strings.Contains(err.Error(), "Options.Loki") {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

func day(n int) string {
	return time.Date(2026, 5, n, 0, 0, 0, 0, time.UTC).Format(time.RFC3339)
}

// aged returns a line of a level and a day in May 2026.
func aged(level string, n int, text string) string {
	return fmt.Sprintf(`{"time":%q,"level":%q,"msg":%q}`+"\n", day(n), level, text)
}

// What Loki refuses for its time or length is lost to the line, with Loki's
// reason; the rest of the push is stored.
func TestLokiPartialRefusals(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		peer  func(*lokiPeer)
		lines string
		lost  int
		told  string
	}{
		{"too far behind, one stream", func(p *lokiPeer) { p.behind = 48 * time.Hour },
			aged("INFO", 10, "a") + aged("INFO", 1, "old") + aged("INFO", 9, "b") + aged("INFO", 2, "old") + aged("INFO", 11, "c"), 2, "too far behind"},
		{"too far behind, three streams", func(p *lokiPeer) { p.behind = 48 * time.Hour },
			aged("INFO", 10, "a") + aged("WARN", 10, "b") + aged("INFO", 1, "old") + aged("WARN", 1, "old") + aged("ERROR", 1, "c") + aged("WARN", 2, "old"), 3, "total ignored"},
		{"too far behind, in a refusal of half a MiB", func(p *lokiPeer) { p.behind, p.listed = 48*time.Hour, 1<<20 },
			aged("INFO", 10, "a") + strings.Repeat(aged("INFO", 1, "old"), 3000) + aged("WARN", 10, "b"), 3000, "too far behind"},
		{"too old", func(p *lokiPeer) { p.oldest = time.Date(2026, 5, 5, 0, 0, 0, 0, time.UTC) },
			aged("INFO", 10, "a") + aged("INFO", 1, "old") + aged("WARN", 1, "old") + aged("INFO", 11, "b") + aged("INFO", 12, "c"), 2, "too old"},
		{"all of many too old", func(p *lokiPeer) { p.oldest = time.Date(2026, 5, 5, 0, 0, 0, 0, time.UTC) },
			strings.Repeat(aged("INFO", 1, "old"), 50) + aged("INFO", 11, "b"), 50, "too old"},
		{"too long", func(p *lokiPeer) { p.longest = 1000 },
			aged("INFO", 10, "a") + aged("INFO", 10, strings.Repeat("old", 1000)) + aged("INFO", 11, "b"), 1, "max entry size"},
		{"all of many too long", func(p *lokiPeer) { p.longest = 1000 },
			strings.Repeat(aged("INFO", 10, strings.Repeat("old", 1000)), 50) + aged("INFO", 11, "b"), 50, "max entry size"},
		{"all of many too long, an older version", func(p *lokiPeer) { p.longest, p.older = 1000, true },
			strings.Repeat(aged("INFO", 10, strings.Repeat("old", 1000)), 50) + aged("INFO", 11, "b"), 50, "Max entry size"},
	} {
		t.Run(c.name, func(t *testing.T) {
			peer := startLokiPeer(t)
			c.peer(peer)
			var told []string
			w := open(t, peer.url(), remote.Options{OnError: func(err error) { told = append(told, err.Error()) }})
			write(t, w, c.lines)
			w.Close()
			all := strings.Count(c.lines, "\n")
			settled(t, w, all, all-c.lost)
			if d := w.Stats().Dropped; d != (line.Drops{Refused: uint64(c.lost)}) {
				t.Errorf("Dropped = %+v", d)
			}
			w.Told()
			if !strings.Contains(strings.Join(told, "\n"), c.told) {
				t.Errorf("OnError was told %q", told)
			}
			got := string(peer.bytes())
			if n := strings.Count(got, "\n"); n != all-c.lost || strings.Contains(got, "old") {
				t.Errorf("%d entries are stored, want %d: %s", n, all-c.lost, got)
			}
		})
	}
}

// What is not the fault of entries stays with the caller.
func TestLokiKeepsLines(t *testing.T) {
	for _, c := range []struct {
		code int
		body string
		want string
	}{
		{400, "error at least one label pair is required per stream", "label pair"},
		{401, "no org id", "X-Scope-OrgID"},
		{404, "404 page not found", "/loki/api/v1/push"},
		{429, "Ingestion rate limit exceeded for user fake (limit: 4194304 bytes/sec)", "rate limit"},
		{429, "entry with timestamp x ignored, reason: 'Per stream rate limit exceeded',\nuser 'fake', total ignored: 1 out of 3 for stream: {}", "Per stream"},
		{260, "ingestion blocked for user fake until '2026-12-01T00:00:00Z' with status code '260'", "block_ingestion_until"},
		{206, "", "206"},
		{400, "entry with timestamp x ignored, reason: 'Per stream rate limit exceeded (limit: 3MB/sec) while attempting to ingest',\nentry with timestamp y ignored, reason: 'entry too far behind',\nuser 'fake', total ignored: 2 out of 3 for stream: {}", "Per stream"},
		{500, "at least 1 live replicas required, could only find 0", "live replicas"},
		{503, "", "503"},
	} {
		peer := startLokiPeer(t)
		peer.always = status(c.code, c.body)
		w := open(t, peer.url(), remote.Options{})
		n, err := w.Write([]byte(numbered(0, 3)))
		if n != 0 || err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%d: Write = %d, %v, want %q", c.code, n, err, c.want)
		}
		settled(t, w, 0, 0)
		peer.always = nil
		write(t, w, numbered(0, 3))
		if got := string(peer.bytes()); got != numbered(0, 3) {
			t.Errorf("%d: the peer has %q", c.code, got)
		}
		settled(t, w, 3, 3)
	}
}

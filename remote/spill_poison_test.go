package remote_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rollway/rollway/line"
	"github.com/rollway/rollway/remote"
)

// backlog is a Writer over HTTP whose folder has so many padded lines, which peer
// gets as soon as it is up.
func backlog(t *testing.T, scheme string, peer *home, lines int, o remote.Options) *remote.Writer {
	t.Helper()
	if o.Spill.Dir == "" {
		o.Spill = spillTo(t)
	}
	if o.MaxBatch == 0 {
		o.MaxBatch = 400 << 10
	}
	o.OnError = func(error) {}
	w := open(t, scheme+"://"+peer.addr+"/x", o)
	for i := 0; i < lines; i += 200 {
		write(t, w, string(padded(i, i+200)))
	}
	return w
}

// What Open finds missing is counted once.
func TestSpillGapAtOpen(t *testing.T) {
	t.Parallel()
	peer := newKeyedPeer(t)
	o := remote.Options{Spill: spillTo(t), CloseTimeout: 10 * time.Millisecond}
	o.Spill.MaxBytes = 1 << 20 // files of 64 KiB
	w := open(t, peer.url(), o)
	for i := range 10 {
		write(t, w, string(padded(i*200, i*200+200)))
	}
	w.Close()
	files, err := filepath.Glob(filepath.Join(o.Spill.Dir, "*.spool"))
	if err != nil || len(files) < 4 {
		t.Fatal(files, err)
	}
	for _, f := range files[:len(files)-2] {
		if err := os.Remove(f); err != nil {
			t.Fatal(err)
		}
	}
	o.CloseTimeout = 0
	w = open(t, peer.url(), o)
	s := balanced(t, w)
	if s.Recovered != 2000 || s.Accepted != 2000 || s.Dropped.Damaged == 0 || s.Pending != 2000-s.Dropped.Damaged || s.Spill.Lines != s.Pending {
		t.Fatalf("Stats after Open = %+v", s)
	}
	peer.up()
	flush(t, w)
	if s := balanced(t, w); s.Written != 2000-s.Dropped.Damaged || s.Pending != 0 || s.Spill.Lines != 0 {
		t.Errorf("Stats = %+v", s)
	}
	if err := w.Close(); !errors.Is(err, line.ErrLost) {
		t.Errorf("Close = %v", err)
	}
}

// One of the processes behind a peer's address is broken: no line is to blame, and
// nothing waits for it.
func TestSpillBrokenBackend(t *testing.T) {
	t.Parallel()
	for _, code := range []int{http.StatusBadRequest, http.StatusInternalServerError} {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			t.Parallel()
			var mu sync.Mutex
			var connections []string
			peer := newHome(t, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
				io.Copy(io.Discard, r.Body)
				mu.Lock()
				if !slices.Contains(connections, r.RemoteAddr) {
					connections = append(connections, r.RemoteAddr)
				}
				broken := connections[1%len(connections)] == r.RemoteAddr && len(connections) > 1
				mu.Unlock()
				time.Sleep(20 * time.Millisecond) // of the peer, not of the test
				if broken {
					rw.WriteHeader(code)
				}
			}))
			w := backlog(t, "http", peer, 40_000, remote.Options{})
			peer.up()
			flush(t, w)
			if s := balanced(t, w); s.Written != 40_000 || s.Dropped.Total() != 0 {
				t.Errorf("Stats = %+v", s)
			}
		})
	}
}

// A request is divided although its error was another one in between.
func TestSpillPoisonWithOtherErrors(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	heads := 0
	peer := newHome(t, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if !bytes.Contains(body, []byte(`"seq":0,`)) {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		if heads++; heads == 3 { // when the window is full of later ones
			rw.WriteHeader(http.StatusBadGateway)
			return
		}
		rw.WriteHeader(http.StatusInternalServerError)
	}))
	w := backlog(t, "http", peer, 40_000, remote.Options{})
	peer.up()
	flush(t, w)
	if s := balanced(t, w); s.Written != 39_999 || s.Dropped.Refused != 1 || s.Spill.DeadLetters != 1 {
		t.Errorf("Stats = %+v", s)
	}
}

// A line for which Elasticsearch always has an error of its own is kept apart, and
// so is one that it refuses by name.
func TestSpillPoisonInElastic(t *testing.T) {
	t.Parallel()
	peer := newHome(t, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var items []string
		for i, l := range bytes.Split(bytes.TrimSpace(body), []byte("\n")) {
			switch {
			case i%2 == 0: // the action
			case bytes.Contains(l, []byte(`"seq":0,`)):
				items = append(items, `{"create":{"status":500,"error":{"type":"pipeline","reason":"boom"}}}`)
			case bytes.Contains(l, []byte(`"seq":7,`)):
				items = append(items, `{"create":{"status":400,"error":{"type":"mapping","reason":"no"}}}`)
			default:
				items = append(items, `{"create":{"status":201}}`)
			}
		}
		io.WriteString(rw, `{"errors":true,"items":[`+strings.Join(items, ",")+`]}`)
	}))
	spill := spillTo(t)
	w := backlog(t, "elastic+http", peer, 10_000, remote.Options{Spill: spill})
	peer.up()
	flush(t, w)
	if s := balanced(t, w); s.Written != 9_998 || s.Dropped.Refused != 2 || s.Spill.DeadLetters != 2 {
		t.Errorf("Stats = %+v", s)
	}
	want := string(padded(7, 8)) + string(padded(0, 1))
	if got, err := os.ReadFile(filepath.Join(spill.Dir, "dead-letters.log")); err != nil || string(got) != want {
		t.Errorf("the file of dead letters holds %.300q, %v", got, err)
	}
}

// A dead letter that was cut does not spoil the next.
func TestDeadLetterAfterACut(t *testing.T) {
	t.Parallel()
	peer := newKeyedPeer(t)
	peer.poison, peer.code = `"seq":15}`, http.StatusBadRequest
	peer.up()
	spill := spillTo(t)
	letters := filepath.Join(spill.Dir, "dead-letters.log")
	if err := os.WriteFile(letters, []byte(`{"msg":"ha`), 0o600); err != nil {
		t.Fatal(err)
	}
	w := open(t, peer.url(), remote.Options{Spill: spill, OnError: func(error) {}})
	write(t, w, numbered(0, 10))
	flush(t, w)
	write(t, w, numbered(10, 20))
	flush(t, w)
	if got, err := os.ReadFile(letters); err != nil || string(got) != `{"msg":"ha`+"\n"+numbered(15, 16) {
		t.Errorf("the file of dead letters holds %q, %v", got, err)
	}
	settled(t, w, 20, 19)
}

// With a window of one, a write that comes when the peer has healed does not
// overtake what waits.
func TestSpillWindowOfOneKeepsOrder(t *testing.T) {
	t.Parallel()
	peer := newKeyedPeer(t)
	peer.answer(status(http.StatusInternalServerError, ""))
	peer.up()
	spill := spillTo(t)
	spill.Window = 1
	w := open(t, peer.url(), remote.Options{Spill: spill})
	write(t, w, numbered(0, 10))
	eventually(t, "it waits after three errors", func() bool {
		s := w.Stats()
		return s.Errors >= 3 && s.Spill.InFlight == 0
	})
	peer.heal()
	write(t, w, numbered(10, 20))
	flush(t, w)
	peer.want(t, numbered(0, 20))
}

// A peer that takes no announcement of a loss takes the lines.
func TestSpillRefusedNotice(t *testing.T) {
	t.Parallel()
	for _, code := range []int{http.StatusBadRequest, http.StatusInternalServerError} {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			t.Parallel()
			peer := newHome(t, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
				if body, _ := io.ReadAll(r.Body); !bytes.Contains(body, []byte(`"seq":`)) {
					rw.WriteHeader(code)
				}
			}))
			spill := spillTo(t)
			spill.MaxBytes, spill.DropOldest = 1<<20, true
			w := backlog(t, "http", peer, 10_000, remote.Options{Spill: spill})
			peer.up()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if err := w.Flush(ctx); err != nil {
				t.Errorf("Flush = %v", err)
			}
			if s := balanced(t, w); s.Dropped.Expired == 0 || s.Dropped.Refused != 0 || s.Written != 10_000-s.Dropped.Expired || s.Spill.DeadLetters != 0 {
				t.Errorf("Stats = %+v", s)
			}
		})
	}
}

// A single is a Compressor that notices when two requests use it.
type single struct {
	mu        sync.Mutex
	now, most int
}

func (c *single) Encoding() string                             { return "x" }
func (c *single) NewReader(r io.Reader) (io.ReadCloser, error) { return io.NopCloser(r), nil }
func (c *single) NewWriter(w io.Writer) (io.WriteCloser, error) {
	c.use(1)
	return &singleWriter{w, c}, nil
}

func (c *single) use(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now += n
	c.most = max(c.most, c.now)
}

type singleWriter struct {
	io.Writer
	c *single
}

func (w *singleWriter) Close() error {
	time.Sleep(5 * time.Millisecond) // of the compression, not of the test
	w.c.use(-1)
	return nil
}

// A Compressor is used by one request at a time, and a small folder has a window.
func TestSpillCompressorAndSmallFolder(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	now, most := 0, 0
	peer := newHome(t, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		mu.Lock()
		now++
		most = max(most, now)
		mu.Unlock()
		body, _ := io.ReadAll(r.Body)
		time.Sleep(50 * time.Millisecond) // of the peer, not of the test
		mu.Lock()
		now--
		mu.Unlock()
		if bytes.Contains(body, []byte(`"seq":5050,`)) {
			rw.WriteHeader(http.StatusBadRequest)
		}
	}))
	c := new(single)
	spill := spillTo(t)
	spill.MaxBytes = 20 << 20 // files of 1.25 MiB
	w := backlog(t, "http", peer, 60_000, remote.Options{Spill: spill, Compress: c, MaxBatch: 2 << 20})
	peer.up()
	flush(t, w)
	if s := balanced(t, w); s.Written != 59_999 || s.Dropped.Refused != 1 {
		t.Errorf("Stats = %+v", s)
	}
	if c.most != 1 || most < 2 {
		t.Errorf("%d uses of the Compressor at a time, want 1; %d requests at a time, want more", c.most, most)
	}
}

// A batch that a link does not carry in time is divided, whatever the protocol.
func TestSpillSlowLink(t *testing.T) {
	t.Parallel()
	for _, scheme := range []string{"http", "elastic+http"} {
		t.Run(scheme, func(t *testing.T) {
			t.Parallel()
			peer := newHome(t, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
				if r.ContentLength > 400<<10 {
					for { // it is not read to its end in time
						if _, err := io.CopyN(io.Discard, r.Body, 1<<10); err != nil {
							return
						}
						time.Sleep(20 * time.Millisecond) // of the link, not of the test
					}
				}
				io.Copy(io.Discard, r.Body)
				if scheme != "http" {
					io.WriteString(rw, `{"errors":false}`)
				}
			}))
			w := backlog(t, scheme, peer, 4_000, remote.Options{MaxBatch: 4 << 20, Timeout: 1500 * time.Millisecond})
			peer.up()
			flush(t, w)
			settled(t, w, 4_000, 4_000)
		})
	}
}

// A peer that fails for all after it has accepted others is away: one line may be
// taken for the cause of the error that its request got before, and no other is, for
// as long as nothing is accepted.
func TestSpillOutageBlamesNobody(t *testing.T) {
	t.Parallel()
	peer := newKeyedPeer(t)
	peer.poison, peer.code = `"seq":0}`, http.StatusInternalServerError
	peer.up()
	spill := spillTo(t)
	w := open(t, peer.url(), remote.Options{Spill: spill})
	write(t, w, numbered(0, 10))
	eventually(t, "the peer refuses", func() bool { return w.Stats().Errors > 0 })
	write(t, w, numbered(10, 20))
	eventually(t, "others are accepted", func() bool { return w.Stats().Written == 10 })
	peer.answer(status(http.StatusInternalServerError, ""))
	errs := w.Stats().Errors
	eventually(t, "many attempts", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		w.Flush(ctx)
		return w.Stats().Errors >= errs+25
	})
	if s := balanced(t, w); s.Dropped.Total() > 1 || s.Written != 10 {
		t.Errorf("Stats while nothing is accepted = %+v", s)
	}
	peer.heal()
	flush(t, w)
	if s := balanced(t, w); s.Written != 19 || s.Dropped.Refused != 1 || s.Spill.DeadLetters != 1 || s.Pending != 0 {
		t.Errorf("Stats = %+v", s)
	}
	if got, err := os.ReadFile(filepath.Join(spill.Dir, "dead-letters.log")); err != nil || string(got) != numbered(0, 1) {
		t.Errorf("the file of dead letters holds %q, %v", got, err)
	}
	wantLoss(t, "Close", w.Close(), 1, "peer answers 500")
}

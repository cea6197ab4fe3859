package receiver

import (
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/rollway/rollway/collector/normalize"
)

// exploding reads lines and panics after them.
type exploding struct{ plain }

func (exploding) Decode(q *Request) error {
	if err := (plain{}).Decode(q); err != nil {
		return err
	}
	panic(http.ErrAbortHandler)
}

// faulty is counted, but panics on '?' between frames.
type faulty struct{ counted }

func (f faulty) Open() Session { return f }

func (f faulty) Decode(c *Chunk) (int, error) {
	n, err := f.counted.Decode(c)
	if strings.HasSuffix(string(c.Data), "?") {
		panic("a question")
	}
	return n, err
}

// TestPanicIsCounted: what was read when a decoder panicked is in the ledger.
func TestPanicIsCounted(t *testing.T) {
	r := newReceiver(t, &memory{}, Options{})
	server := httptest.NewServer(r.Handler(exploding{}))
	defer server.Close()
	if resp, err := http.Post(server.URL, "", strings.NewReader("{}\nbad\n{}\n")); err == nil {
		t.Errorf("answered %s", resp.Status)
	}
	conn := dial(t, serveStream(t, r, faulty{counted{100}}))
	io.WriteString(conn, "3one!3two?")
	if got := allOf(t, conn); got != "" {
		t.Errorf("answered %q", got)
	}
	waitFor(t, "the end of the connection", func() bool { return r.Stats().Connections == 0 })
	s := r.Stats()
	if s.Failed != 4 || s.RejectedTotal() != 3 || s.Received != 7 || s.Stored != 0 || s.InFlight != 0 || s.Storing != 0 || s.Panics != 1 {
		t.Errorf("%+v", s)
	}
}

// TestStoring: what is with the store is told, until it is counted.
func TestStoring(t *testing.T) {
	m := &memory{}
	entered, leave := make(chan bool), make(chan bool)
	m.failWith(func(*normalize.Batch) error { entered <- true; <-leave; return ErrFull })
	r := newReceiver(t, m, Options{})
	url := newServer(t, r).URL
	answered := make(chan reply)
	go func() { answered <- post(t, url, strings.NewReader("{}\n{}\nbad")) }()
	<-entered
	if s := r.Stats(); s.Storing != 2 || s.Received != 0 {
		t.Errorf("in the store: %+v", s)
	}
	leave <- true
	<-answered
	conn := dial(t, serveStream(t, r, counted{100}))
	io.WriteString(conn, "3one")
	for range 3 { // it is tried again
		<-entered
		if s := r.Stats(); s.Storing != 1 {
			t.Errorf("of a stream: %+v", s)
		}
		leave <- true
	}
	<-entered
	m.failWith(nil)
	leave <- true
	waitFor(t, "the event", func() bool { return r.Stats().Stored == 1 })
	waitFor(t, "the count", func() bool { return r.Stats().Storing == 0 })
	if s := r.Stats(); s.Failed != 2 || s.Received != 4 {
		t.Errorf("%+v", s)
	}
}

// TestEventsByTenant: the events of a tenant are counted by themselves, with all outcomes,
// and all events are the sum of everybody's.
func TestEventsByTenant(t *testing.T) {
	r := New(StoreFunc(nil), Options{}) // nothing is stored
	count := func(from Sender, body string, duplicate bool, stored, failed int) {
		w := r.get()
		defer r.put(w)
		w.sender, w.stored.Duplicate = from, duplicate
		w.norm.Body(&w.batch, []byte(body), time.Now())
		r.count.batch(w, stored, failed)
	}
	for _, from := range []Sender{nil, somebody{}, somebody{}} {
		count(from, "{}\nbad\n{}\n", false, 2, 0)
		count(from, "{}\n7\n", true, 1, 0)
		count(from, "{}\n", false, 0, 1)
	}
	w := r.get()
	defer r.put(w)
	w.sender = somebody{}
	r.count.reject(w, ReasonTorn)
	s := r.Stats()
	want := Events{Received: 13, Stored: 4, Duplicate: 2, Failed: 2, StoredBytes: s.StoredBytes / 3 * 2, Rejected: map[string]uint64{"syntax": 2, "not_object": 2, "torn": 1}}
	if got := s.Tenants["shop"]; len(s.Tenants) != 1 || !reflect.DeepEqual(got, want) {
		t.Errorf("of the tenant %+v, want %+v", s.Tenants, want)
	}
	if s.Received != 19 || s.Stored != 6 || s.Duplicate != 3 || s.Failed != 3 || s.RejectedTotal() != 7 {
		t.Errorf("of all %+v", s.Events)
	}
}

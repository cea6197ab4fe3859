package receiver

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/rollway/rollway/collector/normalize"
)

// Short events come to many times their size as lines, and as dead letters: that is
// taken from the budget too.
func TestShortEventsCount(t *testing.T) {
	const most = 400 << 10
	options := Options{MaxUnpacked: 64 << 10, InFlight: most, KeepRejected: 1 << 20}
	for name, body := range map[string]string{
		"lines":        strings.Repeat("{}\n", 700),
		"dead letters": strings.Repeat("x\ny\n", 300) + "{}\n",
	} {
		m := &memory{}
		entered, leave := make(chan bool), make(chan bool)
		m.failWith(func(*normalize.Batch) error { entered <- true; <-leave; return nil })
		r := newReceiver(t, m, options)
		url := newServer(t, r).URL
		const fit = 2
		replies := make(chan reply, fit)
		for range fit {
			go func() { replies <- post(t, url, strings.NewReader(body)) }()
			<-entered
		}
		before := r.Stats()
		if before.InFlight < most*4/9 || before.InFlight > most*2/3 {
			t.Errorf("%s: %d bytes in flight", name, before.InFlight)
		}
		rep := post(t, url, strings.NewReader(body))
		if rep.Code != http.StatusServiceUnavailable || rep.Header.Get("Retry-After") != "1" || rep.RejectedTotal != 0 {
			t.Errorf("%s: one too many: %+v", name, rep)
		}
		if after := r.Stats(); after.Received != before.Received || after.RejectedTotal() != before.RejectedTotal() {
			t.Errorf("%s: what is to be sent again is counted: %+v", name, after)
		}
		for range fit {
			leave <- true
		}
		for range fit {
			if rep := <-replies; rep.Code != http.StatusOK {
				t.Errorf("%s: %+v", name, rep)
			}
		}
		m.failWith(nil)
		if rep := post(t, url, strings.NewReader(body)); rep.Code != http.StatusOK {
			t.Errorf("%s, again: %+v", name, rep)
		}
	}
}

// A request whose lines never fit is told so, and not to come again.
func TestLinesNeverFit(t *testing.T) {
	m := &memory{}
	var deadLetters []string
	m.rejected = func(b *normalize.Batch) {
		for _, l := range b.DeadLetters() {
			deadLetters = append(deadLetters, fmt.Sprint(len(b.Text(&l)), l.Whole))
		}
	}
	r := newReceiver(t, m, Options{MaxUnpacked: 64 << 10, InFlight: 256 << 10, KeepRejected: 1 << 20})
	url := newServer(t, r).URL
	body := strings.Repeat("{}\n", 20_000)
	if rep := post(t, url, strings.NewReader(body)); rep.Code != http.StatusRequestEntityTooLarge || !strings.Contains(rep.Error, "smaller requests") {
		t.Errorf("%+v", rep)
	}
	if s := r.Stats(); s.Received != 1 || s.RejectedTotal() != 1 || m.count() != 0 {
		t.Errorf("%+v", s)
	}
	if want := []string{fmt.Sprint(len(body), true)}; !slices.Equal(deadLetters, want) {
		t.Errorf("kept %v, want %v", deadLetters, want)
	}
}

// Rejected events of a request are kept once, however often it has to be sent
// until it is stored.
func TestDeadLettersOfRepeatedRequests(t *testing.T) {
	m := &memory{}
	var kept atomic.Int64
	m.rejected = func(b *normalize.Batch) { kept.Add(int64(len(b.DeadLetters()))) }
	r := newReceiver(t, m, Options{KeepRejected: 1 << 20})
	url := newServer(t, r).URL
	for _, c := range []struct {
		fail              error
		code, deadLetters int
	}{{ErrFull, 503, 0}, {errOther, 500, 0}, {nil, 200, 1}} {
		m.failWith(func(*normalize.Batch) error { return c.fail })
		if rep := post(t, url, strings.NewReader("{}\nbad\n")); rep.Code != c.code {
			t.Errorf("%+v", rep)
		}
		if n := int(kept.Load()); n != c.deadLetters {
			t.Errorf("%d dead letters after %d", n, c.code)
		}
	}
}

// Those of a request that was stored before were kept then.
func TestDeadLettersOfDuplicates(t *testing.T) {
	var kept atomic.Int64
	m := &memory{rejected: func(b *normalize.Batch) { kept.Add(int64(len(b.DeadLetters()))) }}
	m.asked = func(StoreOptions) Stored { return Stored{Duplicate: true, Records: 1} }
	r := New(m, Options{KeepRejected: 1 << 20})
	if rep := post(t, newServer(t, r).URL, strings.NewReader("{}\nbad\n"), KeyHeader, "k"); rep.Code != 200 || rep.RejectedTotal != 1 {
		t.Errorf("%+v", rep)
	}
	if n := kept.Load(); n != 0 {
		t.Errorf("%d dead letters once more", n)
	}
}

// Short lines that come together by TCP are stored in parts, so that a connection does
// not hold many times what it was sent; none is lost, and they stay in order.
func TestShortLinesByTCP(t *testing.T) {
	const n = 30_000
	for name, c := range map[string]struct {
		line     func(i int) string
		stored   uint64
		rejected uint64
	}{
		"lines":        {func(i int) string { return fmt.Sprintf("{\"i\":%d}\n", i) }, n, 0},
		"dead letters": {func(i int) string { return strconv.Itoa(i) + "\n" }, 0, n},
	} {
		m := &memory{}
		var most atomic.Int64 // bytes that a batch held
		note := func(b *normalize.Batch) {
			most.Store(max(most.Load(), int64(b.Held())))
		}
		m.failWith(func(b *normalize.Batch) error { note(b); return nil })
		m.rejected = note
		r := newReceiver(t, m, Options{KeepRejected: 1 << 20})
		addr, stop := serveTCP(t, r)
		conn := dial(t, addr)
		var text strings.Builder
		for i := range n {
			text.WriteString(c.line(i))
		}
		if _, err := conn.Write([]byte(text.String())); err != nil {
			t.Fatal(err)
		}
		waitFor(t, name, func() bool { return r.Stats().Received == n })
		stop()
		if s := r.Stats(); s.Stored != c.stored || s.RejectedTotal() != c.rejected {
			t.Errorf("%s: %+v", name, s)
		}
		if got := most.Load(); got == 0 || got > 4*fastRead {
			t.Errorf("%s: a batch held %d bytes", name, got)
		}
		for i, line := range m.lines {
			if want := fmt.Sprintf(`"i":%d}`, i); !strings.Contains(line, want) {
				t.Fatalf("line %d is %s", i, line)
			}
		}
	}
}

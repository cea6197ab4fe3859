//go:build rollway_poison || race

package receiver

import (
	"fmt"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/rollway/rollway/collector/normalize"
	"github.com/rollway/rollway/collector/pool"
)

// keeper is a Protocol that breaks the contract: it keeps a body and, as asked,
// writes to it or stores it in the requests that follow.
type keeper struct {
	body           []byte
	writes, stores bool
}

func (k *keeper) Decode(q *Request) error {
	if k.body == nil {
		k.body = q.Body
	}
	switch {
	case k.writes && len(q.Body) != len(k.body):
		k.body[0] = 'x'
	case k.stores && len(q.Body) != len(k.body):
		b := q.Norm.Build(q.Batch, q.Received)
		b.Begin()
		b.Attr([]byte("stale"))
		b.JSON(append(append([]byte{'"'}, k.body...), '"'))
		b.End()
		b.Done()
		return nil
	}
	return q.Norm.Body(q.Batch, []byte(`{"msg":"ok"}`), q.Received)
}

func (k *keeper) Answer(a *Answer) { plain{}.Answer(a) }

// What a request leaves behind cannot be used unseen by a later one: to write
// there, and to store what is there, end in a panic.
func TestStaleUse(t *testing.T) {
	for _, k := range []*keeper{{writes: true}, {stores: true}} {
		m := &memory{}
		r := newReceiver(t, m, Options{})
		h := r.Handler(k)
		before := pool.Faults()
		var caught any
		send := func(body string) {
			defer func() {
				if p := recover(); p != nil {
					caught = p
				}
			}()
			h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("POST", "/", strings.NewReader(body)))
		}
		send(`{"tenant":"the first"}`)
		for i := range 50 {
			if pool.Faults() > before {
				break
			}
			send(fmt.Sprintf(`{"tenant":"another","n":%d}`, 100+i))
		}
		if pool.Faults() == before {
			t.Errorf("%+v was not found", k)
		}
		if k.writes && (caught == nil || !strings.Contains(fmt.Sprint(caught), "written to after it was returned") || !strings.Contains(fmt.Sprint(caught), "receiver.(*Receiver).put")) {
			t.Errorf("the panic is %v", caught)
		}
		if k.stores && (r.Stats().Panics == 0 || strings.Contains(strings.Join(m.lines, ""), "stale")) {
			t.Errorf("%d panics, stored %s", r.Stats().Panics, m.lines)
		}
	}
}

// hoarder is an Enricher that keeps the memory that it is lent, part after part.
type hoarder struct {
	part int
	kept []byte
}

func (*hoarder) Begin(*normalize.Extras, netip.Addr)                        {}
func (*hoarder) Own(attrs []byte, _ time.Time, _ *normalize.Scratch) []byte { return attrs }
func (*hoarder) Defaults() *normalize.Defaults                              { return nil }
func (*hoarder) Withholds() bool                                            { return false }
func (*hoarder) Parse([]byte, *normalize.Known, *normalize.Scratch) ([]byte, bool) {
	return nil, false
}
func (h *hoarder) Finish(line []byte, _ *normalize.Known, s *normalize.Scratch) ([]byte, string) {
	if h.kept != nil {
		h.kept[0] = 'x'
		return line, ""
	}
	part := []*[]byte{&s.A, &s.B, &s.Text, &s.Path, &s.Template}[h.part]
	*part = append((*part)[:0], line...)
	h.kept = *part
	return line, ""
}

// What rules work in is checked like the rest: code that writes to it when the request
// is over is found.
func TestStaleScratch(t *testing.T) {
	for part := range 5 {
		hoards := &hoarder{part: part}
		r := newReceiver(t, &memory{policy: Policy{Enricher: hoards}}, Options{})
		before := pool.Faults()
		var caught any
		for i := 0; i < 50 && pool.Faults() == before; i++ {
			func() {
				defer func() { caught = recover() }()
				r.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("POST", "/", strings.NewReader(`{"msg":"m"}`)))
			}()
		}
		if pool.Faults() == before || !strings.Contains(fmt.Sprint(caught), "written to after it was returned") {
			t.Errorf("part %d of the scratch memory: the panic is %v", part, caught)
		}
	}
}

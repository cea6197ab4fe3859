package receiver

import (
	"context"
	"fmt"
	"io"
	"net"
	"slices"
	"testing"

	"github.com/rollway/rollway/collector/admission"
	"github.com/rollway/rollway/collector/normalize"
)

// named is counted, except for frames after a k: these have what they say as a key.
type named struct{ counted }

func (n named) Open() Session { return n }

func (n named) Decode(c *Chunk) (taken int, err error) {
	for taken < len(c.Data) && err == nil {
		all, keyed := c.Data, c.Data[taken] == 'k'
		start := taken
		if keyed {
			taken++
		}
		size := 1
		if taken < len(all) {
			size += int(all[taken] - '0')
		}
		if len(all)-taken < size {
			return start, nil
		}
		if keyed && c.Alone() {
			return start, nil
		}
		c.Data = all[taken : taken+size]
		_, err = n.counted.Decode(c)
		c.Data, taken = all, taken+size
		if keyed {
			c.SetKey("name/" + string(all[taken-size+1:taken]))
			return taken, err
		}
	}
	return taken, err
}

// somebody is a sender of whom only the scope matters.
type somebody struct{ Sender }

func (somebody) Scope() string                   { return "shop" }
func (somebody) Tenant() string                  { return "shop" }
func (somebody) Principal() *admission.Principal { return somebodyPays }

var somebodyPays = admission.New().Named("shop", 1)

func (somebody) Extras() *normalize.Extras { return nil }

// Frames with a key are stored each by itself, in their order between the others, and
// answered when they are stored; keys are those of the sender.
func TestStreamKeys(t *testing.T) {
	var got []string
	stored := make(map[string]bool)
	r := New(StoreFunc(func(_ context.Context, b *normalize.Batch, o StoreOptions) (s Stored, err error) {
		got = append(got, fmt.Sprint(o.Key, " ", b.Records))
		s.Duplicate = o.Key != "" && stored[o.Key]
		stored[o.Key] = true
		return s, nil
	}), Options{})
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- r.ServeStream(ctx, ln, named{counted{100}}, somebody{}) }()
	conn := dial(t, ln.Addr())
	io.WriteString(conn, "3one3twok3key3sixk3keyk3lot9ninenine")
	conn.(*net.TCPConn).CloseWrite()
	if got := allOf(t, conn); got != "ONETWOKEYSIXKEYLOT" {
		t.Errorf("answered %q", got)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if want := []string{" 2", "shop/\x1fname/key 1", " 1", "shop/\x1fname/key 1", "shop/\x1fname/lot 1"}; !slices.Equal(got, want) {
		t.Errorf("stored are %q, want %q", got, want)
	}
	if s := r.Stats(); s.Stored != 5 || s.Duplicate != 1 || s.Rejected[ReasonTorn] != 1 || s.Received != 7 {
		t.Errorf("%+v", s)
	}
}

package receiver

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rollway/rollway/collector/normalize"
)

// counted is a protocol for tests. A frame is a digit and as many bytes, which
// are the text of an event and are sent back in capitals. 0 takes 100 KiB of
// memory, x is an error.
type counted struct{ frame int }

func (counted) Name() string            { return "counted frames" }
func (p counted) MaxFrame(_, _ int) int { return p.frame }
func (p counted) Open() Session         { return p }

func (counted) Decode(c *Chunk) (taken int, err error) {
	for len(c.Data) > taken {
		data := c.Data[taken:]
		switch size := int(data[0] - '0'); {
		case data[0] == 'x':
			return taken, errors.New("this is not a frame")
		case data[0] == '0':
			if !c.Acquire(100 << 10) {
				return taken, errors.New("no memory")
			}
			taken++
		case size > 9:
			c.RejectRaw(normalize.ReasonSyntax, "not a digit", nil)
			taken++
		case len(data) <= size:
			return taken, nil
		default:
			b := c.Norm.Build(c.Batch, c.Received)
			b.Begin()
			b.Slot(normalize.Message)
			b.String(data[1 : 1+size])
			b.End()
			b.Done()
			c.Reply = append(c.Reply, strings.ToUpper(string(data[1:1+size]))...)
			taken += 1 + size
		}
	}
	return taken, nil
}

func serveStream(t *testing.T, r *Receiver, p StreamProtocol) net.Addr {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- r.ServeStream(ctx, ln, p, nil) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("ServeStream: %v", err)
		}
	})
	return ln.Addr()
}

// allOf reads until the server closes.
func allOf(t *testing.T, conn net.Conn) string {
	t.Helper()
	conn.SetReadDeadline(time.Now().Add(time.Minute))
	b, err := io.ReadAll(conn)
	if errors.Is(err, os.ErrDeadlineExceeded) { // a reset is an end, too
		t.Fatal(err)
	}
	return string(b)
}

func TestStreamProtocol(t *testing.T) {
	for _, c := range []struct {
		name, send, reply      string
		stored, rejected, torn uint64
	}{
		{"frames", "3one3two", "ONETWO", 2, 0, 0},
		{"a fault between", "3one!3two", "ONETWO", 2, 1, 0},
		{"a fault that closes", "3onex3two", "ONE", 1, 0, 0},
		{"torn", "3one5tw", "ONE", 1, 0, 1},
		{"memory for a while", "03one003two", "ONETWO", 2, 0, 0},
		{"too much memory", "3one" + strings.Repeat("0", 100), "ONE", 1, 0, 0},
		{"another protocol", "GET / HTTP/1.1\r\n\r\n", "", 0, 1, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := &memory{}
			r := newReceiver(t, m, Options{InFlight: 1, MaxUnpacked: 1 << 20, Limits: normalize.Limits{MaxEventBytes: 1000}, IdleTimeout: time.Second})
			conn := dial(t, serveStream(t, r, counted{1 << 20}))
			io.WriteString(conn, c.send)
			conn.(*net.TCPConn).CloseWrite()
			if got := allOf(t, conn); got != c.reply {
				t.Errorf("answered %q, want %q", got, c.reply)
			}
			waitFor(t, "the end of the connection", func() bool { return r.Stats().Connections == 0 })
			s := r.Stats()
			if s.Stored != c.stored || s.Rejected[normalize.ReasonSyntax] != c.rejected || s.Rejected[ReasonTorn] != c.torn || s.InFlight != 0 {
				t.Errorf("%+v", s)
			}
		})
	}
}

func TestStreamFrameTooLarge(t *testing.T) {
	r := newReceiver(t, &memory{}, Options{})
	conn := dial(t, serveStream(t, r, counted{5}))
	io.WriteString(conn, "3one")
	if _, err := io.ReadFull(conn, make([]byte, 3)); err != nil {
		t.Fatal(err)
	}
	io.WriteString(conn, "9more5")
	allOf(t, conn)
	waitFor(t, "the end of the connection", func() bool { return r.Stats().Connections == 0 })
	if s := r.Stats(); s.Stored != 1 || s.Rejected[normalize.ReasonTooLarge] != 1 || s.InFlight != 0 {
		t.Errorf("%+v", s)
	}
}

// TestStreamAnswersAfterStore checks that what is not stored is not answered.
func TestStreamAnswersAfterStore(t *testing.T) {
	m := &memory{}
	full := true
	m.failWith(func(*normalize.Batch) error {
		if full {
			full = false
			return ErrFull
		}
		return nil
	})
	r := newReceiver(t, m, Options{})
	conn := dial(t, serveStream(t, r, counted{100}))
	io.WriteString(conn, "3one")
	if _, err := io.ReadFull(conn, make([]byte, 3)); err != nil {
		t.Fatal(err)
	}
	if s := r.Stats(); s.StoreRetries != 1 || s.Stored != 1 {
		t.Errorf("answered before it was stored: %+v", s)
	}
	m.failWith(func(*normalize.Batch) error { return errOther })
	io.WriteString(conn, "3two")
	if got := allOf(t, conn); got != "" {
		t.Errorf("%q was answered of what was not stored", got)
	}
	waitFor(t, "the ledger", func() bool { return r.Stats().Failed == 1 && r.Stats().Received == 2 })
	// What is stored, only not durably, is counted as stored, and not answered either.
	m.failWith(func(*normalize.Batch) error { return ErrNotSynced })
	conn = dial(t, serveStream(t, r, counted{100}))
	io.WriteString(conn, "5three")
	if got := allOf(t, conn); got != "" {
		t.Errorf("%q was answered of what is not durable", got)
	}
	waitFor(t, "the ledger", func() bool { return r.Stats().Received == 3 })
	if s := r.Stats(); s.Stored != 2 || s.Failed != 1 {
		t.Errorf("%+v", s)
	}
}

// waits is counted with a client that is told to wait.
type waits struct{ counted }

func (p waits) Open() Session        { return p }
func (waits) Wait(dst []byte) []byte { return append(dst, "wait "...) }

// While nothing can be stored a client hears so each second, and then its answer.
func TestWaiter(t *testing.T) {
	m := &memory{}
	var full atomic.Bool
	full.Store(true)
	m.failWith(func(*normalize.Batch) error {
		if full.Load() {
			return ErrFull
		}
		return nil
	})
	r := newReceiver(t, m, Options{})
	conn := dial(t, serveStream(t, r, waits{counted{100}}))
	io.WriteString(conn, "3one")
	got := make([]byte, len("wait wait "))
	if _, err := io.ReadFull(conn, got); err != nil || string(got) != "wait wait " {
		t.Fatalf("%q, %v", got, err)
	}
	full.Store(false)
	conn.(*net.TCPConn).CloseWrite()
	if got := strings.ReplaceAll(allOf(t, conn), "wait ", ""); got != "ONE" {
		t.Errorf("answered %q", got)
	}
}

// TestStreamRatio unpacks frames by the setting.
func TestStreamRatio(t *testing.T) {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	z.Write(make([]byte, 6<<20))
	z.Close()
	for ratio, ok := range map[int64]bool{0: false, 100_000: true} {
		r := newReceiver(t, &memory{}, Options{MaxRatio: ratio})
		f := &batcher{r: r, ctx: t.Context(), space: r.get()}
		f.space.charge(r.nobody)
		_, err := new(Inflater).Unpack(f.chunk(nil, netip.AddrPort{}, time.Now()), []byte("gzip"), packed.Bytes(), 64<<20)
		if (err == nil) != ok || err != nil && !errors.Is(err, ErrInflateLarge) {
			t.Errorf("ratio %d: %v", ratio, err)
		}
		f.close(nil, nil)
	}
}

package relay

import (
	"bytes"
	"errors"
	"io"
	"net"
	"testing"

	"github.com/rollway/rollway/internal/promtext"
)

// spoiled changes what passes: with flip one byte, with cut it ends early.
type spoiled struct {
	net.Conn
	at        int // bytes until then
	flip, cut bool
}

func (s *spoiled) Read(p []byte) (int, error) {
	if s.cut && s.at <= 0 {
		return 0, io.ErrUnexpectedEOF
	}
	if s.cut {
		p = p[:min(len(p), s.at)]
	}
	n, err := s.Conn.Read(p)
	if s.flip && s.at >= 0 && s.at < n {
		p[s.at] ^= 1
	}
	s.at -= n
	return n, err
}

// talk runs f against an upstream, through what spoil makes of the client's end.
func talk(t *testing.T, f func(c io.ReadWriter) error, spoil func(net.Conn) net.Conn) error {
	t.Helper()
	client, upstream := net.Pipe()
	done := make(chan error, 1)
	go func() {
		err := answer(upstream)
		upstream.Close()
		done <- err
	}()
	err := f(spoil(client))
	client.Close()
	if got := <-done; err == nil && got != nil {
		t.Errorf("the upstream returned %v", got)
	}
	return err
}

func TestRequestsAreAnswered(t *testing.T) {
	for name, length := range map[string]int{"nothing": 0, "one byte": 1, "a block": blockBytes, "more": blockBytes + 12345} {
		t.Run(name, func(t *testing.T) {
			err := talk(t, func(c io.ReadWriter) error {
				var h promtext.Histogram
				err := errors.Join(upload(c, length, 1460), download(c, length, burst), pingPong(c, 3, message, &h), upload(c, length, burst))
				if h.Count() != 3 {
					t.Errorf("%d round trips were recorded, not 3", h.Count())
				}
				return err
			}, func(c net.Conn) net.Conn { return c })
			if err != nil {
				t.Error(err)
			}
		})
	}
}

func TestDamageIsSeen(t *testing.T) {
	const length = 100_000
	down := func(c io.ReadWriter) error { return download(c, length, burst) }
	pong := func(c io.ReadWriter) error { return pingPong(c, 3, message, nil) }
	for name, one := range map[string]struct {
		do   func(io.ReadWriter) error
		at   int
		flip bool
		want error
	}{
		"a byte of a download":  {down, 70_000, true, errContent},
		"the end of a download": {down, 70_000, false, io.ErrUnexpectedEOF},
		"a byte of an answer":   {pong, 300, true, errContent},
		"a byte of a receipt":   {func(c io.ReadWriter) error { return upload(c, length, burst) }, 9, true, errContent},
	} {
		t.Run(name, func(t *testing.T) {
			err := talk(t, one.do, func(c net.Conn) net.Conn { return &spoiled{Conn: c, at: one.at, flip: one.flip, cut: !one.flip} })
			if !errors.Is(err, one.want) {
				t.Errorf("%v, want %v", err, one.want)
			}
		})
	}
	if err := checkSum(sum(length)+1, length); !errors.Is(err, errContent) {
		t.Errorf("another checksum: %v", err)
	}
}

func TestBadRequests(t *testing.T) {
	for _, q := range []request{{'X', 1, 1}, {opDownload, 0, 1}, {opDownload, burst + 1, 1}} {
		var b bytes.Buffer
		if err := q.write(&b); err != nil {
			t.Fatal(err)
		}
		if err := answer(&b); err == nil {
			t.Errorf("%+v was answered", q)
		}
	}
	if err := answer(bytes.NewBufferString("U123")); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("half a request: %v", err)
	}
}

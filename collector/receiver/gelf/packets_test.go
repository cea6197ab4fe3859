package gelf

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rollway/rollway/collector/admission"
	"github.com/rollway/rollway/collector/normalize"
	"github.com/rollway/rollway/collector/receiver"
)

// chunksOf cuts a message into chunks of size bytes.
func chunksOf(id uint64, message string, size int) (list []string) {
	count := (len(message) + size - 1) / size
	for i := range count {
		head := []byte{0x1e, 0x0f, byte(id >> 56), byte(id >> 48), byte(id >> 40), byte(id >> 32), byte(id >> 24), byte(id >> 16), byte(id >> 8), byte(id), byte(i), byte(count)}
		list = append(list, string(head)+message[i*size:min(len(message), (i+1)*size)])
	}
	return list
}

// tester sends datagrams to a socket.
type tester struct {
	*socket
	c    *receiver.Chunk
	most int // bytes that were used
}

func newTester(p Protocol) *tester {
	s, _ := p.OpenPackets()
	t := &tester{socket: s.(*socket), c: newChunk("")}
	t.c.Norm = normalize.New(normalize.Limits{MaxPast: -1, MaxFuture: -1, MaxRejections: 1 << 20})
	return t
}

func (t *tester) send(peer string, datagrams ...string) {
	for _, d := range datagrams {
		t.c.Data, t.c.Peer = []byte(d), netip.MustParseAddrPort(peer)
		t.DecodePacket(t.c)
		for i := range t.c.Data { // which the socket may not keep
			t.c.Data[i] = 0xDB
		}
		t.most = max(t.most, t.used)
	}
}

func (t *tester) end(test testing.TB) {
	test.Helper()
	t.c.Data, t.c.End = nil, true
	t.DecodePacket(t.c)
	if t.used != 0 || len(t.messages)+len(t.senders)+t.order.Len()+len(t.socket.most) > 0 {
		test.Errorf("%d bytes, %d messages, %d senders are left", t.used, len(t.messages), len(t.senders))
	}
	if t.most > maxPartial {
		test.Errorf("%d bytes were used", t.most)
	}
}

const a, b = "192.0.2.1:1000", "192.0.2.2:1000"

func text(msg string) string { return `{"short_message":"` + msg + `","level":3}` }

// Chunks make their message in any order, and those that come twice do not matter.
func TestChunks(t *testing.T) {
	for _, how := range []string{"", "zlib", "gzip"} {
		s := newTester(Protocol{})
		want := text(strings.Repeat("é", 500))
		message := want
		if how != "" {
			message = packed(t, how, want)
		}
		list := chunksOf(7, message, 20)
		list = append(list, list[1], list[0])
		random := rand.New(rand.NewPCG(1, 2))
		random.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
		s.send(a, list...)
		s.send(a, list...) // after it was whole
		if got := string(s.c.Batch.AppendTo(nil)); s.c.Batch.Records != 1 || !strings.Contains(got, strings.Repeat("é", 500)) {
			t.Errorf("%q: %d lines, %s", how, s.c.Batch.Records, got)
		}
		s.end(t)
		if s.c.Batch.RejectedTotal != 0 {
			t.Errorf("%q: %+v", how, s.c.Batch.Rejected)
		}
	}
}

// A chunk that is broken, or does not belong to its message, is rejected; the message is stored.
func TestBadChunks(t *testing.T) {
	good := chunksOf(7, text("good"), 20)
	s := newTester(Protocol{})
	s.send(a, good[0])
	for i, c := range []struct{ datagram, detail string }{
		{good[1][:12], "a chunk of 12 bytes has no body after its header of 12"},
		{good[1][:2], "a chunk of 2 bytes has no body after its header of 12"},
		{good[1][:10] + "\x00\x00x", "a chunk is number 0 of 0; expected at most 128, numbered from 0"},
		{good[1][:10] + "\x02\x02x", "a chunk is number 2 of 2; expected at most 128, numbered from 0"},
		{good[1][:10] + "\x02\x81x", "a chunk is number 2 of 129; expected at most 128, numbered from 0"},
		{good[1][:10] + "\x01\x03x", "a chunk is one of 3, those before it were of 2"},
		{good[0] + "x", "chunk 0 of a message has come before and was another"},
	} {
		s.send(a, c.datagram)
		rejected := s.c.Batch.Rejected
		letters := s.c.Batch.DeadLetters()
		if len(rejected) != i+1 || rejected[i].Reason != normalize.ReasonSyntax || rejected[i].Detail != c.detail || string(s.c.Batch.Text(&letters[i])) != c.datagram {
			t.Fatalf("%q: %+v", c.datagram, rejected)
		}
	}
	s.send(b, good[1]) // of another sender
	s.send("192.0.2.1:1001", good[1])
	s.send(a, good[1])
	if got := string(s.c.Batch.AppendTo(nil)); s.c.Batch.Records != 1 || !strings.Contains(got, `"msg":"good"`) {
		t.Errorf("%s", got)
	}
	s.end(t)
	if n := s.c.Batch.RejectedFor(normalize.ReasonTorn); n != 2 || s.c.Batch.RejectedTotal != 9 {
		t.Errorf("%d torn, %+v", n, s.c.Batch.Rejected)
	}
}

// A message that does not become whole within five seconds is one rejected event; what
// comes later begins another. An id may be used again for another message at once.
func TestLateChunks(t *testing.T) {
	s := newTester(Protocol{})
	list := chunksOf(7, text("late"), 10)
	s.send(a, list[0], list[2])
	s.c.Received = received.Add(lifetime - 1)
	s.send(a, chunksOf(8, text("x"), 1000)...)
	if s.c.Batch.RejectedTotal != 0 || s.c.Batch.Records != 1 {
		t.Errorf("%+v", s.c.Batch.Rejected)
	}
	s.send(a, chunksOf(8, text("y"), 1000)...)
	s.c.Received = received.Add(lifetime)
	s.send(b, text("z"))
	letters := s.c.Batch.DeadLetters()
	if r := s.c.Batch.Rejected; len(r) != 1 || r[0].Reason != normalize.ReasonTorn || r[0].Detail != "of 4 chunks of a message 2 have come within 5s" || string(s.c.Batch.Text(&letters[0])) != list[0][12:]+list[2][12:] {
		t.Errorf("%+v", r)
	}
	s.end(t)
	if got := outcome(s.c.Batch); got != "x y torn z" {
		t.Errorf("%s", got)
	}
}

// A message that is too large by its chunks, or unpacked, is one rejected event.
func TestLargeChunks(t *testing.T) {
	s := newTester(Protocol{MaxMessage: 1000})
	s.send(a, chunksOf(1, text(strings.Repeat("x", 2000)), 100)...)
	s.send(a, chunksOf(2, packed(t, "zlib", text(strings.Repeat("x", 2000))), 20)...)
	s.send(a, chunksOf(3, text("fits"), 20)...)
	s.end(t)
	if got := outcome(s.c.Batch); got != "too_large too_large fits" {
		t.Errorf("%s", got)
	}
}

// Random messages of many senders, in random order, some chunks twice, some never: each
// message is one line or one torn event.
func TestRandomChunks(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 50 {
		s := newTester(Protocol{})
		type datagram struct{ peer, data string }
		var all []datagram
		whole, torn := 0, 0
		for i := range 40 {
			peer := fmt.Sprintf("192.0.2.%d:%d", random.IntN(5), 1000+random.IntN(2))
			list := chunksOf(uint64(i), text(strings.Repeat("x", random.IntN(500))), 1+random.IntN(50))
			for len(list) > maxChunks {
				list = chunksOf(uint64(i), text("short"), 9)
			}
			lost := -1
			if len(list) > 1 && random.IntN(4) == 0 {
				lost = random.IntN(len(list))
				torn++
			} else {
				whole++
			}
			for n, d := range list {
				for range 1 + random.IntN(2) {
					if n != lost {
						all = append(all, datagram{peer, d})
					}
				}
			}
		}
		random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		for _, d := range all {
			s.send(d.peer, d.data)
		}
		s.end(t)
		if b := s.c.Batch; b.Records != whole || b.RejectedFor(normalize.ReasonTorn) != torn || b.RejectedTotal != torn {
			t.Fatalf("%d lines, want %d; %d torn, want %d; %+v", b.Records, whole, b.RejectedFor(normalize.ReasonTorn), torn, b.Rejected)
		}
	}
}

// One sender, or many addresses of one network, that sends more than there is room for
// loses its own messages, and not one of a sender who has less.
func TestFlood(t *testing.T) {
	for _, flood := range []func(i int) string{
		func(int) string { return a },
		func(i int) string { return fmt.Sprintf("[2001:db8::%x]:%d", i%1000, 1+i%60000) },
	} {
		s := newTester(Protocol{})
		victim := chunksOf(1, text("victim"), 10)
		s.send(b, victim[0])
		body := strings.Repeat("x", 3000)
		const floods = 3000
		for i := range floods {
			s.send(flood(i), chunksOf(uint64(i), body, 2900)[0])
		}
		s.send(b, victim[1:]...)
		if got := string(s.c.Batch.AppendTo(nil)); s.c.Batch.Records != 1 || !strings.Contains(got, "victim") {
			t.Errorf("the victim's message is lost: %s", got)
		}
		s.end(t)
		if n := s.c.Batch.RejectedFor(normalize.ReasonTorn); n != floods || s.c.Batch.RejectedTotal != floods {
			t.Errorf("%d torn of %d", n, floods)
		}
	}
}

// Of many senders each keeps about its share, and all is counted. Nor do many small
// chunks, or messages that are over, take more than there is.
func TestManySenders(t *testing.T) {
	s := newTester(Protocol{})
	sent := 0
	for i := range 40_000 {
		s.send(fmt.Sprintf("10.0.%d.%d:1", i/100%256, i%100), chunksOf(uint64(i), "{} ", 1)[0])
		sent++
	}
	for i := range 10_000 {
		s.send(a, chunksOf(uint64(i), text("x"), 1000)...)
	}
	if s.c.Batch.Records != 10_000 {
		t.Errorf("%d lines", s.c.Batch.Records)
	}
	s.end(t)
	if n := s.c.Batch.RejectedTotal; n != sent {
		t.Errorf("%d torn of %d", n, sent)
	}
}

// A real socket stores what is whole, rejects the rest when it ends, takes its memory from
// the budget and gives it back, and tells whose the events are.
func TestSocket(t *testing.T) {
	var mu sync.Mutex
	var lines strings.Builder
	store := func(_ context.Context, b *normalize.Batch, _ receiver.StoreOptions) (receiver.Stored, error) {
		mu.Lock()
		defer mu.Unlock()
		lines.Write(b.AppendTo(nil))
		return receiver.Stored{}, nil
	}
	r := receiver.New(receiver.StoreFunc(store), receiver.Options{InFlight: 64 << 20, Admission: admission.New(), Limits: normalize.Limits{MaxPast: -1}})
	ln, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- r.ServePackets(ctx, ln, Protocol{}, nil) }()
	var sending sync.WaitGroup
	const senders, each = 8, 20
	for n := range senders {
		sending.Go(func() {
			conn, err := net.Dial("udp", ln.LocalAddr().String())
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			for i := range each {
				list := chunksOf(uint64(i), packed(t, "zlib", text(strings.Repeat(fmt.Sprint(n), 3000))), 10)
				if i%4 == 0 {
					list = list[1:]
				}
				for _, d := range list {
					conn.Write([]byte(d))
				}
				waitFor(t, func() bool { s := r.Stats(); return s.InFlight > 4<<20 })
			}
		})
	}
	sending.Wait()
	waitFor(t, func() bool { return r.Stats().Stored == senders*each*3/4 || r.Stats().DatagramsDropped > 0 })
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	s := r.Stats()
	all := s.Received == senders*each && s.Stored == senders*each*3/4 && s.Rejected[receiver.ReasonTorn] == senders*each/4
	some := s.DatagramsDropped > 0 && s.Stored < senders*each*3/4 // the system had no room for all
	if s.InFlight != 0 || s.Received != s.Stored+s.RejectedTotal() || !all && !some {
		t.Errorf("%+v", s)
	}
}

func waitFor(t *testing.T, done func() bool) {
	for end := time.Now().Add(time.Minute); !done(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Error("waited a minute")
			return
		}
	}
}

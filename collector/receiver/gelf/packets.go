package gelf

import (
	"bytes"
	"container/heap"
	"container/list"
	"errors"
	"fmt"
	"hash/maphash"
	"net/netip"
	"time"

	"github.com/rollway/rollway/collector/admission"
	"github.com/rollway/rollway/collector/normalize"
	"github.com/rollway/rollway/collector/receiver"
)

// A chunk has a magic number, the id of its message, its number from 0 and how many there
// are, and then a part of the message.
const (
	chunkHeader = 12
	maxChunks   = 128
)

var (
	chunkMagic = []byte{0x1e, 0x0f}
	gzipMagic  = []byte{0x1f, 0x8b}
	inGzip     = []byte("gzip")
	inZlib     = []byte("zlib")
)

// Bounds of the messages that are not whole yet.
const (
	lifetime   = 5 * time.Second // from the first chunk
	maxPartial = 4 << 20         // bytes of a socket

	perMessage = 512 // bytes that one takes beside its chunks
	perChunk   = 32  // that each of its chunks takes before it has come, and again when it has
)

// OpenPackets begins a socket. Beside what is partial there may be one message that is put
// together, and what its unpacking keeps.
func (p Protocol) OpenPackets() (receiver.PacketProtocol, int64) {
	p = p.withDefaults()
	s := &socket{Protocol: p, seed: maphash.MakeSeed(), messages: make(map[messageID]*partial), senders: make(map[netip.Addr]*sender)}
	return s, maxPartial + int64(min(p.MaxMessage, maxPartial)) + receiver.KeptInflated
}

// DecodePacket puts the event of one datagram that stands alone into c.Batch.
func (p Protocol) DecodePacket(c *receiver.Chunk) {
	s, _ := p.OpenPackets()
	s.DecodePacket(c)
	c.End = true
	s.DecodePacket(c)
}

// socket is one socket: what of its messages has come.
type socket struct {
	Protocol
	inflater receiver.Inflater
	seed     maphash.Seed

	messages map[messageID]*partial
	order    list.List // of the same, by the time of their first chunk
	senders  map[netip.Addr]*sender
	most     byBytes // the same, the one with the most bytes first
	used     int     // bytes
}

type messageID struct {
	peer netip.AddrPort
	id   [8]byte
}

// partial is a message that is not whole. Once it is whole or rejected, it stays until
// its time is over, so that chunks that come twice are known.
type partial struct {
	messageID
	from     *sender
	began    time.Time
	inOrder  *list.Element // in socket.order
	inSender *list.Element // in sender.order

	sums   []uint64 // of chunks that have come; 0: it has not
	pieces [][]byte // nil: the message is whole or rejected
	got    int      // chunks
	size   int      // bytes of the message
	cost   int      // bytes
}

// sender is an address with messages.
type sender struct {
	addr  netip.Addr
	order list.List // of its messages, by the time of their first chunk
	bytes int
	at    int // in socket.most
}

// DecodePacket puts the event of a datagram into c.Batch once its message is whole.
func (s *socket) DecodePacket(c *receiver.Chunk) {
	s.expire(c)
	switch {
	case c.End:
	case bytes.HasPrefix(c.Data, chunkMagic):
		s.chunk(c)
	default:
		s.message(c, c.Data)
	}
}

// message adds the event of a whole message.
func (s *socket) message(c *receiver.Chunk, data []byte) {
	text, how := data, []byte(nil)
	switch {
	case bytes.HasPrefix(data, gzipMagic):
		how = inGzip
	case len(data) > 0 && data[0] == 0x78:
		how = inZlib
	}
	if how != nil {
		var err error
		if text, err = s.inflater.Unpack(c, how, data, s.MaxMessage); err != nil {
			reason := normalize.ReasonSyntax
			if errors.Is(err, receiver.ErrInflateLarge) || errors.Is(err, receiver.ErrInflateMemory) {
				reason = normalize.ReasonTooLarge
			}
			c.RejectRaw(reason, "a message: "+err.Error(), data)
			return
		}
		defer s.inflater.Overwrite()
	}
	if len(text) > s.MaxMessage {
		c.RejectRaw(normalize.ReasonTooLarge, s.tooLarge(), data)
		return
	}
	event(c, text)
}

// chunk takes a chunk, and the message if it is whole then.
func (s *socket) chunk(c *receiver.Chunk) {
	reject := func(format string, args ...any) {
		c.RejectRaw(normalize.ReasonSyntax, fmt.Sprintf(format, args...), c.Data)
	}
	if len(c.Data) <= chunkHeader {
		reject("a chunk of %d bytes has no body after its header of %d", len(c.Data), chunkHeader)
		return
	}
	number, count, body := int(c.Data[10]), int(c.Data[11]), c.Data[chunkHeader:]
	if count > maxChunks || number >= count {
		reject("a chunk is number %d of %d; expected at most %d, numbered from 0", number, count, maxChunks)
		return
	}
	id := messageID{c.Peer, [8]byte(c.Data[2:10])}
	sum := maphash.Bytes(s.seed, body) | 1
	m := s.messages[id]
	if m != nil && m.pieces == nil && (len(m.sums) != count || m.sums[number] != 0 && m.sums[number] != sum) {
		s.forget(m) // its id is used again
		m = nil
	}
	switch {
	case m == nil:
		m = s.begin(id, count, c.Received)
	case len(m.sums) != count:
		reject("a chunk is one of %d, those before it were of %d", count, len(m.sums))
		return
	case m.sums[number] == sum: // it comes twice
		return
	case m.sums[number] != 0:
		reject("chunk %d of a message has come before and was another", number)
		return
	}
	m.sums[number] = sum
	if m.pieces == nil {
		return
	}
	last := m.got == count-1
	if !last {
		s.charge(m, len(body)+len(body)/8+perChunk)
		if s.evict(c, m.from); m.pieces == nil {
			return
		}
		body = bytes.Clone(body)
	}
	m.pieces[number] = body
	m.got++
	m.size += len(body)
	switch {
	case m.size > s.MaxMessage:
		c.RejectRaw(normalize.ReasonTooLarge, s.tooLarge(), s.end(m))
	case last:
		text := s.end(m)
		s.evict(c, m.from)
		s.message(c, text)
	}
}

// begin begins a message.
func (s *socket) begin(id messageID, count int, now time.Time) *partial {
	addr := admission.Network(id.peer.Addr())
	from := s.senders[addr]
	if from == nil {
		from = &sender{addr: addr}
		s.senders[addr] = from
		heap.Push(&s.most, from)
	}
	m := &partial{messageID: id, from: from, began: now, sums: make([]uint64, count), pieces: make([][]byte, count)}
	m.inOrder, m.inSender = s.order.PushBack(m), from.order.PushBack(m)
	s.messages[id] = m
	s.charge(m, perMessage+count*perChunk)
	return m
}

// charge changes what a message costs.
func (s *socket) charge(m *partial, bytes int) {
	m.cost += bytes
	m.from.bytes += bytes
	s.used += bytes
	heap.Fix(&s.most, m.from.at)
}

// end returns what has come of a message, and keeps nothing but that it was there.
func (s *socket) end(m *partial) []byte {
	text := bytes.Join(m.pieces, nil)
	m.pieces = nil
	s.charge(m, perMessage+len(m.sums)*perChunk-m.cost)
	return text
}

// forget removes a message.
func (s *socket) forget(m *partial) {
	s.charge(m, -m.cost)
	delete(s.messages, m.messageID)
	s.order.Remove(m.inOrder)
	if m.from.order.Remove(m.inSender); m.from.order.Len() == 0 {
		heap.Remove(&s.most, m.from.at)
		delete(s.senders, m.from.addr)
	}
}

// lose rejects a message that is not whole.
func (s *socket) lose(c *receiver.Chunk, m *partial, why string) {
	detail := fmt.Sprintf("of %d chunks of a message %d have come %s", len(m.sums), m.got, why)
	c.RejectFrom(m.peer, normalize.ReasonTorn, detail, s.end(m))
}

// expire removes the messages whose time is over; at the end, all.
func (s *socket) expire(c *receiver.Chunk) {
	why := "within " + lifetime.String()
	if c.End {
		why = "when the collector stopped"
	}
	for e := s.order.Front(); e != nil; e = s.order.Front() {
		m := e.Value.(*partial)
		if !c.End && c.Received.Sub(m.began) < lifetime {
			return
		}
		if m.pieces != nil {
			s.lose(c, m, why)
		}
		s.forget(m)
	}
}

// evict makes room for what from has sent: its own oldest message goes, or that of the
// sender with the most bytes if from has less.
func (s *socket) evict(c *receiver.Chunk, from *sender) {
	for s.used > maxPartial {
		most := s.most[0]
		if from.bytes >= most.bytes {
			most = from
		}
		if m := most.order.Front().Value.(*partial); m.pieces != nil {
			s.lose(c, m, "when others needed its memory")
		} else {
			s.forget(m)
		}
	}
}

// byBytes is a heap of senders.
type byBytes []*sender

func (h byBytes) Len() int           { return len(h) }
func (h byBytes) Less(i, j int) bool { return h[i].bytes > h[j].bytes }

func (h byBytes) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].at, h[j].at = i, j
}

// Push implements heap.Interface.
func (h *byBytes) Push(x any) {
	x.(*sender).at = len(*h)
	*h = append(*h, x.(*sender))
}

// Pop implements heap.Interface.
func (h *byBytes) Pop() any {
	last := (*h)[len(*h)-1]
	(*h)[len(*h)-1] = nil
	*h = (*h)[:len(*h)-1]
	return last
}

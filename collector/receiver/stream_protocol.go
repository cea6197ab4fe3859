package receiver

import (
	"net/netip"
	"time"

	"github.com/rollway/rollway/collector/clients"
	"github.com/rollway/rollway/collector/normalize"
)

// A StreamProtocol is what one kind of client speaks over a connection. The Receiver
// does the rest. One value serves all connections at once.
type StreamProtocol interface {
	// Name says what the address takes, for the log: "lines of JSON".
	Name() string
	// Open begins a connection.
	Open() Session
	// MaxFrame is how many bytes a Session may have to see at once, where an
	// event has at most maxEvent bytes and the body of a request maxBody. A
	// connection of whose bytes as many are there while Decode takes none is
	// closed, and they count as one event that is too large.
	MaxFrame(maxEvent, maxBody int) int
}

// A Session is one connection of a StreamProtocol. It is called by one
// goroutine at a time.
type Session interface {
	// Decode puts the events of the frames at the beginning of c.Data into
	// c.Batch and returns how many bytes it is done with; the others come
	// again, with more after them, or at once after Chunk.Full. What goes wrong with
	// single events is for the batch. An error closes the connection after the batch
	// was stored.
	Decode(c *Chunk) (n int, err error)
}

// A Greeter is a Session that speaks first.
type Greeter interface {
	// Greet appends what a client is sent when its connection begins.
	Greet(dst []byte) []byte
}

// A Waiter is a Session whose client waits for answers, as long as it hears something.
type Waiter interface {
	// Wait appends what a client is sent once a second while nothing can be stored.
	Wait(dst []byte) []byte
}

// A PacketProtocol is what one kind of client speaks in datagrams. One value
// serves all sockets at once.
type PacketProtocol interface {
	// Name says what the address takes, for the log.
	Name() string
	// DecodePacket puts the events of one whole datagram into c.Batch.
	DecodePacket(c *Chunk)
}

// A PacketOpener is a PacketProtocol that keeps something between datagrams, as parts of
// messages.
type PacketOpener interface {
	PacketProtocol
	// OpenPackets begins a socket. One goroutine at a time calls p for it, the last time
	// with Chunk.End and without data. p keeps at most held bytes between datagrams, which
	// are taken from the budget as long as the socket is open.
	OpenPackets() (p PacketProtocol, held int64)
}

// A Chunk is what has arrived and was not taken yet. What is taken of Data may be
// changed. All of it is the Receiver's again once Decode has returned.
type Chunk struct {
	Data []byte
	// End says that no more will follow. Data then is what the call before has
	// left, and Batch is empty. What the call does not take counts as one event
	// that is torn.
	End bool
	// Holds says that more may follow soon: see Hold.
	Holds    bool
	Received time.Time
	Peer     netip.AddrPort // the zero value if it has no such address
	Norm     *normalize.Normalizer
	Batch    *normalize.Batch
	// Reply is appended to and sent once the batch is stored. If that fails it
	// is not sent, and the connection is closed.
	Reply []byte

	batcher *batcher
	full    bool // Full has said so
	held    bool // Hold has said so
	most    bool // Data cannot become longer
}

// Hold reports whether Decode may leave whole frames, the last n bytes of Data, until more
// has come, as that may belong to them. If nothing comes it is called again, soon.
func (c *Chunk) Hold(n int) bool {
	c.held = c.Holds && !c.End && !c.most && n <= firstRead/2
	return c.held
}

// Waits reports whether Decode may leave whole frames until the rest of what they begin has
// come.
func (c *Chunk) Waits() bool { return !c.End && !c.most }

// alone is from how many bytes on a frame gets a batch of its own.
const alone = 16 << 10

// Full reports whether Decode is to return what it has taken before it takes the next
// frame, of so many bytes or 0: it is called again once that is stored. Short events
// come to many times their size as lines.
func (c *Chunk) Full(next int) bool {
	if c.batcher == nil || c.End {
		return false
	}
	held, free := c.Batch.Held(), c.batcher.free()
	c.full = held > free-free/4 || held > 0 && next > alone
	return c.full
}

// Alone is Full for a frame that is to have a batch of its own, as one with a key
// has.
func (c *Chunk) Alone() bool {
	if c.batcher == nil || c.End {
		return false
	}
	c.full = c.Batch.Events() > 0
	return c.full
}

// SetKey names what is in Batch, of one frame, as Request.SetKey does a request: when
// it comes again it is answered and not stored. Decode then returns, with that frame as
// the last one that it has taken. A Chunk that no Receiver made, or that nothing
// follows, has no key.
func (c *Chunk) SetKey(name string) {
	if c.batcher == nil || c.End {
		return
	}
	c.batcher.space.options.Key = c.batcher.space.scoped(ownKey + name)
	c.full = true
}

// HasKey reports whether SetKey has named what is in Batch.
func (c *Chunk) HasKey() bool { return c.batcher != nil && c.batcher.space.options.Key != "" }

// Acquire takes n bytes of memory from the budget until the batch is stored, and waits
// for them if need be. It reports false if there are none; Decode then returns an
// error. A Chunk that no Receiver made gets all that it asks for.
func (c *Chunk) Acquire(n int) bool {
	f := c.batcher
	if f == nil {
		return true
	}
	if !f.await(f.space.held + int64(n)) {
		return false
	}
	f.extra += int64(n)
	return true
}

// scratch is Acquire for memory that the frames of a batch use one after another: what was
// taken for those before counts.
func (c *Chunk) scratch(n int) bool {
	f := c.batcher
	if f == nil || n <= f.scratch {
		return true
	}
	if !c.Acquire(n - f.scratch) {
		return false
	}
	f.scratch = n
	return true
}

// maxRatio is Options.MaxRatio.
func (c *Chunk) maxRatio() int {
	if c.batcher == nil {
		return defaultRatio
	}
	return int(c.batcher.r.opts.MaxRatio)
}

// RejectRaw counts one event, sent as raw, as rejected for one of normalize's reasons;
// detail tells a human what was found and what was expected.
func (c *Chunk) RejectRaw(reason, detail string, raw []byte) {
	b := c.Norm.Build(c.Batch, c.Received)
	b.Raw(raw)
	b.Reject(reason, detail)
	b.Done()
}

// RejectFrom is RejectRaw for an event of another peer than c.Peer.
func (c *Chunk) RejectFrom(peer netip.AddrPort, reason, detail string, raw []byte) {
	c.RejectRaw(reason, detail, raw)
	if f := c.batcher; f != nil {
		f.others++
		f.r.see(f.receiver, peer.Addr(), f.space.sender, clients.Seen{Events: 1, Rejected: 1})
	}
}

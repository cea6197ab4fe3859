// Package relay measures relays against each other, and repeats the tests of a
// published benchmark of relay buffers, which ran over in-memory pipes, on sockets.
//
// The relay under test is always a separate process, so that its CPU time,
// memory and descriptors are its own. The client is this process, the upstream a
// third one. All bytes are checked: a stream has a known content, and the receiver
// returns its length and CRC-32C.
//
// CPU time is the process clock of the relay and its children, read before and
// after a transfer on a connection that is open and warm. It includes what the
// kernel does for sockets in the context of the relay, for every relay alike.
package relay

// Kind is the name of the results and of their place in the document.
const Kind = "relay"

// Names of the contenders that the tables and pictures look for.
const (
	Ours   = "rollway relay"
	Splice = "io.Copy"
	direct = "direct"
)

// Sizes of writes and messages, in bytes.
const (
	burst   = 64 << 10 // more than any relay's buffer but the largest
	mtu     = 1460     // payload of an Ethernet segment
	message = 200      // a small message
)

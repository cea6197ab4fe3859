// Package relay measures relays against each other and reproduces a published
// benchmark of relay buffers, which ran over an in-memory pipe, on real sockets.
//
// The relay under test is always a process of its own, so that its CPU time,
// memory and descriptors are nobody else's. The client is this process, the
// upstream a third one. All bytes are checked: a stream has a known content,
// and its length and CRC-32C come back from whoever received it.
//
// CPU time is the process clock of the relay, and of its children where it has
// some, read before and after a transfer on a connection that is already open
// and warm. What the kernel does for a socket in the context of the relay is in
// it, as it is for every other relay.
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

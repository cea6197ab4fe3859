// Package relay joins networks. It accepts connections, opens one to an upstream for
// each, and copies bytes both ways until both sides are done.
//
// Its contract:
//
//   - Bytes arrive in order, unchanged and once, or the connection is reset. The end
//     of a stream is passed on after its last byte.
//   - Each direction ends on its own: a side that has finished sending still
//     receives. A reset of one side becomes a reset of the other, after the bytes
//     that came before it.
//   - A slow reader slows down its writer. Bytes wait in the sockets; the relay holds
//     at most one pipe or one buffer for a direction.
//   - While no byte is in flight, a connection uses two descriptors, two small
//     goroutines, no pipe and no buffer.
//   - The relay acknowledges and stores nothing. If its system has accepted bytes and
//     cannot pass them on, they are lost with the connection, and the sender gets a
//     reset.
//
// On Linux, bulk between two plain sockets stays in the kernel (splice(2)). Small
// pieces pass through pooled buffers, as do all bytes with TLS and on other systems.
package relay

// Invariants:
//
//  1. One goroutine copies one direction. It alone reads the source and alone writes
//     the destination, so neither needs a lock.
//  2. A pipe in the pool is empty. A direction owns a pipe from the first byte spliced
//     in to the last one spliced out. A pipe with bytes in it is closed, never put back.
//  3. A direction that waits for its source owns neither pipe nor buffer. It looks at
//     the socket inside the callback of syscall.RawConn.Read, which the runtime calls
//     again when the socket may be ready. So no wake-up is lost.
//  4. conn.reason is set once, by the first cause that ends the connection. conn.kill
//     and conn.abort close the sockets, which makes the directions return. A side
//     without half-close is closed by peer.closeRead or peer.closeWrite.
//  5. A direction whose destination has failed does not close the connection while the
//     other direction may still find bytes that the failed side sent before.
//  6. A connection is in Relay.conns from before its first byte until both directions
//     have returned, its resources are released and its record is in the log queue.
//  7. A direction waits for its source only while the socket's low-water mark is 1. A
//     splice of 0 bytes is not an end: a read decides.
//  8. The direction's goroutine owns pump.wait, except its atomic fields and stall.
//     Each block is followed by an unblock once the write has returned.
//  9. Only the goroutine of a logQueue calls the handlers of Log and Access.

// Package relay joins networks: it takes connections, opens one to an upstream
// for each, and copies bytes both ways until both sides are done.
//
// Its contract:
//
//   - Bytes arrive in order, unchanged and once, or the connection is reset. An
//     end of the stream is passed on only when everything before it was.
//   - Ends are passed on one direction at a time: a side that has finished
//     sending goes on receiving. A reset of one side becomes a reset of the
//     other, after the bytes that came before it.
//   - A slow reader slows down its writer. What waits, waits in the sockets;
//     the relay holds at most one pipe or one buffer for a direction.
//   - While nothing is in flight a connection holds its two descriptors, two
//     small goroutines and no pipe and no buffer.
//   - The relay acknowledges nothing and keeps nothing: bytes that its kernel
//     took from a peer and could not give to the other are lost with the
//     connection, and the peer is told by a reset.
//
// Between two plain sockets on Linux bulk stays in the kernel (splice(2)). Small
// pieces, and with TLS on a side or on other systems all bytes, pass through
// pooled buffers.
package relay

// Invariants:
//
//  1. One goroutine copies one direction. It alone reads the source and alone
//     writes the destination, so neither needs a lock.
//  2. A pipe is empty whenever it is in the pool. A direction owns a pipe from
//     the first byte spliced in to the last spliced out; a pipe with bytes left
//     in it is closed, never given back.
//  3. A direction that waits for its source owns neither pipe nor buffer. It
//     looks at the socket inside the callback of syscall.RawConn.Read, which
//     the runtime calls again when the socket may be ready, so that no wake-up
//     is lost between looking and waiting.
//  4. conn.reason is set once, by whoever ends the connection first. Sockets
//     are closed by conn.kill and conn.abort, which makes the directions return;
//     a side without half-close is closed by its side.closeRead or closeWrite.
//  5. A direction whose destination failed does not close the connection while
//     the other one may still find bytes that the failed side had sent before.
//  6. A connection is in Relay.conns from before its first byte until both
//     directions have returned, all it held is given back, and its record is
//     with records.
//  7. A direction waits for its source only while the socket's low-water mark is 1,
//     and takes a splice of 0 bytes for no end: a read decides.
//  8. pump.wait is owned by the direction's goroutine, but for what is atomic and
//     stall. Whoever calls block calls unblock once the write has returned.
//  9. Handlers of Log and Access are called by the goroutine of records alone.

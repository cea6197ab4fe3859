// Package remote sends lines over the network or to a local socket. Its Writer
// is a line writer that holds nothing back: when Write returns, each line is
// with the peer, counted as lost, or handed back to the caller. It is made to
// sit behind slab.Writer, whose goroutine batches, waits and retries, and it
// can be used directly.
//
//	peer, err := remote.Open("http://127.0.0.1:4318/api/logs", remote.Options{})
//	out, err := slab.New(peer, slab.Options{CloseDestination: true})
//
// # Schemes
//
//	http:// https://     NDJSON in POST requests; each answer acknowledges
//	tcp:// tls:// unix://  lines over a stream; Sync and Close hear that all was read
//	udp:// unixgram://   lines in datagrams; udp is never acknowledged
//
// # What a delivered line is worth
//
// http, https: the peer answered 2xx for the request that held it, and did not
// list it as refused. If the answer never came, the outcome is unknown; Write
// returns an error and the caller sends again, so a line may arrive twice.
// Every request has an Idempotency-Key header, and the next request has the
// same one if it holds the very same bytes as the one that failed just before,
// so that a peer that remembers keys stores them once.
//
// tcp, tls, unix: the line was passed whole to the system. TCP tells a program
// nothing of what its peer has read: lines in the system's buffers when the
// peer dies are lost, and no counter knows. What can be known is used. A
// connection that the peer closed or reset while it was idle is noticed before
// the next line is written. A broken one is told to OnError with the number
// of lines it had carried; on Linux that includes one that the peer closed in
// order while lines were on the way to it. Sync and Close send a FIN (or TLS
// close_notify) and wait until the peer, having read to the end, closes too:
// after a nil from them everything written before was read. Where this is too
// weak, use http.
//
// udp: the line was passed to the system, and nothing more is known: a network
// loses datagrams, repeats them and changes their order, and a full receive
// buffer drops them in silence. Only that no process listens is heard, if the
// peer's system says so: the first datagram of a socket, and the first after a
// refusal, is followed by 50 ms of listening, so that lines stay with the caller
// while the peer is away. A refusal that comes later is told to OnError and by
// the next Sync, with the number of lines sent before.
//
// unixgram: the line is in the queue of the peer's socket. A full queue makes
// Write wait. Lines in the queue when the peer dies are lost unseen. On Linux
// Sync and Close wait until the peer has taken everything.
package remote

// Package remote sends lines over the network or to a local socket. Its Writer
// is a line writer that holds nothing back: when Write returns, each line is
// with the peer, counted as lost, handed back to the caller, or, with
// Options.Spill, on disk. It is made to sit behind slab.Writer, whose goroutine
// batches, waits and retries, and it can be used directly.
//
//	peer, err := remote.Open("http://127.0.0.1:4318/api/logs", remote.Options{})
//	out, err := slab.New(peer, slab.Options{})
//
// # Schemes
//
//	http[s]://host/path             NDJSON in POST requests
//	loki+http[s]://host[/path]      Grafana Loki's push
//	elastic+http[s]://host/index    _bulk of Elasticsearch and OpenSearch
//	tcp://host:port                 lines over a stream
//	tls://host:port
//	unix:///path
//	udp://host:port                 lines in datagrams
//	unixgram:///path
//	syslog+tcp://host:port          RFC 5424 or 3164
//	syslog+tls://host:port
//	syslog+udp://host:port
//	syslog+unix://[/path]           by default /dev/log, datagrams or a stream
//	journald://[/path]              systemd-journald's native socket, on Linux
//
// What Stats.Written, and the same of a Write's n, is worth:
//
//	                 written means          may come   a nil from Sync or Close
//	                                        twice      adds
//	http             a 2xx that is whole    yes        nothing
//	loki             a 2xx that is whole    seldom (1) nothing
//	elastic          the item has 2xx       no         nothing
//	tcp, tls, unix   with the system        no (2)     the peer has read it
//	udp              with the system        by the     nobody refused it
//	                                        network    within 50 ms (3)
//	unixgram,        in the queue of the    no         the peer has read it
//	journald         peer's socket                     (on Linux)
//	syslog+…         as the scheme without syslog+; syslog+unix as the kind of
//	                 socket that is there
//
//	(1) Loki ignores an entry if one with the same time and text is among the
//	    latest of its stream; other engines that speak its protocol may not.
//	(2) but for a line that was torn when a connection broke: it comes whole on
//	    the next one.
//	(3) never heard of on Windows
//
// Lines that were lost, refused by the peer or too large for it, are an error of
// the next Sync or Close over every scheme: it wraps line.ErrLost.
//
// # While the peer is away
//
// Lines stay with the caller, unless Options.Spill names a folder: then each Write
// stores its lines there and returns nil. They are sent from there, in order, when
// the peer takes them, by the next process if need be.
//
// # What a delivered line is worth
//
// http, https: the peer answered 2xx for the request that held it, and did not
// list it as refused. The answer's body must have come to its end and be empty,
// a short text or JSON: after a page in HTML, which is a proxy's or a login's,
// or a body that is cut, Write returns an error as if no answer had come. If
// none came, the outcome is unknown; the caller sends again, so a line may
// arrive twice. Every request has an Idempotency-Key header. A Write that begins
// with the very same bytes as a request that failed sends these alone and with
// the same key, so that a peer that remembers keys stores them once; the latest
// 16 failures are remembered, for two hours.
//
// loki, elastic: the engine tells of single lines what became of them. What it
// has no room for now is sent again, and only that, also if the caller had it
// back in between; what it refuses for what it holds is dropped with its reason.
// Each document of elastic has an id that stays the same when a Write begins with
// the lines whose answer was lost, so that it is stored once.
//
// tcp, tls, unix: the line was passed whole to the system. TCP tells a program
// nothing of what its peer has read: lines in the system's buffers when the
// peer dies are lost, and no counter knows. What can be known is used. A
// connection that the peer closed or reset while it was idle is noticed before
// the next line is written. A broken one is told to OnError with the number
// of lines it had carried; on Linux that includes one that the peer closed in
// order while lines were on the way to it. A peer that vanished without a word is
// noticed after a minute in which it has acknowledged nothing (Linux and macOS; the
// connection of one that lives and takes nothing for so long, with all buffers
// full, is given up as well). Before the first lines of all, and after a connection
// that failed or broke, a new one is listened to for 50 ms: what accepts connections
// and ends them at once, as a load balancer with nothing behind it does, gets no
// lines. Sync and Close send a FIN (or TLS
// close_notify) and wait until the peer, having read to the end, closes too:
// after a nil from them everything written before was read. One whose time
// ends first returns an error and leaves the connection as it is: the peer can
// go on reading, and the next Sync goes on waiting, so that no later nil leaves
// these lines out. A Write meanwhile waits for that peer too, for as long as
// WriteTimeout, and then goes on over a new connection. What nil cannot say:
//
//   - that lines are stored, or were looked at: it is of the process that holds
//     the connection, which may be a proxy or a load balancer, and it has read
//     them, no more. An error that a peer answers on the connection is not read.
//   - anything of a peer that ends its side before ours and reads on
//     (SHUT_WR): its end looks like one after the last line.
//   - anything, ever, of a peer that does not close when it has read a FIN: then
//     Sync takes all of Options.CloseTimeout and returns an error each time.
//
// Where this is too weak, use http.
//
// udp: the line was passed to the system, and nothing more is known: a network
// loses datagrams, repeats them and changes their order, and a full receive
// buffer drops them in silence. Only that no process listens is heard, if the
// peer's system says so: the first datagram of a socket, and the first after a
// refusal, is followed by 50 ms of listening, so that lines stay with the caller
// while the peer is away. A refusal that comes later is told to OnError and by
// the next Sync, with the number of lines sent before. A name is looked up again once a
// minute, and the socket is replaced if its address is none of the answer; when one
// address fails, the next attempt takes another.
//
// unixgram, journald: the line is in the queue of the peer's socket. A full
// queue makes Write wait, at most Options.WriteTimeout, then the rest stays with
// the caller, and the next Write looks anew for a socket at the path. Lines in
// the queue when the peer dies are lost. On Linux Sync and Close wait until the
// peer has taken everything, also from a queue that Write has given up, and
// return an error if the peer's socket has gone or was replaced since the lines
// were sent: then nobody knows whether they were read. A daemon that is replaced
// while its old socket stays open and is read goes on getting the lines until
// the next Sync. What the journal leaves out for its own limits, such as
// RateLimitBurst, it tells nobody but its log.
//
// # Which peer is seen to be away
//
// Options.Spill keeps, and a caller sends again, the lines that are known not to have
// arrived. By HTTP that is every one. Over a stream it is one
// whose connection cannot be made, or is known to have ended; see above for what
// was on the way. A local datagram socket says at once that it is not there, and
// after WriteTimeout that nobody reads it. Over udp the lines before the first
// "port unreachable" are lost and count as written; a host that does not answer
// at all, or a firewall that drops in silence, is never seen to be away.
//
// # Other systems than Linux
//
// journald is refused. macOS and the BSDs do not tell what a local peer has
// read: Sync over unixgram finds out only whether the socket is still there, and
// a stream that the peer closed in order while lines were on the way to it is
// not told from one that it had read to the end. Windows has no unixgram, and
// syslog+unix is a stream there. Go's sockets do not hear of "port unreachable"
// there: over udp no peer is ever seen to be away, and nothing is spilled or
// retried. The code for Windows is compiled and checked by the tools; no test of
// ours has run there.
package remote

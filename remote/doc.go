// Package remote sends lines over the network or to a local socket. Its Writer is a
// line writer that buffers nothing: when Write returns, each line is with the peer,
// counted as lost, handed back to the caller or, with Options.Spill, on disk. It is
// made as the destination of a slab.Writer, which batches, waits and retries in the
// background, and can be used directly.
//
//	peer, err := remote.Open("http://127.0.0.1:4318/api/logs", remote.Options{})
//	out, err := slab.New(peer, slab.Options{})
//
// A batch goes one way through this package: the Writer waits for its turn and gives
// the lines to a sender, one for each transport. A sender encodes them in the peer's
// dialect, writes them to its connection, and reports the outcome of each line. With
// Options.Spill, Write stores the lines in the queue on disk instead (package
// internal/spool), and a window of senders sends them from there.
//
// # Schemes
//
//	http[s]://host/path             NDJSON in POST requests
//	loki+http[s]://host[/path]      Grafana Loki's push
//	elastic+http[s]://host/index    _bulk of Elasticsearch and OpenSearch
//	otlp+http[s]://host[/path]      OpenTelemetry's log records in JSON
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
// What Stats.Written and the n of a Write mean:
//
//	                 a line is written     it may come   a nil from Sync or Close
//	                 when                  twice         also says
//	http             a complete 2xx came   yes           nothing
//	loki             a complete 2xx came   rarely (1)    nothing
//	elastic          its item has a 2xx    no            nothing
//	otlp             a complete 2xx came   yes           nothing
//	tcp, tls, unix   the system has it     no (2)        the peer has read it
//	udp              the system has it     by the        nobody refused it
//	                                       network       within 50 ms (3)
//	unixgram,        the queue of the      no            the peer has read it
//	journald         peer's socket has it                (on Linux)
//	syslog+…         as the scheme without syslog+; syslog+unix as the kind of
//	                 socket that exists
//
//	(1) Loki ignores an entry if one with the same time and text is among the
//	    latest of its stream. Other engines with its protocol may not.
//	(2) Except for a line that was torn when a connection broke: it comes whole on
//	    the next one.
//	(3) Windows does not report refusals.
//
// With every scheme, lines that were lost, refused by the peer or too large for it are
// an error of the next Sync or Close, which wraps line.ErrLost.
//
// While the peer is away lines stay with the caller, unless Options.Spill names a folder:
// then each Write stores its lines there and returns nil. They are sent in order when the
// peer accepts them, if necessary by the next process.
//
// # What a delivered line is worth
//
// http, https: the peer answered 2xx and did not list the line as refused. The answer's
// body must be complete, and empty, a short text or JSON. If it is cut, or an HTML page
// of a proxy or a login, Write returns an error as if no answer had come. Without an
// answer the caller sends the lines again, so a line may arrive twice. Every request has
// an Idempotency-Key header. A Write that begins with the same bytes as a failed request
// sends these alone with the same key, so that a peer that remembers keys stores them
// once. The latest 16 failures are remembered for two hours.
//
// otlp: as http, but nothing recognizes what comes twice. partialSuccess says how many
// records were refused, and why; they count as Dropped.Refused.
//
// loki, elastic: the engine reports single lines. Only lines that it has no room for
// are sent again, also if the caller had them back in between. Lines that it refuses
// for their contents are dropped with its reason. Each document of elastic has an id
// that stays the same when it is sent again, so that it is stored once.
//
// tcp, tls, unix: the system accepted the whole line. TCP does not tell a program what
// its peer has read: lines in the system's buffers are lost when the peer dies, and no
// counter knows. The Writer uses what can be known:
//
//   - Before each line it looks whether the peer has closed or reset the connection.
//   - It tells OnError of a broken connection, with the number of lines it had carried.
//     On Linux that includes a connection that the peer closed in order while lines were
//     in flight.
//   - On Linux and macOS it ends a connection on which the peer has acknowledged nothing
//     for a minute, or accepted nothing with all buffers full.
//   - Before its first lines, and after a failed connection, it listens on a new one for
//     50 ms. A load balancer without servers accepts connections and closes them at
//     once; it gets no lines.
//
// Sync and Close send a FIN (or TLS close_notify) and wait until the peer has read to
// the end and closes too. If their time ends first, they return an error and leave the
// connection as it is: the peer can still read, and the next Sync waits for these lines
// too. Meanwhile a Write waits for that peer for a third of Timeout and then uses a new
// connection. A nil does not say that lines are stored: the process at the other end,
// which may be a proxy, has read them. It says nothing if the peer ends its side before
// ours and reads on (SHUT_WR). If a peer does not close after a FIN, each Sync takes all
// of CloseTimeout and returns an error. Use http where this is too weak.
//
// udp: a network loses, repeats and reorders datagrams, and a full receive buffer drops
// them silently. The Writer only learns that no process listens, if the peer's system
// says so. It listens for 50 ms after the first datagram of a socket and after a refusal,
// so that lines stay with the caller while the peer is away. OnError and the next Sync
// report a later refusal, with the number of lines sent before. The name is looked up
// every minute, and the socket is replaced if its address is no longer among the answers.
// When one address fails, the next attempt uses another.
//
// unixgram, journald: the line is in the queue of the peer's socket. A full queue makes
// Write wait for up to a third of Timeout. The rest then stays with the caller, and the
// next Write looks for a socket at the path again. Lines in the queue are lost when the
// peer dies. On Linux Sync and Close wait until the peer has read everything, also from
// a queue that Write has given up, and return an error if the peer's socket is gone or
// was replaced. The journal reports what it drops for its own limits, such as
// RateLimitBurst, only in its log.
//
// # When a peer counts as away
//
// Lines that are known not to have arrived are stored, or stay with the caller. With HTTP
// that is every such line. With a stream, a line whose connection cannot be made or is
// known to have ended. A local datagram socket reports at once that it is gone, and a
// third of Timeout shows that nobody reads it. With udp the lines before the first "port
// unreachable" are lost and count as written. A host that does not answer, or a firewall
// that drops packets silently, never counts as away.
//
// # Other systems than Linux
//
// journald is refused. macOS and the BSDs do not report what a local peer has read: Sync
// over unixgram only checks that the socket exists, and a stream that the peer closed
// while lines were in flight looks like one that it read to the end. On Windows, where
// the tests have not run, there is no unixgram, syslog+unix is a stream, and a udp peer
// never counts as away.
package remote

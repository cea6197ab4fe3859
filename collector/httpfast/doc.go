// Package httpfast answers small, plain POST requests of HTTP/1.1 with a fraction
// of the processor time that net/http takes for them, and hands every other
// connection, untouched, to net/http.
//
// # What is answered here
//
// A request whose header block is in what has been read of its connection when
// its first byte is, that asks for POST and HTTP/1.1 of a path beginning with a
// slash, with one Host, one Content-Length of 1 or more, no byte outside
// printable ASCII, no line that goes on in the next, lines ended by CR LF, and
// none of Transfer-Encoding, Expect, Upgrade, Trailer, TE, Pragma and a
// Connection other than keep-alive; of at most 64 KiB with its body; and that
// Options.Takes. The whole body is in memory when the handler is called.
//
// With the first request that is anything else, the connection and all that was
// read of it go to the net.Listener that [Server.Rest] returns, which net/http
// serves. So there is one opinion on where an unusual request ends, and it is
// net/http's.
//
// # How connections come back
//
// Where an unusual request has ended only net/http knows, and what it has read
// beyond is in its buffers. Its documented way to hand out both is Hijack, in a
// handler that has read the body to its end. So a server that [Server.Behind] has
// prepared keeps the answer to such a request, has the connection hijacked, and
// the Server sends the answer and goes on with what was read beyond. If the body
// was not read as a whole, one side wants the connection closed, the request is
// not of HTTP/1.1, or its answer is not one of Options.Takes, net/http goes on.
// To take a connection between two requests, by ConnState or by its reads, would
// be to guess what the buffers hold.
//
// To go and come back costs more than to stay. A connection that was handed over
// again before anything was answered here stays for 1, 3, 7 … 1023 requests.
//
// # How
//
// Connections wait in an epoll instance of Linux and have no goroutine while
// they do. As many workers as the program may have threads wait for it; who is
// told of a connection reads from it, calls the handler, writes the answer, and
// waits again: one epoll_wait, one read and one write for a request, and nobody
// is woken. A handler that is about to wait says so by [WillBlock], and another
// worker takes its place; should all of them be stuck without having said it,
// more come within some ms. While 256 wait, the connections of further requests
// go to net/http: so the memory of workers is bounded, at 64 KiB each.
//
// A connection that sends the same headers again, which may differ in
// Content-Length, gets the request that was parsed for the first, and its handler.
// One that always has more to read is given up now and then for the others.
//
// # Differences from net/http
//
// A request's context does not end when its client goes away, and the answer is
// sent as a whole at the end. Header and URL of a request belong to its
// connection: handlers must neither change nor keep them.
//
// On other systems than Linux every connection is net/http's: see [Supported].
package httpfast

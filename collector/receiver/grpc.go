package receiver

import (
	"encoding/binary"
	"fmt"
	"net/http"
)

// GRPC returns a handler for one unary method of gRPC in protocol p, whose Decode gets the
// message and whose Answer sets the trailers; the status of HTTP is always 200. Messages
// have the same limits, budget and codings as bodies have elsewhere.
func (r *Receiver) GRPC(p Protocol) http.Handler {
	return &endpoint{Receiver: r, protocol: p, methods: onlyPost, grpc: true}
}

// messageHead is what comes before a message: a byte that is 1 if it is packed
// as Grpc-Encoding says, and its length, big-endian.
const messageHead = 5

// readMessage reads and unpacks the message in the body of req into w.buf.
func (r *Receiver) readMessage(w *workspace, req *http.Request, declared string) failure {
	w.open(req.Body, r.opts.MaxBody+messageHead)
	head, err := w.peek.Peek(messageHead)
	if f := r.broken(w); f.code != 0 {
		return f
	}
	if err != nil || head[0] > 1 {
		return refuse(http.StatusBadRequest, "a message begins with 0 or 1 and four bytes of its length; this body does not")
	}
	packed, size := head[0] == 1, int64(binary.BigEndian.Uint32(head[1:]))
	w.peek.Discard(messageHead)
	if size > r.opts.MaxBody {
		return r.tooLarge(fmt.Sprintf("the message of %d bytes", size))
	}
	c := asSent
	if packed {
		if declared == "" || declared == codeIdentity || size == 0 {
			return refuse(http.StatusBadRequest, "the message says that it is packed, but Grpc-Encoding does not say how")
		}
		first, err := w.peek.Peek(1)
		if err == nil {
			first, _ = w.peek.Peek(headBytes(first[0]))
		}
		if f := r.broken(w); f.code != 0 {
			return f
		}
		var f failure
		if c, f = codingOf(declared, "", first); f.code != 0 {
			return f
		}
	}
	if f := r.unpack(w, c, size); f.code != 0 {
		return f
	}
	if got := w.wire.n - messageHead; got != size {
		return refuse(http.StatusBadRequest, "the message is %d bytes long, but %d came; nothing was stored", size, got)
	}
	return failure{}
}

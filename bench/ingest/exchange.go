package ingest

import (
	"bytes"
	"io"
	"net/http"
	"time"
)

// An exchange is a request and its answer in memory, without net/http's server
// around them. It is for one goroutine and allocates nothing when it is used
// again.
type exchange struct {
	header http.Header
	code   int
	req    *http.Request
	body   *body
	reader bytes.Reader
}

func newExchange(events int) (*exchange, error) {
	x := &exchange{header: http.Header{}, body: newBody(events)}
	req, err := http.NewRequest(http.MethodPost, "http://127.0.0.1:4318/api/logs", io.NopCloser(&x.reader))
	if err != nil {
		return nil, err
	}
	req.ContentLength = int64(len(x.body.data))
	req.RemoteAddr = peer
	x.req = req
	return x, nil
}

func (x *exchange) Header() http.Header             { return x.header }
func (x *exchange) WriteHeader(code int)            { x.code = code }
func (x *exchange) Write(p []byte) (int, error)     { return len(p), nil }
func (x *exchange) SetReadDeadline(time.Time) error { return nil }

// serve has h answer the events numbered from first on, and returns the status.
func (x *exchange) serve(h http.Handler, first uint64) int {
	x.body.number(first)
	x.reader.Reset(x.body.data)
	clear(x.header)
	x.code = 0
	h.ServeHTTP(x, x.req)
	return x.code
}

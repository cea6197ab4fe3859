package httplog

import (
	"bufio"
	"io"
	"net"
	"net/http"
)

// response is the ResponseWriter of one request. It is for one goroutine at a time.
type response struct {
	http.ResponseWriter
	status   int   // 0 until the response is begun
	bytes    int64 // of the body
	hijacked bool
}

// Unwrap is for http.ResponseController.
func (w *response) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// WriteHeader records the first status that is not informational.
func (w *response) WriteHeader(status int) {
	if status >= 200 || status == http.StatusSwitchingProtocols {
		w.begun(status)
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *response) begun(status int) {
	if w.status == 0 {
		w.status = status
	}
}

func (w *response) Write(p []byte) (int, error) {
	w.begun(http.StatusOK)
	n, err := w.ResponseWriter.Write(p)
	w.bytes += int64(n)
	return n, err
}

// WriteString avoids a copy if the writer below does.
func (w *response) WriteString(s string) (int, error) {
	w.begun(http.StatusOK)
	n, err := io.WriteString(w.ResponseWriter, s)
	w.bytes += int64(n)
	return n, err
}

// ReadFrom avoids a copy from a file to the socket if the writer below does. A src
// that fails before its first byte leaves the response open for an error status; of
// one that panics nothing is known.
func (w *response) ReadFrom(src io.Reader) (n int64, err error) {
	finished := false
	defer func() {
		if n > 0 || !finished {
			w.begun(http.StatusOK)
		}
		w.bytes += n
	}()
	n, err = io.Copy(w.ResponseWriter, src)
	finished = true
	return n, err
}

func (w *response) flush() error {
	w.begun(http.StatusOK)
	return http.NewResponseController(w.ResponseWriter).Flush()
}

func (w *response) hijack() (net.Conn, *bufio.ReadWriter, error) {
	c, b, err := http.NewResponseController(w.ResponseWriter).Hijack()
	w.hijacked = w.hijacked || err == nil
	return c, b, err
}

// upgraded returns w with the optional methods that the writer below has.
func (w *response) upgraded() http.ResponseWriter {
	flushes, hijacks := has[http.Flusher](w.ResponseWriter), has[http.Hijacker](w.ResponseWriter)
	switch {
	case flushes && hijacks:
		return flushHijacker{flusher{w}}
	case flushes:
		return flusher{w}
	case hijacks:
		return hijacker{w}
	}
	return w
}

// has reports whether w, or a writer that it wraps, is a T.
func has[T any](w http.ResponseWriter) bool {
	for {
		if _, ok := w.(T); ok {
			return true
		}
		u, ok := w.(interface{ Unwrap() http.ResponseWriter })
		if !ok {
			return false
		}
		w = u.Unwrap()
	}
}

// Each of these is one pointer, so that it becomes an interface without an
// allocation.
type (
	flusher       struct{ *response }
	hijacker      struct{ *response }
	flushHijacker struct{ flusher }
)

func (w flusher) Flush()            { _ = w.flush() } // an http.Flusher has no error to give
func (w flusher) FlushError() error { return w.flush() }

func (w hijacker) Hijack() (net.Conn, *bufio.ReadWriter, error) { return w.hijack() }

func (w flushHijacker) Hijack() (net.Conn, *bufio.ReadWriter, error) { return w.hijack() }

package collector

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/rollway/rollway/collector/connlimit"
	"github.com/rollway/rollway/collector/httpfast"
	"github.com/rollway/rollway/collector/receiver/otlp"
)

// refusal is what a connection over limits.max_connections is told. It is an
// answer to whatever it was going to ask by HTTP/1.
var refusal = answer503("too many connections are open; try again later")

// answer503 is an answer of HTTP/1 that says why it ends its connection.
func answer503(why string) []byte {
	body := `{"error":"` + why + `"}` + "\n"
	return fmt.Appendf(nil, "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nRetry-After: 1\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
}

// frontLimit is limits.max_connections as package httpfast asks for it.
type frontLimit struct{ *connlimit.Limit }

// Refuse implements httpfast.Limiter.
func (l frontLimit) Refuse(c net.Conn) { l.Limit.Refuse(c, refusal) }

// openFast puts package httpfast in front of the HTTP server where it can be:
// for the patterns in intake and for checks of health, without TLS. An answer to a
// bulk request can be long and is written while the request's memory is still
// counted; gRPC has trailers.
func (c *Collector) openFast(mux *http.ServeMux, intake map[string]bool, errorLog *log.Logger) (*httpfast.Server, error) {
	l, is := c.http.(*net.TCPListener)
	if !is || c.Secure() || !httpfast.Supported {
		return nil, nil
	}
	front, err := httpfast.New(l, httpfast.Options{
		Handler: mux,
		Takes: func(r *http.Request) bool {
			_, pattern := mux.Handler(r)
			if pattern == "/healthz" || pattern == "/readyz" {
				return true
			}
			return intake[pattern] && !strings.HasSuffix(strings.TrimSuffix(pattern, "/{$}"), "/_bulk") && pattern != otlp.GRPCPath
		},
		Route: func(r *http.Request) http.Handler {
			h, pattern := mux.Handler(r)
			if strings.Contains(pattern, "{") {
				return nil // mux puts what stands there into each request
			}
			return h
		},
		Limit:         frontLimit{c.conns},
		HeaderTimeout: c.config.Timeouts.ReadHeader,
		ReadTimeout:   c.config.Timeouts.Read,
		WriteTimeout:  c.config.Timeouts.Write,
		IdleTimeout:   c.config.Timeouts.Idle,
		ErrorLog:      errorLog,
	})
	if err != nil {
		return nil, err
	}
	front.Behind(c.server)
	return front, nil
}

// serveFast serves HTTP at c.http until shutdownHTTP.
func (c *Collector) serveFast() error {
	done := make(chan error, 1)
	go func() { done <- c.server.Serve(c.fast.Rest()) }()
	if err := c.fast.Serve(); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return <-done
}

// leaveHTTP accepts no more, and keeps the connections that are there for
// timeouts.linger, unless they end before. Proxies send requests over them without
// knowing that the collector stops: they are answered, and told that the connection
// ends. One that is closed while a request is on its way costs that request, which
// no proxy sends again by itself, as it is a POST.
func (c *Collector) leaveHTTP() {
	c.leaving.Store(true)
	if c.fast != nil {
		c.fast.Leave() // what it cannot close ends with the process
	} else {
		c.http.Close()
	}
	if c.grpc != nil {
		c.grpc.Close()
	}
	for end := time.Now().Add(c.config.Timeouts.Linger); c.conns.Stats().Open > 0 && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
}

// lastAnswers are those of net/http. Once the collector stops, they tell clients that
// the connection ends.
func (c *Collector) lastAnswers(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c.leaving.Load() && r.ProtoMajor == 1 {
			w.Header().Set("Connection", "close")
		}
		next.ServeHTTP(w, r)
	})
}

// shutdownHTTP lets requests end until ctx does, and cuts off those that have
// not by then, with an error.
func (c *Collector) shutdownHTTP(ctx context.Context) error {
	fast := make(chan error, 1)
	go func() {
		if c.fast == nil {
			fast <- nil
			return
		}
		fast <- c.fast.Shutdown(ctx)
	}()
	err := c.server.Shutdown(ctx)
	if errors.Is(err, net.ErrClosed) { // of listeners, by leaveHTTP
		err = nil
	}
	if err = errors.Join(err, <-fast); err != nil {
		c.server.Close()
	}
	return err
}

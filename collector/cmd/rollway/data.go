package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/rollway/rollway/collector/journal"
	"github.com/rollway/rollway/collector/normalize"
	"github.com/rollway/rollway/collector/query"
	"github.com/rollway/rollway/internal/disk"
)

// dataUsage is the usage of a flag -data.
const dataUsage = "read the data folder `DIR` of a collector that has stopped, instead of asking one"

// asked returns a client for the collector at addr or, if data is given, for the folder data:
// the same endpoints, served by this process. Nothing is written there. Call close when done.
func (c *call) asked(addr, data string) (cl *client, close func(), err error) {
	if data == "" {
		cl, err := newClient(addr)
		return cl, func() {}, err
	}
	if addr != "" {
		return nil, nil, usagef("-addr and -data exclude each other")
	}
	s, err := identify(data)
	if err == nil && s.journal == "" {
		err = fmt.Errorf("%s is not the data folder of a collector", data)
	}
	if err != nil {
		return nil, nil, err
	}
	j, err := journal.OpenReadOnly(s.journal)
	if errors.Is(err, disk.ErrLocked) {
		return nil, nil, fmt.Errorf("a collector has %s open; ask it over HTTP: without -data, and with -addr if it is not at %s", data, defaultAddr)
	}
	if err != nil {
		return nil, nil, err
	}
	for _, f := range j.Recovery().Findings {
		if !f.Harmless() {
			c.say("%s: %s", s.journal, appendPlain(nil, f.String()))
		}
	}
	const long = 30 * 24 * time.Hour // it is this user's machine
	api, err := query.New(j, query.Options{SearchTime: long, SearchCPU: long, WriteTimeout: long, ReadAs: (*normalize.Keys)(nil).ReadAs})
	if err != nil {
		return nil, nil, err
	}
	mux := http.NewServeMux()
	for path, h := range api.Handlers() {
		mux.Handle(path, h)
	}
	server := &http.Server{Handler: mux, ErrorLog: log.New(io.Discard, "", 0)}
	pipes := &pipeListener{conns: make(chan net.Conn), closed: make(chan struct{})}
	go server.Serve(pipes) // until Close
	return &client{base: "http://" + localName, http: &http.Client{Transport: &http.Transport{DialContext: pipes.dial}}},
		func() { api.Close(); server.Close() }, nil
}

// localName is the host of the server in this process.
const localName = "localhost"

// A pipeListener connects a server and clients in this process.
type pipeListener struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (l *pipeListener) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	select {
	case l.conns <- theirs:
		return ours, nil
	case <-l.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Accept implements net.Listener.
func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (l *pipeListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

// Addr implements net.Listener.
func (l *pipeListener) Addr() net.Addr { return &net.UnixAddr{Name: localName} }

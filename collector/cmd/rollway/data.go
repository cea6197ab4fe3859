package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"time"

	"github.com/rollway/rollway/collector/journal"
	"github.com/rollway/rollway/collector/normalize"
	"github.com/rollway/rollway/collector/query"
	"github.com/rollway/rollway/internal/disk"
	"github.com/rollway/rollway/internal/memnet"
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
	l := memnet.Listen()
	go server.Serve(l) // until Close
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) { return l.Dial(ctx) }
	return &client{base: "http://" + localName, http: &http.Client{Transport: &http.Transport{DialContext: dial}}},
		func() { api.Close(); server.Close() }, nil
}

// localName is the host of the server in this process.
const localName = "localhost"

package ingest

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"
)

// SaturationRounds is how often each server is saturated.
const SaturationRounds = 3

// A Saturation is one server that has always had a request on each connection
// (closed loop), by one protocol.
type Saturation struct {
	Server       string   `json:"server"`
	Protocol     protocol `json:"protocol"`
	Events       int      `json:"events"` // in a request
	Conns        int      `json:"conns"`
	Seconds      float64  `json:"seconds"`
	Acknowledged int      `json:"acknowledged"`
	Errors       int      `json:"errors"`
	FirstError   string   `json:"first_error,omitempty"`
	CPUSeconds   float64  `json:"cpu_seconds"`   // of the server
	GenCPU       float64  `json:"generator_cpu"` // cores
	Stored       int      `json:"stored"`        // events found afterwards; -1: it stores nothing
}

// perCore is how many requests are acknowledged for a second of a processor.
func (one Saturation) perCore() float64 {
	return float64(one.Acknowledged) / max(one.CPUSeconds, 1e-9)
}

// saturatedServers are ours, and those that store nothing.
func saturatedServers() []string { return []string{Buffered, OtelMemory, Rotel} }

func saturatedProtocols() []protocol { return []protocol{pathOTLP, pathOTLPJSON} }

// saturate sends requests on l.Conns connections for l.Duration, on each the next
// as soon as the one before is answered, and one at least. Acknowledged and Errors count the
// answers, those that came after the end as well.
func saturate(l load) (Sent, error) {
	conns := make([]net.Conn, 0, l.Conns)
	defer func() {
		for _, c := range conns {
			c.Close()
		}
	}()
	for range l.Conns {
		c, err := net.Dial("tcp", l.Addr)
		if err != nil {
			return Sent{}, err
		}
		conns = append(conns, c)
	}
	var sent, acknowledged atomic.Int64
	var first atomic.Pointer[string]
	var all sync.WaitGroup
	begin := time.Now()
	for _, c := range conns {
		c.SetDeadline(begin.Add(l.Duration + l.Grace))
		all.Go(func() {
			req, a := newRequest(l.Addr, l.Protocol, l.Events), answers{src: c}
			accepted := fmt.Appendf(nil, `"accepted":%d,`, l.Events)
			for n := 0; n == 0 || time.Since(begin) < l.Duration; n++ {
				req.body.number(uint64(sent.Add(1)-1) * uint64(l.Events))
				_, err := c.Write(req.wire)
				var code int
				var body []byte
				if err == nil {
					code, body, err = a.next()
				}
				switch {
				case err == nil && code == l.Want && l.Protocol.takes(body, accepted):
					acknowledged.Add(1)
					continue
				case err == nil:
					err = fmt.Errorf("answer %d: %.200q", code, body)
				}
				text := err.Error()
				first.CompareAndSwap(nil, &text)
				if code == 0 { // the connection is of no more use
					return
				}
			}
		})
	}
	all.Wait()
	s := Sent{Sent: int(sent.Load()), Acknowledged: int(acknowledged.Load()), Seconds: time.Since(begin).Seconds()}
	s.Requests, s.Errors = s.Sent, s.Sent-s.Acknowledged
	if text := first.Load(); text != nil {
		s.FirstError = *text
	}
	return s, nil
}

// MeasureSaturation saturates ours and the rivals that store nothing, one after
// the other, in rounds that begin with another one each, and tells w.
func MeasureSaturation(w io.Writer, s Settings) (list []Saturation, err error) {
	tmp, own, err := s.build()
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(tmp)
	names := saturatedServers()
	programs, _ := s.programs(w, own, names)
	for round := range SaturationRounds {
		for i := range names {
			name := names[(i+round)%len(names)]
			if programs[name] == "" {
				continue
			}
			for _, d := range saturatedProtocols() {
				one, err := measureSaturation(name, programs[name], filepath.Join(tmp, fmt.Sprint("data-", len(list))), load{
					Protocol: d, Events: 1, Duration: s.Duration, Conns: s.Conns, Grace: 10 * time.Second})
				if err != nil {
					return nil, fmt.Errorf("%s at saturation by %s: %w", name, d, err)
				}
				fmt.Fprintf(w, "%s by %s: %.0f requests/s, %.0f for a CPU second, %d errors %s\n", name, d, float64(one.Acknowledged)/one.Seconds, one.perCore(), one.Errors, one.FirstError)
				list = append(list, one)
			}
		}
	}
	return list, nil
}

func measureSaturation(name, program, dir string, l load) (one Saturation, err error) {
	server, err := startServer(name, program, dir)
	if err != nil {
		return one, err
	}
	l.Addr, l.Want = server.addr, server.want
	one = Saturation{Server: name, Protocol: l.Protocol, Events: l.Events, Conns: l.Conns, Stored: -1}
	g, e, err := server.under(saturateRole, l, func(<-chan struct{}) error { return nil })
	one.Seconds, one.Acknowledged, one.Errors, one.FirstError = g.Sent.Seconds, g.Sent.Acknowledged, g.Sent.Errors, g.Sent.FirstError
	one.CPUSeconds, one.GenCPU = e.cpu, e.generator/max(one.Seconds, 1e-9)
	if err := errors.Join(err, server.stop()); err != nil || server.dir == "" {
		return one, err
	}
	one.Stored = 0
	if err := server.stored(func(uint64) error { one.Stored++; return nil }); err != nil {
		return one, err
	}
	if want := one.Acknowledged * one.Events; one.Stored < want {
		return one, fmt.Errorf("%d events were acknowledged, %d are stored", want, one.Stored)
	}
	return one, nil
}

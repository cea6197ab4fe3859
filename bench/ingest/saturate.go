package ingest

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rollway/rollway/bench/internal/measure"
)

// SaturationRounds is how often each server is saturated.
const SaturationRounds = 3

// A Saturation is one server that has always had a request on each connection
// (closed loop), by one receiver.
type Saturation struct {
	Server       string   `json:"server"`
	Receiver     protocol `json:"receiver"`
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
func (one *Saturation) perCore() float64 {
	return float64(one.Acknowledged) / max(one.CPUSeconds, 1e-9)
}

// saturatedServers are those that are saturated: ours, and those that store
// nothing.
func saturatedServers() []string { return []string{Buffered, OtelMemory, Rotel} }

func saturatedReceivers() []protocol { return []protocol{pathOTLP, pathOTLPJSON} }

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
			req, a := newRequest(l.Addr, l.Receiver, l.Events), answers{src: c}
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
				case err == nil && code == l.Want && l.Receiver.takes(body, accepted):
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
			for _, d := range saturatedReceivers() {
				one, err := measureSaturation(name, programs[name], filepath.Join(tmp, fmt.Sprint("data-", len(list))), load{
					Receiver: d, Events: 1, Duration: s.Duration, Conns: s.Conns, Grace: 10 * time.Second})
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
	one = Saturation{Server: name, Receiver: l.Receiver, Events: l.Events, Conns: l.Conns, Stored: -1}
	err = errors.Join(one.under(server, l), server.stop())
	if err != nil || server.dir == "" {
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

// under runs the generator beside the server.
func (one *Saturation) under(server *server, l load) error {
	before, err := cpuOf(server.cmd.Process.Pid)
	if err != nil {
		return err
	}
	gen, out, err := startGenerator(job{Load: l, Saturate: true})
	if err != nil {
		return err
	}
	var g generated
	if err := errors.Join(out.Decode(&g), gen.Wait()); err != nil {
		return err
	}
	after, err := cpuOf(server.cmd.Process.Pid)
	if err != nil {
		return err
	}
	one.Seconds, one.Acknowledged, one.Errors, one.FirstError = g.Sent.Seconds, g.Sent.Acknowledged, g.Sent.Errors, g.Sent.FirstError
	one.CPUSeconds = (after - before).Seconds()
	one.GenCPU = (gen.ProcessState.UserTime() + gen.ProcessState.SystemTime()).Seconds() / one.Seconds
	return nil
}

// saturationTable writes the table of what servers take at most.
func saturationTable(b *strings.Builder, list []Saturation) {
	if len(list) == 0 {
		return
	}
	fmt.Fprintf(b, "\n**At saturation**: on each of %d connections the next request as soon as the one before is answered, %s a run; medians of %d interleaved rounds (least to most)\n\n",
		list[0].Conns, seconds(list[0].Seconds), SaturationRounds)
	t := measure.NewTable("server", "what an answer promises", "protocol", "requests per CPU second", "requests/s", "server's cores", "generator's", "errors")
	for _, d := range saturatedReceivers() {
		for _, name := range saturatedServers() {
			var perCore, rate, cores, gen []float64
			errs := 0
			for _, s := range list {
				if s.Server != name || s.Receiver != d {
					continue
				}
				perCore = append(perCore, s.perCore())
				rate = append(rate, float64(s.Acknowledged)/s.Seconds)
				cores = append(cores, s.CPUSeconds/s.Seconds)
				gen = append(gen, s.GenCPU)
				errs += s.Errors
			}
			if len(rate) == 0 {
				continue
			}
			t.Row(name, promises[name], string(d), middle(perCore, "%.0f"), middle(rate, "%.0f"), middle(cores, "%.2f"), middle(gen, "%.2f"), fmt.Sprint(errs))
		}
	}
	b.WriteString(t.String())
}

// middle is the median of values, with the least and the most.
func middle(values []float64, format string) string {
	slices.Sort(values)
	return fmt.Sprintf(format+" ("+format+"–"+format+")", values[len(values)/2], values[0], values[len(values)-1])
}

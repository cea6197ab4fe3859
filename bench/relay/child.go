package relay

import (
	"bufio"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"time"
)

// childEnv holds the job of a process that this package has started.
const childEnv = "ROLLWAY_BENCH_RELAY"

// A job is what a child does.
type job struct {
	Upstream bool   // be the upstream; otherwise a relay
	Own      bool   // be our relay; otherwise one of pumps
	Pump     string // see pumpOf
	Size     int    // of the pump's buffer, in bytes
	TLS      bool   // for a relay: TLS towards the client
	To       string // for a relay: address of the upstream
	Cert     string // PEM files
	Key      string
}

// ready is a child's first line of output.
type ready struct {
	Addr    string // of its listener
	TLSAddr string // of an upstream's second one
	Error   string
}

// A command is a line of a child's input, gauges the line that answers it.
type command struct {
	Do string
	N  int
}

type gauges struct {
	Heap       uint64 // bytes in spans of the heap that are in use
	Stack      uint64 // bytes of stacks
	Goroutines uint64
	Error      string
}

// Main runs the job of this process and exits, if it has been started as a
// child. Programs that use Run call it first.
func Main() {
	text := os.Getenv(childEnv)
	if text == "" {
		return
	}
	out := json.NewEncoder(os.Stdout)
	var j job
	if err := json.Unmarshal([]byte(text), &j); err != nil {
		out.Encode(ready{Error: err.Error()})
		os.Exit(3)
	}
	r, err := j.start()
	if err != nil {
		out.Encode(ready{Error: err.Error()})
		os.Exit(3)
	}
	out.Encode(r)
	m := memory{job: j}
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		var c command
		err := json.Unmarshal(in.Bytes(), &c)
		if err == nil {
			err = m.do(c)
		}
		g := m.answer
		if err != nil {
			g.Error = err.Error()
		}
		out.Encode(g)
	}
	os.Exit(0) // the parent is gone or has closed the pipe
}

// start listens and serves in the background.
func (j job) start() (ready, error) {
	if j.Pump == "" && !j.Own && !j.Upstream {
		return ready{}, errors.New("a job of nothing")
	}
	config, err := j.serverTLS()
	if err != nil {
		return ready{}, err
	}
	if j.Own {
		addr, err := startOwn(j, config)
		return ready{Addr: addr}, err
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return ready{}, err
	}
	r := ready{Addr: ln.Addr().String()}
	switch {
	case j.Upstream:
		second, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return ready{}, err
		}
		r.TLSAddr = second.Addr().String()
		serve := func(c net.Conn) {
			defer c.Close()
			if err := answer(c); err != nil {
				fmt.Fprintln(os.Stderr, "upstream:", err)
			}
		}
		go accept(ln, nil, serve)
		go accept(second, config, serve)
	default:
		p, err := pumpOf(j.Pump, j.Size)
		if err != nil {
			return ready{}, err
		}
		if !j.TLS {
			config = nil
		}
		go accept(ln, config, func(c net.Conn) {
			up, err := net.Dial("tcp", j.To)
			if err != nil {
				fmt.Fprintln(os.Stderr, "relay:", err)
				c.Close()
				return
			}
			p.both(c, up)
		})
	}
	return r, nil
}

func (j job) serverTLS() (*tls.Config, error) {
	cert, err := tls.LoadX509KeyPair(j.Cert, j.Key)
	if err != nil {
		return nil, err
	}
	return &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS13}, nil
}

// accept serves every connection in a goroutine of its own.
func accept(ln net.Listener, config *tls.Config, serve func(net.Conn)) {
	for {
		c, err := ln.Accept()
		if err != nil {
			fmt.Fprintln(os.Stderr, "accept:", err)
			time.Sleep(10 * time.Millisecond)
			continue
		}
		if config != nil {
			c = tls.Server(c, config)
		}
		go serve(c)
	}
}

// memory carries out commands in a child.
type memory struct {
	job
	answer gauges
	pipes  pipes

	stop chan struct{}
	done sync.WaitGroup
	peak gauges // owned by the watcher until done
}

// Commands.
const (
	doGauge = "gauge" // tell the gauges
	doGC    = "gc"    // collect garbage twice, so that pools are empty, then tell
	doWatch = "watch" // begin to look for the peak
	doPeak  = "peak"  // end it and tell the peak
	doPipes = "pipes" // have N idle relays over in-memory pipes
	doBurst = "burst" // run N relays over in-memory pipes at once
	doSpawn = "spawn" // have N goroutines that hold the buffer and call nothing
)

func (m *memory) do(c command) error {
	switch c.Do {
	case doGauge:
	case doGC:
		content() // whoever needs it has it before the first look
		runtime.GC()
		runtime.GC()
		debug.FreeOSMemory()
	case doWatch:
		m.watch()
		return nil
	case doPeak:
		close(m.stop)
		m.done.Wait()
		m.answer = m.peak
		return nil
	case doPipes, doBurst, doSpawn:
		if m.pipes.pump == nil {
			p, err := pumpOf(m.Pump, m.Size)
			if err != nil {
				return err
			}
			m.pipes.pump = p
		}
		run := map[string]func(int) error{doPipes: m.pipes.grow, doBurst: m.pipes.burst, doSpawn: func(n int) error { return m.pipes.spawn(n, m.Pump, m.Size) }}
		if err := run[c.Do](c.N); err != nil {
			return err
		}
	default:
		return fmt.Errorf("there is no command %q", c.Do)
	}
	m.answer = gauge()
	return nil
}

// watch keeps the gauges of the moment at which heap and stack were largest.
func (m *memory) watch() {
	m.stop, m.peak = make(chan struct{}), gauge()
	m.done.Go(func() {
		for tick := time.NewTicker(2 * time.Millisecond); ; {
			select {
			case <-m.stop:
				tick.Stop()
				return
			case <-tick.C:
				if g := gauge(); g.Heap+g.Stack > m.peak.Heap+m.peak.Stack {
					m.peak = g
				}
			}
		}
	})
}

// gauge reads without stopping the world.
func gauge() gauges {
	s := []metrics.Sample{
		{Name: "/memory/classes/heap/objects:bytes"},
		{Name: "/memory/classes/heap/unused:bytes"},
		{Name: "/memory/classes/heap/stacks:bytes"},
		{Name: "/sched/goroutines:goroutines"},
	}
	metrics.Read(s)
	return gauges{Heap: s[0].Value.Uint64() + s[1].Value.Uint64(), Stack: s[2].Value.Uint64(), Goroutines: s[3].Value.Uint64()}
}

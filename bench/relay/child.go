package relay

import (
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"time"

	"github.com/rollway/rollway/bench/internal/child"
)

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

// ready is what a child says first.
type ready struct {
	Addr    string // of its listener
	TLSAddr string // of an upstream's second one
}

// gauges are a child's answer; the question says whether to collect garbage first.
type gauges struct {
	Heap       uint64 // bytes in spans of the heap that are in use
	Stack      uint64 // bytes of stacks
	Goroutines uint64
}

const role = "relay"

func init() { child.Role(role, job.run) }

// run does the job of a child until its input ends.
func (j job) run() error {
	r, err := j.start()
	if err != nil {
		return err
	}
	out, in := json.NewEncoder(os.Stdout), json.NewDecoder(os.Stdin)
	if err := out.Encode(r); err != nil {
		return err
	}
	for {
		var collect bool
		if in.Decode(&collect) != nil {
			return nil
		}
		if collect {
			runtime.GC()
			runtime.GC() // so that pools are empty
			debug.FreeOSMemory()
		}
		if err := out.Encode(gauge()); err != nil {
			return err
		}
	}
}

// A process is the upstream or a relay.
type process struct {
	*child.Process
	ready
}

// startChild runs this program again with a job.
func startChild(j job) (*process, error) {
	p, err := child.Start(role, j)
	if err != nil {
		return nil, err
	}
	started := &process{Process: p}
	if err := p.Receive(&started.ready); err != nil {
		return nil, errors.Join(err, p.Stop())
	}
	return started, nil
}

// startProgram runs another program, which shall listen at addr.
func startProgram(addr, name string, args ...string) (*process, error) {
	p, err := child.Program(exec.Command(name, args...), addr)
	return &process{p, ready{Addr: addr}}, err
}

// gauge asks a child of ours.
func (p *process) gauge(collect bool) (g gauges, err error) {
	err = p.Ask(collect, &g)
	return g, err
}

// settle waits until a child of ours has no more goroutines than n.
func (p *process) settle(n uint64) (gauges, error) {
	for begin := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		g, err := p.gauge(false)
		if err != nil || g.Goroutines <= n {
			return g, err
		}
		if time.Since(begin) > time.Minute {
			return g, fmt.Errorf("the relay still has %d goroutines, %d before the connections came", g.Goroutines, n)
		}
	}
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

package relay

import (
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
)

// pipes are relays between in-memory pipes within one process, the way the
// published benchmark had them.
type pipes struct {
	pump pump
	idle []net.Conn
	held sync.WaitGroup
	free chan struct{}
}

// pair starts a relay and returns its ends.
func (p *pipes) pair() (client, upstream net.Conn) {
	client, a := net.Pipe()
	upstream, b := net.Pipe()
	go p.pump.both(a, b)
	return client, upstream
}

// grow brings the number of idle relays to n; each has passed on one message in
// each direction.
func (p *pipes) grow(n int) error {
	for len(p.idle) < 2*n {
		client, upstream := p.pair()
		p.idle = append(p.idle, client, upstream)
		if err := errors.Join(pass(upstream, client, message), pass(client, upstream, message)); err != nil {
			return err
		}
	}
	return nil
}

// pass sends n bytes from src to dst and checks them.
func pass(dst, src net.Conn, n int) error {
	sent := make(chan error, 1)
	go func() { sent <- send(src, n, burst) }()
	var buf [512]byte // small, as this process is the one whose memory is measured
	got, err := receiveBy(dst, n, buf[:])
	return errors.Join(err, <-sent, checkSum(got, n))
}

// burst runs n relays at once, each with burstBytes, and waits until they ended.
func (p *pipes) burst(n int) error {
	errs := make(chan error, n)
	for range n {
		go func() {
			client, upstream := p.pair()
			err := pass(upstream, client, burstBytes)
			client.Close()
			// The relay has ended when it has closed this end too.
			_, end := upstream.Read(make([]byte, 1))
			if end != io.EOF {
				err = errors.Join(err, fmt.Errorf("the end came through as %v", end))
			}
			errs <- errors.Join(err, upstream.Close())
		}()
	}
	var all error
	for range n {
		all = errors.Join(all, <-errs)
	}
	return all
}

// burstBytes is what each connection of a burst carries.
const burstBytes = 256 << 10

// spawn starts goroutines until n keep a buffer of the pump's kind. They pass it to
// nothing that could move it to the heap, as in the published measurement.
func (p *pipes) spawn(n int, name string, size int) error {
	if p.free == nil {
		p.free = make(chan struct{})
	}
	pool := &sync.Pool{New: func() any { b := make([]byte, size); return &b }}
	for len(p.idle) < n {
		p.idle = append(p.idle, nil)
		p.held.Add(1)
		started := make(chan struct{})
		if name == pumpStack {
			go holdOnStack(&p.held, started, p.free)
		} else {
			go func() {
				defer p.held.Done()
				buf := pool.Get().(*[]byte)
				defer pool.Put(buf)
				touch(*buf)
				close(started)
				<-p.free
			}()
		}
		<-started
	}
	return nil
}

func holdOnStack(held *sync.WaitGroup, started, free chan struct{}) {
	defer held.Done()
	var buf [stackBytes]byte
	touch(buf[:])
	close(started)
	<-free
	touch(buf[:])
}

// touch writes to each page, so that it exists.
func touch(b []byte) {
	for i := 0; i < len(b); i += 4096 {
		b[i]++
	}
}

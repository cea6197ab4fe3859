package chaos

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// openAtOnce is how many connections there are at a time. Each needs a
// descriptor here and one in the collector.
const openAtOnce = 9900

// manyConnections has a request come over each of many connections that stay
// open, has the collector killed, and sends all of it again over as many.
func manyConnections(s *scene) error {
	s.config += "timeouts:\n  read_header: 1m\n" // the first waits until all are open
	if err := s.start(); err != nil {
		return err
	}
	n := pick(s, openAtOnce, 2000)
	numbers := make([]int, n)
	for i := range numbers {
		numbers[i] = s.account.next()
	}
	s.load.begin(2, 20*time.Millisecond) // beside them
	for round := range 2 {
		conns, err := s.sendOverAll(numbers)
		if err != nil {
			return err
		}
		s.try.Rounds++
		if err := s.reconcile(true); err != nil {
			return err
		}
		if round == 0 {
			s.kill()
		}
		for _, c := range conns {
			c.Close()
		}
		if round == 0 {
			if err := s.check(false); err != nil {
				return err
			}
			if err := s.start(); err != nil {
				return err
			}
		}
	}
	return s.end()
}

// sendOverAll opens a connection for each request, then sends all of them.
func (s *scene) sendOverAll(numbers []int) ([]net.Conn, error) {
	conns := make([]net.Conn, len(numbers))
	for i := range conns {
		c, err := net.DialTimeout("tcp", s.addr, 30*time.Second)
		if err != nil {
			return nil, fmt.Errorf("connection %d: %w", i, err)
		}
		conns[i] = c
	}
	var next atomic.Int64
	var failed atomic.Pointer[error]
	var senders sync.WaitGroup
	for range 64 {
		senders.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(numbers)); i = next.Add(1) - 1 {
				if err := s.sendOver(conns[i], numbers[i]); err != nil {
					failed.Store(&err)
				}
			}
		})
	}
	senders.Wait()
	if err := failed.Load(); err != nil {
		return nil, *err
	}
	return conns, nil
}

// sendOver sends one request over a connection that stays open.
func (s *scene) sendOver(c net.Conn, number int) error {
	b := body(number)
	c.SetDeadline(time.Now().Add(time.Minute))
	head := fmt.Sprintf("POST /api/logs HTTP/1.1\r\nHost: %s\r\nIdempotency-Key: %s\r\nContent-Length: %d\r\n\r\n", s.addr, s.load.key(number), len(b))
	s.load.count(func(t *Try) { t.Attempts++ })
	if _, err := c.Write(append([]byte(head), b...)); err != nil {
		return err
	}
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	return s.load.answered(number, resp)
}

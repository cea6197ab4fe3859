package ingest

import (
	"crypto/tls"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/rollway/rollway/bench/internal/measure"
	"github.com/rollway/rollway/bench/internal/pace"
	"github.com/rollway/rollway/internal/promtext"
)

// A load is what the generator sends. Request k is due k/Rate after the begin,
// on connection k modulo Conns, whatever became of those before (open loop).
type load struct {
	Addr     string        `json:"addr"`
	TLS      bool          `json:"tls"`
	Protocol protocol      `json:"protocol"`
	Rate     int           `json:"rate"`     // requests a second
	Events   int           `json:"events"`   // in a request
	Duration time.Duration `json:"duration"` // of the schedule
	Warm     time.Duration `json:"warm"`     // at its begin, sent and checked but not timed
	Conns    int           `json:"conns"`
	Want     int           `json:"want"` // status of a request that is acknowledged
	Grace    time.Duration `json:"grace"`
}

func (l load) requests() int { return int(l.Duration.Seconds() * float64(l.Rate)) }

func (l load) due(k int) time.Duration {
	return time.Duration(float64(k) / float64(l.Rate) * float64(time.Second))
}

// Sent is what became of a load. A request is acknowledged by the status wanted
// and, if the answer has a body, by it counting all events; every other is an
// error, those included that had no answer when the grace was over.
type Sent struct {
	Requests     int     `json:"requests"` // of the schedule
	Sent         int     `json:"sent"`     // of these
	Acknowledged int     `json:"acknowledged"`
	Errors       int     `json:"errors"`
	FirstError   string  `json:"first_error,omitempty"`
	Seconds      float64 `json:"seconds"` // from the begin to the last answer

	// Latency is from when a timed request was due to its answer; one without
	// has waited until the end.
	Latency measure.Quantiles `json:"latency"`
	// Lag is by how much a request was sent late on a connection that was free:
	// it is in Latency, but the generator's and the machine's.
	Lag measure.Quantiles `json:"lag"`
}

// A generator sends one load. One goroutine sends each request when it is due;
// a connection whose answer is still out sends it as soon as that has come.
type generator struct {
	load
	alarm *pace.Alarm
	begin time.Time
	conns []*conn
	done  sync.WaitGroup // readers of connections

	mu    sync.Mutex // guards the rest
	sent  Sent
	times promtext.Histogram
	lags  promtext.Histogram
	acked []byte // a bit for each request
	last  time.Duration
}

// A conn is one connection. mu orders who writes: the sender or the reader.
type conn struct {
	net.Conn
	req  *request
	mu   sync.Mutex
	out  int // the request whose answer is awaited, -1: none
	next int // the first that was not sent
	due  int // the first that is not due yet
	dead bool
}

// generate sends the load and returns its account and a bit for each request
// that was acknowledged.
func generate(l load) (Sent, []byte, error) {
	alarm, err := pace.NewAlarm()
	if err != nil {
		return Sent{}, nil, err
	}
	defer alarm.Close()
	g := &generator{load: l, alarm: alarm, acked: make([]byte, (l.requests()+7)/8)}
	for i := range l.Conns {
		c, err := net.Dial("tcp", l.Addr)
		if err != nil {
			for _, c := range g.conns {
				c.Close()
			}
			return Sent{}, nil, err
		}
		if tcp, ok := c.(*net.TCPConn); ok { // so that a request never waits in the sender
			tcp.SetWriteBuffer(256 << 10)
		}
		if l.TLS {
			c = tls.Client(c, anyServer)
		}
		g.conns = append(g.conns, &conn{Conn: c, req: newRequest(l.Addr, l.Protocol, l.Events), out: -1, next: i, due: i})
	}
	g.begin = time.Now().Add(20 * time.Millisecond)
	for _, c := range g.conns {
		g.done.Go(func() { g.read(c) })
	}
	g.send()
	g.finish()
	return g.sent, g.acked, nil
}

// send lets requests become due, one after the other.
func (g *generator) send() {
	for k := range g.requests() {
		due := g.due(k)
		g.alarm.SleepUntil(g.begin, due)
		c := g.conns[k%g.Conns]
		c.mu.Lock()
		c.due = k + g.Conns
		free := c.out < 0
		g.sendLocked(c)
		c.mu.Unlock()
		if free {
			g.mu.Lock()
			if due >= g.Warm {
				g.lags.Record(time.Since(g.begin) - due)
			}
			g.mu.Unlock()
		}
	}
}

// sendLocked sends the next request of c that is due, if c is free.
func (g *generator) sendLocked(c *conn) {
	if c.dead || c.out >= 0 || c.next >= c.due {
		return
	}
	k := c.next
	c.out, c.next = k, k+g.Conns
	c.req.body.number(uint64(k) * uint64(g.Events))
	if _, err := c.Write(c.req.wire); err != nil {
		c.dead = true // its reader sees it too
	}
}

// read takes the answers of c until there are no more, or it is closed.
func (g *generator) read(c *conn) {
	a := answers{src: c}
	accepted := fmt.Appendf(nil, `"accepted":%d,`, g.Events)
	for {
		code, body, err := a.next()
		if err == nil && (code != g.Want || !g.Protocol.takes(body, accepted)) {
			err = fmt.Errorf("answer %d: %.200q", code, body)
		} else if err != nil {
			c.fail(g, err)
			return
		}
		now := time.Since(g.begin)
		c.mu.Lock()
		k := c.out
		c.out = -1
		g.sendLocked(c)
		c.mu.Unlock()
		if k < 0 {
			c.fail(g, fmt.Errorf("an answer to nothing: %d", code))
			return
		}
		g.answered(k, now, err)
	}
}

// fail ends the use of a connection; what is out on it stays unanswered.
func (c *conn) fail(g *generator, err error) {
	c.mu.Lock()
	c.dead = true
	waiting := c.out >= 0
	c.mu.Unlock()
	if waiting {
		g.note(err)
	}
}

func (g *generator) note(err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.sent.FirstError == "" {
		g.sent.FirstError = err.Error()
	}
}

func (g *generator) answered(k int, now time.Duration, err error) {
	if err != nil {
		g.note(err)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.last = max(g.last, now)
	if due := g.due(k); due >= g.Warm {
		g.times.Record(now - due)
	}
	if err == nil {
		g.acked[k/8] |= 1 << (k % 8)
		g.sent.Acknowledged++
	}
}

// finish waits for the answers that are out, for the grace at most, and makes
// up the account.
func (g *generator) finish() {
	for limit := g.Duration + g.Grace; g.waiting() && time.Since(g.begin) < limit; {
		time.Sleep(2 * time.Millisecond)
	}
	for _, c := range g.conns {
		c.Close()
	}
	g.done.Wait()
	now := time.Since(g.begin)
	s := &g.sent
	s.Requests = g.requests()
	for i, c := range g.conns {
		s.Sent += (c.next - i) / g.Conns
		unanswered := c.next
		if c.out >= 0 {
			unanswered = c.out
		}
		for k := unanswered; k < s.Requests; k += g.Conns {
			if due := g.due(k); due >= g.Warm {
				g.times.Record(now - due)
			}
		}
	}
	s.Errors = s.Requests - s.Acknowledged
	s.Seconds, s.Latency, s.Lag = g.last.Seconds(), measure.QuantilesOf(&g.times), measure.QuantilesOf(&g.lags)
}

// waiting reports whether an answer can still come.
func (g *generator) waiting() bool {
	for _, c := range g.conns {
		c.mu.Lock()
		waits := !c.dead && (c.out >= 0 || c.next < c.due)
		c.mu.Unlock()
		if waits {
			return true
		}
	}
	return false
}

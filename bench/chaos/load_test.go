package chaos

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// A load is clients that send requests until they are told to stop.
type load struct {
	addr    string // host:port
	account *account
	scope   string // of the keys
	token   string // empty: none
	client  *http.Client

	abortEvery int // one request in so many is first sent on a connection that is closed in its body
	again      int // how often a request is sent at the same time

	mu      sync.Mutex
	try     *Try          // counts; guarded by mu
	ending  chan struct{} // closed: begin no more requests
	clients sync.WaitGroup
	sending sync.RWMutex // read-locked during an attempt
}

func newLoad(addr, scope string, a *account, t *Try) *load {
	return &load{
		addr: addr, account: a, scope: scope, try: t, ending: make(chan struct{}),
		client: &http.Client{
			Timeout:   30 * time.Second,
			Transport: &http.Transport{MaxIdleConnsPerHost: 64, DialContext: (&net.Dialer{Timeout: 5 * time.Second}).DialContext},
		},
		abortEvery: 13, again: 1,
	}
}

// begin starts n clients. Each sends a request at most every pause.
func (l *load) begin(n int, pause time.Duration) {
	for range n {
		l.clients.Go(func() {
			for {
				select {
				case <-l.ending:
					return
				case <-time.After(pause):
				}
				l.resolve(l.account.next())
			}
		})
	}
}

// drain has the clients finish what they have begun, and ends them.
func (l *load) drain() error {
	close(l.ending)
	var done atomic.Bool
	go func() {
		l.clients.Wait()
		done.Store(true)
	}()
	err := await("acknowledgements after the end of the fault", l.account.acked, done.Load)
	l.client.CloseIdleConnections()
	return err
}

// pause lets no attempt begin and waits for those under way; resume ends it.
func (l *load) pause() (resume func()) {
	l.sending.Lock()
	return l.sending.Unlock
}

func (l *load) count(change func(t *Try)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change(l.try)
}

// resolve sends a request until it is acknowledged.
func (l *load) resolve(number int) {
	if number%l.abortEvery == l.abortEvery/2 {
		l.abort(number)
	}
	for n := 0; ; n++ {
		if l.attempts(number) {
			break
		}
		time.Sleep(min(time.Duration(n+1)*3*time.Millisecond, 100*time.Millisecond))
	}
	if number%10 == 3 { // once more
		l.attempts(number)
	}
	if number%25 == 1 && number > 400 { // an old one
		l.attempts(number - 400)
	}
}

// attempts sends a request, perhaps several times at the same time, and reports
// whether it is acknowledged.
func (l *load) attempts(number int) bool {
	l.sending.RLock()
	defer l.sending.RUnlock()
	copies := l.again
	if number%17 == 5 {
		copies = max(copies, 2)
	}
	var sending sync.WaitGroup
	acked := make([]bool, copies)
	for i := range copies {
		sending.Go(func() { acked[i] = l.attempt(number) })
	}
	sending.Wait()
	for _, ok := range acked {
		if ok {
			return true
		}
	}
	return false
}

func (l *load) key(number int) string { return fmt.Sprintf("%s-%d", l.scope, number) }

func (l *load) attempt(number int) bool {
	req, err := http.NewRequestWithContext(context.Background(), http.MethodPost, "http://"+l.addr+"/api/logs", bytes.NewReader(body(number)))
	if err != nil {
		return false
	}
	req.Header.Set("Idempotency-Key", l.key(number))
	if number%3 == 0 {
		req.Header.Set("X-Durability", "synced")
	}
	if l.token != "" {
		req.Header.Set("Authorization", "Bearer "+l.token)
	}
	l.count(func(t *Try) { t.Attempts++ })
	resp, err := l.client.Do(req)
	if err != nil {
		l.count(func(t *Try) { t.Cut++ })
		return false
	}
	defer resp.Body.Close()
	return l.answered(number, resp) == nil
}

// answered notes an answer; an error says that it is no acknowledgement.
func (l *load) answered(number int, resp *http.Response) error {
	text, err := io.ReadAll(resp.Body)
	var answer struct {
		Accepted int     `json:"accepted"`
		First    *uint64 `json:"first_offset"`
	}
	switch {
	case err != nil:
		l.count(func(t *Try) { t.Cut++ })
		return err
	case resp.StatusCode != http.StatusOK:
		l.count(func(t *Try) { t.Refused++ })
		return fmt.Errorf("request %d: %s: %s", number, resp.Status, text)
	case json.Unmarshal(text, &answer) != nil || answer.First == nil || answer.Accepted != events(number):
		l.count(func(t *Try) { t.Changed++ })
		return fmt.Errorf("request %d: %s", number, text)
	}
	again, same := l.account.ack(number, *answer.First)
	l.count(func(t *Try) {
		if again {
			t.Repeated++
		}
		if !same {
			t.Changed++
		}
	})
	return nil
}

// abort sends a part of a request and closes the connection.
func (l *load) abort(number int) {
	l.sending.RLock()
	defer l.sending.RUnlock()
	c, err := net.DialTimeout("tcp", l.addr, 5*time.Second)
	if err != nil {
		return
	}
	defer c.Close()
	b := body(number)
	fmt.Fprintf(c, "POST /api/logs HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nIdempotency-Key: %s\r\nContent-Length: %d\r\n\r\n", l.addr, l.token, l.key(number), len(b))
	c.Write(b[:(number*31)%len(b)]) // never all of it
	if number%2 == 0 {
		c.(*net.TCPConn).SetLinger(0)
	}
	l.count(func(t *Try) { t.Aborted++; t.Attempts++ })
}

// stalledAfter is how long nothing may come on before a try has failed. How long
// all of it takes is the machine's business.
const stalledAfter = time.Minute

// await waits until done says so, as long as progress, which counts what leads
// there, changes within stalledAfter.
func await(what string, progress func() int, done func() bool) error {
	for since, last := time.Now(), progress(); !done(); time.Sleep(5 * time.Millisecond) {
		switch now := progress(); {
		case now != last:
			since, last = time.Now(), now
		case time.Since(since) > stalledAfter:
			return fmt.Errorf("%s: no progress within %v", what, stalledAfter)
		}
	}
	return nil
}

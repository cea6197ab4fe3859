package clients

import (
	"context"
	"log/slog"
	"maps"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Reasons besides those of a status: what happens before there is a request, or without.
const (
	Connections = "connections" // too many are open
	Handshake   = "tls"         // a TLS handshake failed
	Header      = "header"      // of a request; net/http cannot read it, or it ended early
	Protocol    = "protocol"    // the client speaks another one
	Other       = "other"
)

// reasons are those of each status.
var reasons = map[int]string{
	http.StatusUnauthorized:          "unauthorized",
	http.StatusForbidden:             "forbidden",
	http.StatusNotFound:              "not_found",
	http.StatusMethodNotAllowed:      "method",
	http.StatusRequestTimeout:        "timeout",
	http.StatusRequestEntityTooLarge: "too_large",
	http.StatusUnsupportedMediaType:  "coding",
	http.StatusTooManyRequests:       "rate",
	http.StatusServiceUnavailable:    "unavailable",
}

const (
	invalid = "invalid" // 400 and every other 4xx
	failed  = "failed"  // every other 5xx
)

// Reason returns why an answer with a status refuses its request; "": it does not.
func Reason(status int) string {
	switch reason := reasons[status]; {
	case reason != "":
		return reason
	case status >= 500:
		return failed
	case status >= 400:
		return invalid
	}
	return ""
}

// Reasons returns all that Seen.Refused may be.
func Reasons() []string {
	list := slices.Sorted(maps.Values(reasons))
	return append(list, Connections, Handshake, Header, Protocol, Other, invalid, failed)
}

// Refusals is how often clients were turned away.
type Refusals struct {
	Receiver, Reason string
	Token, Network   string // "other" beyond a number of them
	Count            uint64
}

// Bounds of the combinations that are counted apart: of one receiver and reason, and all.
const (
	maxOfClass = 32
	maxSeries  = 300
)

// logEvery is how often a class is logged at most.
const logEvery = time.Minute

// refusals counts who is turned away, and logs some.
type refusals struct {
	log *slog.Logger

	mu      sync.Mutex
	series  map[series]uint64 // guarded by mu
	classes map[class]*recent // guarded by mu
}

// class is what one line of the log is for.
type class struct{ receiver, reason string }

type series struct {
	class
	token   string
	network netip.Prefix
	other   bool // any token and network
}

// recent is what the log was not told of a class.
type recent struct {
	count   int
	example Seen
	logged  time.Time
	series  int // of the class
}

func (r *refusals) add(now time.Time, s *Seen) {
	reason := s.Refused
	if !slices.Contains(allReasons, reason) {
		reason = Other
	}
	k := series{class: class{s.Receiver, reason}, token: s.Token, network: network(s.Addr)}
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.classes[k.class]
	if c == nil {
		c = &recent{logged: now.Add(-logEvery)}
		r.classes[k.class] = c
	}
	if _, known := r.series[k]; !known {
		if c.series >= maxOfClass || len(r.series) >= maxSeries {
			k = series{class: k.class, other: true}
		} else {
			c.series++
		}
	}
	r.series[k]++
	if c.count++; c.count == 1 {
		c.example = *s
		c.example.Path, c.example.Text = short(s.Path, maxText), short(s.Text, maxText)
	}
	r.tellLocked(now, k.class, c)
}

var allReasons = Reasons()

// tellLocked logs what is not logged of a class, if that is due.
func (r *refusals) tellLocked(now time.Time, k class, c *recent) {
	if c.count == 0 || now.Sub(c.logged) < logEvery {
		return
	}
	e := &c.example
	r.log.Warn("clients are turned away", "receiver", k.receiver, "reason", k.reason, "count", c.count,
		"client", e.Addr.String(), "token", e.Token, "path", printable(e.Path), "answer", printable(e.Text))
	c.count, c.example, c.logged = 0, Seen{}, now
}

// printable is text with escapes for all that is not printable.
func printable(text string) string {
	var b strings.Builder
	for _, r := range text {
		if strconv.IsPrint(r) {
			b.WriteRune(r)
		} else {
			b.WriteString(strings.Trim(strconv.QuoteRuneToASCII(r), "'"))
		}
	}
	return b.String()
}

// Watch logs, until ctx ends, one line a minute for each receiver and reason for which
// clients were turned away: how many, and who was the first. The first in a minute is
// logged at once.
func (t *Table) Watch(ctx context.Context) {
	tick := time.NewTicker(logEvery / 12)
	defer tick.Stop()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
			t.refused.tell(time.Now().Add(logEvery)) // what is left
		case now := <-tick.C:
			t.refused.tell(now)
		}
	}
}

func (r *refusals) tell(now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for k, c := range r.classes {
		r.tellLocked(now, k, c)
	}
}

// Refusals returns the counts since New.
func (t *Table) Refusals() (list []Refusals) {
	r := &t.refused
	r.mu.Lock()
	defer r.mu.Unlock()
	for k, n := range r.series {
		one := Refusals{Receiver: k.receiver, Reason: k.reason, Token: k.token, Network: k.network.String(), Count: n}
		if k.other {
			one.Token, one.Network = Other, Other
		}
		list = append(list, one)
	}
	return list
}

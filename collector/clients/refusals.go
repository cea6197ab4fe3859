package clients

import (
	"context"
	"log/slog"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

// Reasons of what is refused without a status, besides those of Reason.
const (
	Connections = "connections" // too many are open
	Handshake   = "tls"         // it failed
	Header      = "header"      // of a request; net/http cannot read it, or it ended early
	Protocol    = "protocol"    // the client speaks another one
	Evicted     = "evicted"     // it had the most, and its request had not arrived, or it did not read its answer
)

// Reason returns the name of a status that refuses a request, such as bad_request;
// "": it does not.
func Reason(status int) string {
	if status < 400 {
		return ""
	}
	return strings.ReplaceAll(strings.ToLower(http.StatusText(status)), " ", "_")
}

// A Refusal is what was refused for a reason at a receiver. Beyond a number of networks
// and tokens the others are counted together.
type Refusal struct{ Receiver, Reason, Token, Network string }

const (
	other      = "other"
	maxSeries  = 300 // with a network, and twice as many with a token
	logEvery   = time.Minute
	logRefused = "clients are turned away"
)

type refusals struct {
	log *slog.Logger

	mu     sync.Mutex
	counts map[Refusal]uint64  // guarded by mu
	untold map[Refusal]*untold // guarded by mu; by receiver and reason
}

// untold is what the log was not told.
type untold struct {
	count int
	first Seen
}

func newRefusals(log *slog.Logger) *refusals {
	r := &refusals{log: log, counts: make(map[Refusal]uint64), untold: make(map[Refusal]*untold)}
	for _, reason := range []string{Connections, Handshake, Header, Protocol, Evicted} { // so that rates are known from the start
		r.counts[Refusal{"http", reason, other, other}] = 0
	}
	return r
}

func (r *refusals) add(s *Seen) {
	class := Refusal{Receiver: s.Receiver, Reason: s.Refused}
	one := Refusal{s.Receiver, s.Refused, s.Token, network(s.Addr).String()}
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, known := r.counts[one]; !known && len(r.counts) >= maxSeries {
		one.Network = other
	}
	if _, known := r.counts[one]; !known && len(r.counts) >= 2*maxSeries {
		one.Token = other
	}
	r.counts[one]++
	u := r.untold[class]
	if u == nil {
		u = &untold{first: *s}
		u.first.Header, u.first.Path, u.first.Text = nil, withoutSecrets(s.Path), short(s.Text, 200)
		r.untold[class] = u
	}
	u.count++
}

// secret is what may be one in a path, where some protocols have it.
var secret = regexp.MustCompile(`[0-9A-Za-z]*[0-9][0-9A-Za-z]{7,}|[0-9A-Za-z]{7,}[0-9][0-9A-Za-z]*|[A-Za-z]{20,}`)

// withoutSecrets is the beginning of a path without what may be secrets. The search takes
// milliseconds for a path as long as a header may be.
func withoutSecrets(path string) string {
	return short(secret.ReplaceAllString(path[:min(len(path), 300)], "…"), 200)
}

// Watch logs once a minute, and when ctx ends, what was refused: a line for each receiver
// and reason, with the count and the first client.
func (t *Table) Watch(ctx context.Context) {
	tick := time.NewTicker(logEvery)
	defer tick.Stop()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
		t.refused.tell()
	}
}

func (r *refusals) tell() {
	r.mu.Lock()
	list := r.untold
	r.untold = make(map[Refusal]*untold)
	r.mu.Unlock()
	for class, u := range list {
		r.log.Warn(logRefused, "receiver", class.Receiver, "reason", class.Reason, "count", u.count,
			"client", u.first.Addr.String(), "token", u.first.Token, "path", printable(u.first.Path), "answer", printable(u.first.Text))
	}
}

// printable replaces what is not printable in a text.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if !strconv.IsPrint(r) {
			return utf8.RuneError
		}
		return r
	}, text)
}

// Refusals calls f with each count since New.
func (t *Table) Refusals(f func(Refusal, uint64)) {
	t.refused.mu.Lock()
	defer t.refused.mu.Unlock()
	for r, n := range t.refused.counts {
		f(r, n)
	}
}

// Package clients counts who sends what, and who is turned away.
package clients

import (
	"encoding/binary"
	"hash/maphash"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"
)

// Seen is what came of a request, of what has arrived together on a connection, or of a
// datagram.
type Seen struct {
	Addr     netip.Addr // the client's
	Token    string     // its name; "": none
	Tenant   string     // whose events they are; "": nobody's in particular
	Receiver string     // an endpoint or a protocol: one of few
	Agent    string     // User-Agent

	Requests, Events, Rejected int
	Bytes                      int64 // as sent

	Refused string // why the client was turned away, one of Reasons; "": it was not
	Path    string // of a refused request
	Text    string // of the answer to it
}

// A Table has an entry for each client address (of IPv6 the /64), token and receiver, for
// about the thousand that were seen last. It is safe for concurrent use.
type Table struct {
	seed    maphash.Seed
	shards  [16]shard
	refused refusals
}

// shardSize bounds the entries of a shard. The entries of an address are in one shard.
const shardSize = 64

type shard struct {
	mu       sync.Mutex
	entries  map[key]*entry
	networks map[netip.Prefix]int // entries of each
}

type key struct {
	addr                    netip.Addr
	token, tenant, receiver string
}

type entry struct {
	key
	agent                                       string
	requests, events, rejected, refusals, bytes uint64
	first, last, failed                         time.Time
	reason, text                                string // of the last refusal
}

// New returns a Table. log gets who is turned away; see Watch.
func New(log *slog.Logger) *Table {
	t := &Table{seed: maphash.MakeSeed(), refused: refusals{log: log, series: map[series]uint64{}, classes: map[class]*recent{}}}
	for _, reason := range allReasons { // so that rates are known from the start
		t.refused.series[series{class: class{"http", reason}, other: true}] = 0
	}
	for i := range t.shards {
		t.shards[i] = shard{entries: map[key]*entry{}, networks: map[netip.Prefix]int{}}
	}
	return t
}

// Add adds what was seen at a time.
func (t *Table) Add(now time.Time, s *Seen) {
	k := key{principal(s.Addr), s.Token, s.Tenant, s.Receiver}
	b := k.addr.As16()
	sh := &t.shards[maphash.Bytes(t.seed, b[:])%uint64(len(t.shards))]
	sh.mu.Lock()
	sh.entryLocked(k, now).add(now, s)
	sh.mu.Unlock()
	if s.Refused != "" {
		t.refused.add(now, s)
	}
}

// principal is addr, or the first of its /64.
func principal(addr netip.Addr) netip.Addr {
	addr = addr.Unmap().WithZone("")
	if !addr.Is6() || addr.IsLoopback() {
		return addr
	}
	b := addr.As16()
	binary.BigEndian.PutUint64(b[8:], 0)
	return netip.AddrFrom16(b)
}

// network is the /24 or the /64 of addr.
func network(addr netip.Addr) netip.Prefix {
	if addr = addr.Unmap(); addr.Is4() {
		p, _ := addr.Prefix(24)
		return p
	}
	p, _ := addr.WithZone("").Prefix(64) // the zero Prefix if there is no address
	return p
}

func (sh *shard) entryLocked(k key, now time.Time) *entry {
	e := sh.entries[k]
	if e == nil {
		if len(sh.entries) >= shardSize {
			sh.evictLocked()
		}
		e = &entry{key: k, first: now}
		sh.entries[k] = e
		sh.networks[network(k.addr)]++
	}
	return e
}

// evictLocked removes an entry of the network with the most: so no network pushes out
// those of another. Of them it takes one that never had a request accepted, if there is
// one, and the one that was seen longest ago.
func (sh *shard) evictLocked() {
	var out *entry
	most := 0
	for _, e := range sh.entries {
		n := sh.networks[network(e.addr)]
		if out == nil || n > most || n == most && e.before(out) {
			out, most = e, n
		}
	}
	delete(sh.entries, out.key)
	if p := network(out.addr); most == 1 {
		delete(sh.networks, p)
	} else {
		sh.networks[p] = most - 1
	}
}

func (e *entry) before(other *entry) bool {
	if idle := e.refusals >= e.requests; idle != (other.refusals >= other.requests) {
		return idle
	}
	return e.last.Before(other.last)
}

const (
	maxAgent = 40
	maxText  = 200
)

// short returns the first bytes of s, without keeping what follows alive.
func short(s string, most int) string {
	if len(s) > most {
		s = s[:most]
	}
	return strings.Clone(s)
}

func (e *entry) add(now time.Time, s *Seen) {
	// The agent is noted as often as refusals are logged, as one may change with each request.
	if s.Agent != "" && (e.agent == "" || now.Sub(e.last) > logEvery) {
		agent, _, _ := strings.Cut(s.Agent, " ")
		if len(agent) > maxAgent {
			agent = agent[:maxAgent]
		}
		if e.agent != agent {
			e.agent = strings.Clone(agent)
		}
	}
	e.requests += uint64(s.Requests)
	e.events += uint64(s.Events)
	e.rejected += uint64(s.Rejected)
	e.bytes += uint64(s.Bytes)
	e.last = now
	if s.Refused != "" {
		e.refusals++
		e.failed, e.reason = now, s.Refused
		if e.text != s.Text[:min(len(s.Text), maxText)] {
			e.text = short(s.Text, maxText)
		}
	}
}

// Client is one entry, as GET /api/clients has it.
type Client struct {
	Client    string     `json:"client"`           // an address, or a /64 of IPv6
	Token     string     `json:"token,omitempty"`  // its name
	Tenant    string     `json:"tenant,omitempty"` // whose events they are
	Receiver  string     `json:"receiver"`         // an endpoint or a protocol
	Agent     string     `json:"agent,omitempty"`  // the first word of the User-Agent
	Requests  uint64     `json:"requests"`         // and connections, and datagrams
	Events    uint64     `json:"events"`           // those that were rejected included
	Bytes     uint64     `json:"bytes"`            // as sent
	Rejected  uint64     `json:"rejected"`         // events
	Refused   uint64     `json:"refused"`          // requests and connections
	Reason    string     `json:"reason,omitempty"` // of the last refusal
	LastError string     `json:"last_error,omitempty"`
	ErrorTime *time.Time `json:"last_error_time,omitempty"`
	FirstSeen time.Time  `json:"first_seen"`
	LastSeen  time.Time  `json:"last_seen"`
}

// Clients returns the entries that choose is true for, those seen last first.
func (t *Table) Clients(choose func(*Client) bool) []Client {
	list := []Client{}
	for i := range t.shards {
		sh := &t.shards[i]
		sh.mu.Lock()
		for _, e := range sh.entries {
			if c := e.client(); choose(&c) {
				list = append(list, c)
			}
		}
		sh.mu.Unlock()
	}
	slices.SortFunc(list, func(a, b Client) int { return b.LastSeen.Compare(a.LastSeen) })
	return list
}

func (e *entry) client() Client {
	c := Client{
		Client: e.addr.String(), Token: e.token, Tenant: e.tenant, Receiver: e.receiver, Agent: e.agent,
		Requests: e.requests, Events: e.events, Bytes: e.bytes, Rejected: e.rejected, Refused: e.refusals,
		Reason: e.reason, LastError: e.text, FirstSeen: e.first, LastSeen: e.last,
	}
	if e.addr.Is6() && !e.addr.IsLoopback() {
		c.Client += "/64"
	}
	if failed := e.failed; !failed.IsZero() {
		c.ErrorTime = &failed
	}
	return c
}

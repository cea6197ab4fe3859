// Package clients counts who sends what, and who is turned away.
package clients

import (
	"hash/maphash"
	"log/slog"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"
)

// Seen is what came of a request, of what has arrived together on a connection, or of a
// datagram.
type Seen struct {
	Addr     netip.Addr  // the client's
	Token    string      // its name; "": none
	Tenant   string      // whose events they are; "": nobody's in particular
	Receiver string      // an endpoint or a protocol: one of few
	Header   http.Header // of the request, for its User-Agent; may be nil

	Requests         int // 1 for a request, a datagram, or the beginning of a connection
	Events, Rejected int // Events include the others
	Bytes            int64

	Refused string // why the client was turned away, one of few; "": it was not
	Path    string // of a refused request; the log gets it without what may be secrets
	Text    string // of the answer to it
}

// Client is what was seen of a client address with a token at a receiver.
type Client struct {
	Client    string    `json:"client"` // the address, or the /64 of IPv6
	Token     string    `json:"token"`  // its name; "": none
	Tenant    string    `json:"tenant"`
	Receiver  string    `json:"receiver"`
	Agent     string    `json:"agent"`    // the first word of the first User-Agent
	Requests  uint64    `json:"requests"` // and connections, and datagrams
	Events    uint64    `json:"events"`
	Bytes     uint64    `json:"bytes"` // as sent
	Rejected  uint64    `json:"rejected"`
	Refused   uint64    `json:"refused"` // of the requests
	First     time.Time `json:"first"`
	Last      time.Time `json:"last"`
	ErrorTime time.Time `json:"error_time,omitzero"` // of the last refusal
	Error     string    `json:"error"`               // its reason, and the answer to it

	network netip.Prefix
}

// A Table has a Client for each address (of IPv6 the /64), token and receiver: about the
// thousand that were seen last. It is safe for concurrent use.
type Table struct {
	seed    maphash.Seed
	shards  [16]shard // that of an address is chosen by its hash
	refused *refusals
}

// shardSize bounds the clients in a shard.
const shardSize = 64

type shard struct {
	mu       sync.Mutex
	clients  map[key]*Client      // guarded by mu
	networks map[netip.Prefix]int // clients of each; guarded by mu
}

type key struct {
	addr                    netip.Addr
	token, tenant, receiver string
}

// New returns a Table. log gets who is turned away while Watch runs.
func New(log *slog.Logger) *Table {
	t := &Table{seed: maphash.MakeSeed(), refused: newRefusals(log)}
	for i := range t.shards {
		t.shards[i].clients, t.shards[i].networks = make(map[key]*Client), make(map[netip.Prefix]int)
	}
	return t
}

// Add adds what was seen.
func (t *Table) Add(now time.Time, s *Seen) {
	k := key{principal(s.Addr), s.Token, s.Tenant, s.Receiver}
	b := k.addr.As16()
	sh := &t.shards[maphash.Bytes(t.seed, b[:])%uint64(len(t.shards))]
	sh.mu.Lock()
	c := sh.clients[k]
	if c == nil {
		c = sh.newLocked(k, now, s.Header.Get("User-Agent"))
	}
	c.add(now, s)
	sh.mu.Unlock()
	if s.Refused != "" {
		t.refused.add(s)
	}
}

// principal is addr, or the first of its /64.
func principal(addr netip.Addr) netip.Addr {
	addr = addr.Unmap().WithZone("")
	if !addr.Is6() || addr.IsLoopback() {
		return addr
	}
	return network(addr).Addr()
}

// network is the /24 or the /64 of addr.
func network(addr netip.Addr) netip.Prefix {
	bits := 24
	if addr = addr.Unmap().WithZone(""); addr.Is6() {
		bits = 64
	}
	p, _ := addr.Prefix(bits) // the zero Prefix if there is no address
	return p
}

func (sh *shard) newLocked(k key, now time.Time, agent string) *Client {
	if len(sh.clients) >= shardSize {
		sh.evictLocked()
	}
	agent, _, _ = strings.Cut(agent, " ")
	c := &Client{Client: k.addr.String(), Token: k.token, Tenant: k.tenant, Receiver: k.receiver, Agent: short(agent, 40), First: now, network: network(k.addr)}
	if k.addr.Is6() && !k.addr.IsLoopback() {
		c.Client += "/64"
	}
	sh.clients[k] = c
	sh.networks[c.network]++
	return c
}

// evictLocked removes a client of the network that has the most, so that no network
// pushes out those of another: first one that never had a request accepted, then the one
// that was seen longest ago.
func (sh *shard) evictLocked() {
	var out key
	var last *Client
	most := 0
	for k, c := range sh.clients {
		n := sh.networks[c.network]
		if n > most || n == most && c.before(last) {
			out, last, most = k, c, n
		}
	}
	delete(sh.clients, out)
	if sh.networks[last.network] = most - 1; most == 1 {
		delete(sh.networks, last.network)
	}
}

func (c *Client) before(other *Client) bool {
	if none := c.Refused >= c.Requests; none != (other.Refused >= other.Requests) {
		return none
	}
	return c.Last.Before(other.Last)
}

func (c *Client) add(now time.Time, s *Seen) {
	c.Requests += uint64(s.Requests)
	c.Events += uint64(s.Events)
	c.Rejected += uint64(s.Rejected)
	c.Bytes += uint64(s.Bytes)
	c.Last = now
	if s.Refused != "" {
		c.Refused++
		c.ErrorTime, c.Error = now, s.Refused+": "+short(s.Text, 200)
	}
}

// short returns the beginning of s, without keeping the rest in memory.
func short(s string, most int) string { return strings.Clone(s[:min(len(s), most)]) }

// Clients returns the clients of a tenant, or all if it is "", those seen last first.
func (t *Table) Clients(tenant string) []Client {
	list := []Client{}
	for i := range t.shards {
		sh := &t.shards[i]
		sh.mu.Lock()
		for _, c := range sh.clients {
			if tenant == "" || c.Tenant == tenant {
				list = append(list, *c)
			}
		}
		sh.mu.Unlock()
	}
	slices.SortFunc(list, func(a, b Client) int { return b.Last.Compare(a.Last) })
	return list
}

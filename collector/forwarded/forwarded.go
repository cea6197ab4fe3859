// Package forwarded finds the client of a request that came through proxies. Each proxy
// appends the address that it had the request from to X-Forwarded-For or Forwarded
// (RFC 7239).
//
// Anybody can send such a header. So it counts only where the connection is one of a
// trusted proxy, and is read from its end: the first address that is not a trusted
// proxy's is the client's, since the client may have made up those before it. If all are
// trusted, it is the first of the header. An entry without an address ("unknown", a name,
// garbage) ends the search, and the address after it is the client's.
package forwarded

import (
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// Headers that a Trust can be in.
const (
	XForwardedFor = "x-forwarded-for"
	Forwarded     = "forwarded"
)

const (
	maxNetworks = 256 // in a Trust
	maxHops     = 32  // of a header, from its end, that are looked at
)

// Trust says which proxies are believed, and which header they write. It is
// immutable and safe for concurrent use. A nil *Trust believes none.
type Trust struct {
	networks []netip.Prefix
	rfc7239  bool
}

// New returns the Trust in networks, as 10.0.0.0/8, or addresses, separated by
// blanks; nil, if there are none. header is one of XForwardedFor and Forwarded.
func New(networks, header string) (*Trust, error) {
	if header != XForwardedFor && header != Forwarded {
		return nil, fmt.Errorf("%q is neither %s nor %s", header, XForwardedFor, Forwarded)
	}
	t := &Trust{rfc7239: header == Forwarded}
	for _, text := range strings.Fields(networks) {
		p, err := ParseNetwork(text)
		if err != nil {
			return nil, err
		}
		t.networks = append(t.networks, p)
	}
	if len(t.networks) > maxNetworks {
		return nil, fmt.Errorf("%d networks are more than %d", len(t.networks), maxNetworks)
	}
	if len(t.networks) == 0 {
		return nil, nil
	}
	return t, nil
}

// ParseNetwork reads a network, or an address, which is one of itself alone.
func ParseNetwork(text string) (netip.Prefix, error) {
	if addr, err := netip.ParseAddr(text); err == nil && addr.Zone() == "" {
		addr = addr.Unmap()
		return netip.PrefixFrom(addr, addr.BitLen()), nil
	}
	p, err := netip.ParsePrefix(text)
	switch {
	case err != nil || p.Addr().Is4In6():
		return p, fmt.Errorf("%.60q is no network: write one as 10.0.0.0/8 or 2001:db8::/32", text)
	case p != p.Masked():
		return p, fmt.Errorf("%s has bits beyond its length: the network is %s", p, p.Masked())
	}
	return p, nil
}

// Client returns the address of the client of a request that has come from peer
// with the header h: peer itself, unless that is a trusted proxy.
func (t *Trust) Client(peer netip.Addr, h http.Header) netip.Addr {
	if !t.Trusts(peer) {
		return peer
	}
	w := walk{trust: t, client: peer}
	lines, read := h["X-Forwarded-For"], w.xff
	if t.rfc7239 {
		lines, read = h["Forwarded"], w.elements
	}
	for i := len(lines) - 1; i >= 0 && !w.over; i-- {
		read(lines[i])
	}
	return w.client
}

// Trusts reports whether the address is that of a trusted proxy.
func (t *Trust) Trusts(addr netip.Addr) bool {
	if t == nil {
		return false
	}
	addr = addr.Unmap().WithZone("")
	return slices.ContainsFunc(t.networks, func(p netip.Prefix) bool { return p.Contains(addr) })
}

// walk goes from the end of a header to its beginning.
type walk struct {
	trust  *Trust
	client netip.Addr // as far as is known
	hops   int
	over   bool // nothing before can be believed
}

// hop takes what the proxy that is the client so far has named, which may be no
// address.
func (w *walk) hop(addr netip.Addr, ok bool) {
	w.hops++
	if w.over = !ok || w.hops > maxHops; w.over {
		return
	}
	w.client = addr
	w.over = !w.trust.Trusts(addr)
}

// xff goes through one line of X-Forwarded-For: addresses and commas.
func (w *walk) xff(line string) {
	for more := true; more && !w.over; {
		node := line
		at := strings.LastIndexByte(line, ',')
		if more = at >= 0; more {
			line, node = line[:at], line[at+1:]
		}
		if node = strings.Trim(node, " \t"); node != "" {
			w.hop(ParseNode(node))
		} else {
			w.hops++ // so that commas alone do not go on for long
			w.over = w.hops > maxHops
		}
	}
}

// ParseNode reads an address with or without a port: an IPv6 address that has one
// is in brackets, and may be without.
func ParseNode(node string) (addr netip.Addr, ok bool) {
	if len(node) > maxNode {
		return addr, false
	}
	host := node
	switch colon := strings.IndexByte(node, ':'); {
	case node != "" && node[0] == '[':
		end := strings.IndexByte(node, ']')
		if end < 0 || !isPort(node[end+1:]) || colon < 0 || colon > end {
			return addr, false
		}
		host = node[1:end]
	case colon >= 0 && colon == strings.LastIndexByte(node, ':'):
		if host = node[:colon]; !isPort(node[colon:]) {
			return addr, false
		}
	}
	if host == "" || !isAddress(host) { // the error would be allocated
		return addr, false
	}
	addr, err := netip.ParseAddr(host)
	return addr.Unmap(), err == nil
}

// maxNode is longer than any address with a port, in bytes.
const maxNode = 64

// isAddress reports whether s has only characters of addresses without a zone.
func isAddress(s string) bool { return strings.Trim(s, "0123456789abcdefABCDEF.:") == "" }

// isPort reports whether s is empty, or a colon and a port: a number, or a name
// that a proxy has made up for one.
func isPort(s string) bool {
	if s == "" {
		return true
	}
	s = s[1:]
	named := strings.HasPrefix(s, "_")
	if s == "" || !named && len(s) > 5 {
		return false
	}
	for i := range len(s) {
		if c := s[i]; !(c >= '0' && c <= '9' || named && isToken(c)) {
			return false
		}
	}
	return true
}

package collector

import "net"

// warnOpen says what is missing where the network can reach the collector.
func (c *Collector) warnOpen() {
	now := c.state.Load()
	mutual := now.tls != nil && now.tls.ClientCAs != nil
	for _, l := range c.webListeners() {
		switch {
		case !reachable(l.Addr()):
		case now.tokens == nil && !mutual:
			c.log.Warn("OPEN TO THE NETWORK: anybody who reaches this address can write logs here, and read all of them; "+
				"set access.tokens, or listen on 127.0.0.1", "address", l.Addr().String())
		case now.tls == nil:
			c.log.Warn("NOT ENCRYPTED: tokens and logs can be read on their way to this address; "+
				"set tls.cert and tls.key, or let a proxy in front do it", "address", l.Addr().String())
		}
	}
	for _, e := range c.listeners {
		switch {
		case !reachable(e.addr):
		case !e.secret && !(e.tls && mutual):
			c.log.Warn("OPEN TO THE NETWORK: anybody who reaches this address can write logs here; listen on 127.0.0.1, or "+e.closedBy,
				"setting", e.key, "address", e.addr.String())
		case !e.tls:
			c.log.Warn("NOT ENCRYPTED: logs can be read on their way to this address; use tls://", "setting", e.key, "address", e.addr.String())
		}
	}
}

// reachable reports whether other machines can reach a.
func reachable(a net.Addr) bool {
	host, _, _ := net.SplitHostPort(a.String())
	ip := net.ParseIP(host)
	return ip != nil && !ip.IsLoopback()
}

package collector

import (
	"fmt"
	"net"
	"strings"

	"github.com/rollway/rollway/collector/config"
	"github.com/rollway/rollway/collector/secrets"
	"github.com/rollway/rollway/internal/disk"
)

// warnExposed says where the network, or other users of the machine, can reach what cfg
// should keep from them.
func (c *Collector) warnExposed(cfg config.Config) {
	for _, text := range FileWarnings(cfg) {
		c.log.Warn("OPEN TO OTHER USERS: " + text)
	}
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

// FileWarnings returns a sentence for each file or folder that cfg names and that other
// users of the machine can read or change, though they should not.
func FileWarnings(cfg config.Config) []string {
	list := secrets.Exposed(cfg)
	for _, dir := range []string{cfg.Data, JournalFolder(cfg.Data), RejectedFolder(cfg.Data)} {
		if may := disk.OthersMay(dir); strings.Contains(may, "write") {
			list = append(list, fmt.Sprintf("data: other users of this machine can write to %s, and forge what is stored: chmod o= %s", dir, dir))
		}
	}
	return list
}

// reachable reports whether other machines can reach a.
func reachable(a net.Addr) bool {
	host, _, _ := net.SplitHostPort(a.String())
	ip := net.ParseIP(host)
	return ip != nil && !ip.IsLoopback()
}

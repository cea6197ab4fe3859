package collector

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"

	"github.com/rollway/rollway/collector/access"
	"github.com/rollway/rollway/collector/config"
	"github.com/rollway/rollway/collector/receiver"
	"github.com/rollway/rollway/collector/receiver/forward"
	"github.com/rollway/rollway/collector/receiver/gelf"
	"github.com/rollway/rollway/collector/receiver/lumberjack"
	"github.com/rollway/rollway/collector/receiver/syslog"
	"github.com/rollway/rollway/collector/secrets"
)

// listener is an address where something other than HTTP is taken.
type listener struct {
	key   string // of the setting
	takes string // for people
	addr  net.Addr
	tls   bool

	secret   bool   // clients must know one
	closedBy string // what lets in those alone who may; for people

	serve func(context.Context) error // until the context ends
	close func() error
}

// openListeners listens wherever the configuration says.
func (c *Collector) openListeners() error {
	cfg := c.config
	maxEvent, maxUnpacked := int(cfg.Limits.MaxEvent), int(cfg.Limits.MaxUnpacked)
	security, err := secrets.Forward(cfg.Forward)
	if err != nil {
		return err
	}
	for _, l := range []struct {
		key, addrs string
		protocol   receiver.StreamProtocol
	}{
		{"listen_tcp", cfg.ListenTCP, receiver.NDJSON{MaxLine: maxEvent}},
		{"listen_syslog", cfg.ListenSyslog, syslog.Protocol{MaxMessage: maxEvent}},
		{"listen_gelf", cfg.ListenGELF, gelf.Protocol{MaxMessage: maxEvent}},
		{"listen_lumberjack", cfg.ListenLumberjack, lumberjack.Protocol{MaxEvent: maxEvent, MaxUnpacked: maxUnpacked}},
		{"listen_forward", cfg.ListenForward, forward.Protocol{MaxUnpacked: maxUnpacked, Security: security}},
	} {
		if err := c.openStreams(l.key, l.addrs, l.protocol); err != nil {
			return err
		}
	}
	return nil
}

// openStreams listens at the addresses of one setting for protocol p, which is
// a receiver.PacketProtocol too if one of them may be for UDP.
func (c *Collector) openStreams(key, text string, p receiver.StreamProtocol) error {
	addrs, err := config.ParseAddrs(text, "tcp", "tls", "udp")
	if err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	for _, a := range addrs {
		open := c.openStream
		if a.Network == "udp" {
			open = c.openPackets
		}
		e, err := open(key, a, p)
		if err != nil {
			return err
		}
		e.key, e.takes, e.closedBy = key, p.Name()+" over "+a.Network, "use tls:// and tls.client_ca"
		if key == "listen_forward" {
			e.secret = c.config.Forward.SharedKeyFile != ""
			e.closedBy += ", or forward.shared_key_file"
		}
		c.listeners = append(c.listeners, e)
	}
	return nil
}

func (c *Collector) openStream(key string, a config.Addr, p receiver.StreamProtocol) (e listener, err error) {
	l, err := listen(key, a.Host)
	if err != nil {
		return e, err
	}
	if e.tls = a.Network == "tls"; e.tls {
		l = tls.NewListener(l, streamTLS(&c.state))
	}
	e.addr, e.close = l.Addr(), l.Close
	e.serve = func(ctx context.Context) error { return c.receiver.ServeStream(ctx, l, p, c.ofTenant(a.Tenant)) }
	return e, nil
}

func (c *Collector) openPackets(key string, a config.Addr, p receiver.StreamProtocol) (e listener, err error) {
	conn, err := listenPackets(key, a.Host)
	if err != nil {
		return e, err
	}
	if err := conn.SetReadBuffer(int(c.config.Limits.UDPBuffer)); err != nil {
		c.log.Warn("the receive buffer keeps its size", "address", conn.LocalAddr().String(), "error", err)
	}
	e.addr, e.close = conn.LocalAddr(), conn.Close
	e.serve = func(ctx context.Context) error {
		return c.receiver.ServePackets(ctx, conn, p.(receiver.PacketProtocol), c.ofTenant(a.Tenant))
	}
	return e, nil
}

// ofTenant returns the sender of what comes in at an address that names a tenant; nil if
// it names none.
func (c *Collector) ofTenant(name string) receiver.Sender {
	if name == "" {
		return nil // not a nil *Token
	}
	t := access.OfTenant(name)
	t.SetPrincipal(c.admission.OfName(name))
	return t
}

// TCPAddr is where NDJSON over TCP is taken; nil: nowhere.
func (c *Collector) TCPAddr() net.Addr {
	for _, addr := range c.addrs("listen_tcp") {
		return addr
	}
	return nil
}

// SyslogAddrs is where syslog is taken, in the order of the setting.
func (c *Collector) SyslogAddrs() []net.Addr { return c.addrs("listen_syslog") }

// GELFAddrs is where GELF is taken, likewise.
func (c *Collector) GELFAddrs() []net.Addr { return c.addrs("listen_gelf") }

// LumberjackAddrs is where the Lumberjack protocol is taken, likewise.
func (c *Collector) LumberjackAddrs() []net.Addr { return c.addrs("listen_lumberjack") }

// ForwardAddrs is where the Fluent forward protocol is taken, likewise.
func (c *Collector) ForwardAddrs() []net.Addr { return c.addrs("listen_forward") }

func (c *Collector) addrs(key string) (list []net.Addr) {
	for _, e := range c.listeners {
		if e.key == key {
			list = append(list, e.addr)
		}
	}
	return list
}

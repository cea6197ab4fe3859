package remote_test

import (
	"crypto/tls"
	"net/http"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/rollway/rollway/remote"
)

// An anyPeer is a peer of some scheme, at one address, that goes away and comes
// back. It begins by being away.
type anyPeer struct {
	url     string
	options remote.Options // that the scheme needs
	up      func()
	down    func()                      // it has read what it was sent
	lines   func() []byte               // that it has, in the order of their coming, over all its lives
	stall   func()                      // nothing is answered until it is called up; nil where nothing is answered anyhow
	start   func(t *testing.T) *anyPeer // makes another of this kind
	gram    bool                        // a Writer hears that it is away by sending only
	deaf    bool                        // and only after a line was lost (udp)
}

// anyPeers makes a peer of each kind, by name; more are added where the system
// has them.
var anyPeers = map[string]func(t *testing.T) *anyPeer{
	"http":    anyHTTP,
	"loki":    anyLoki,
	"elastic": anyElastic,
	"otlp":    anyOTLP,

	"tcp":         func(t *testing.T) *anyPeer { return anyStream(t, "tcp", "octets") },
	"tls":         func(t *testing.T) *anyPeer { return anyStream(t, "tls", "octets") },
	"unix":        func(t *testing.T) *anyPeer { return anyStream(t, "unix", "octets") },
	"syslog+tcp":  func(t *testing.T) *anyPeer { return anyStream(t, "syslog+tcp", "octets") },
	"syslog+tls":  func(t *testing.T) *anyPeer { return anyStream(t, "syslog+tls", "octets") },
	"syslog+unix": func(t *testing.T) *anyPeer { return anyStream(t, "syslog+unix", "octets") },

	"syslog+tcp by lines": func(t *testing.T) *anyPeer { return anyStream(t, "syslog+tcp", "newline") },
	"syslog+tls by lines": func(t *testing.T) *anyPeer { return anyStream(t, "syslog+tls", "newline") },

	"udp":                      func(t *testing.T) *anyPeer { return anyGram(t, "udp", "udp") },
	"unixgram":                 func(t *testing.T) *anyPeer { return anyGram(t, "unixgram", "unixgram") },
	"syslog+udp":               func(t *testing.T) *anyPeer { return anyGram(t, "syslog+udp", "udp") },
	"syslog+unix by datagrams": func(t *testing.T) *anyPeer { return anyGram(t, "syslog+unix", "unixgram") },
}

// eachPeer runs test with a peer of each kind.
func eachPeer(t *testing.T, test func(t *testing.T, peer *anyPeer)) {
	for name, start := range anyPeers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			peer := start(t)
			peer.start = start
			test(t, peer)
		})
	}
}

func anyHTTP(t *testing.T) *anyPeer {
	p := newKeyedPeer(t)
	return &anyPeer{url: p.url(), up: p.home.heal, down: p.down, stall: p.home.stall, lines: p.bytes}
}

func anyLoki(t *testing.T) *anyPeer {
	p := newLokiPeer()
	h := newHome(t, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) { p.serve(t, rw, r) }))
	return &anyPeer{url: "loki+http://" + h.addr, up: h.heal, down: h.down, stall: h.stall, lines: p.bytes}
}

func anyElastic(t *testing.T) *anyPeer {
	p := &elasticPeer{ids: map[string]bool{}}
	h := newHome(t, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) { p.serve(t, rw, r) }))
	return &anyPeer{url: "elastic+http://" + h.addr + "/logs-shop", up: h.heal, down: h.down, stall: h.stall, lines: p.bytes}
}

// inSyslog are options by which payload finds the line in a message.
var inSyslog = remote.Syslog{Format: "rfc5424"}

func anyStream(t *testing.T, scheme, framing string) *anyPeer {
	carrier := scheme[strings.LastIndexByte(scheme, '+')+1:]
	p := new(anyPeer)
	isSyslog := carrier != scheme
	if isSyslog {
		p.options.Syslog = inSyslog
		p.options.Syslog.Framing = framing
	}
	var config *tls.Config
	if carrier == "tls" {
		ca := newAuthority(t)
		config = ca.server(t, "127.0.0.1")
		p.options.TLSConfig = &tls.Config{RootCAs: ca.pool}
	}
	addr := anywhere(t, carrier)
	p.url = scheme + "://" + addr
	var lives []*tcpPeer
	p.up = func() { lives = append(lives, startTCPPeer(t, addr, config, nil)) }
	p.down = func() { lives[len(lives)-1].stop() }
	p.lines = func() (all []byte) {
		for _, life := range lives {
			for _, data := range life.each() {
				if !isSyslog {
					all = append(all, data...)
					continue
				}
				messages, _ := unframe(t, []byte(data), framing == "octets")
				for _, m := range messages {
					all = append(all, payload(t, m)...)
				}
			}
		}
		return all
	}
	return p
}

func anyGram(t *testing.T, scheme, network string) *anyPeer {
	p := &anyPeer{gram: true, deaf: network == "udp"}
	isSyslog := scheme != network
	if isSyslog {
		p.options.Syslog = inSyslog
	}
	var addr string
	if network == "unixgram" {
		if runtime.GOOS == "windows" {
			t.Skip("Windows has no local datagram sockets")
		}
		addr = socketPath(t)
	} else {
		addr = reserveUDP(t)
	}
	p.url = scheme + "://" + addr
	var lives []*gramPeer
	p.up = func() {
		if network == "unixgram" {
			os.Remove(addr) // the one before has left it
		}
		lives = append(lives, startGramPeer(t, network, addr))
	}
	p.down = func() { lives[len(lives)-1].stop() }
	p.lines = func() (all []byte) {
		for _, life := range lives {
			for _, g := range life.each() {
				if isSyslog {
					g = payload(t, g)
				}
				all = append(all, g...)
			}
		}
		return all
	}
	return p
}

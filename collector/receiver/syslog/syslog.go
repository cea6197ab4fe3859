// Package syslog takes messages by RFC 5424 and RFC 3164, and what senders make
// of them, over UDP, TCP and TLS.
//
//	severity        level: emerg FATAL+2, alert FATAL+1, crit FATAL, err ERROR, warning WARN, notice INFO+2, info INFO, debug DEBUG
//	timestamp       time; without one it is when the message arrived
//	app-name, tag   service
//	msg             msg, without its byte order mark
//	facility        attrs.facility, by name
//	hostname        attrs.host; without one attrs.peer is the sender's address
//	procid, msgid   attrs.procid, attrs.msgid
//	structured data attrs, an object under each SD-ID; of mdc, Log4j's thread context, its members
//
// Nil values ("-") are left out. A msg that is one JSON object, with or without
// "@cee:" before it, is read as one: its members come first, and what they leave
// no slot for goes to attrs, the severity under that name. So a line of the
// Logger arrives as it was logged.
//
// In the older format all but the priority may be missing. A timestamp "Mmm dd hh:mm:ss"
// is in Protocol.Zone and in the year that brings it nearest to now, at most a week after
// it. A tag is taken to be one after a timestamp, and elsewhere only with a process id.
// What cannot be told apart stays in msg, a message without priority whole.
//
// A datagram is a message. On a stream each frame is by octet counting if it
// begins with a number, a space and '<' (and, once one did, without the '<'),
// and otherwise ends with LF or NUL (RFC 6587). Where a sender ends messages
// with NUL, LF may be within them. What comes before the end of the connection
// without its LF is stored and marked as attrs.torn, as nobody can tell whether
// it is whole; less than the octets that were announced counts as torn.
package syslog

import (
	"bytes"
	"net/netip"
	"strconv"
	"time"

	"github.com/rollway/rollway/collector/normalize"
	"github.com/rollway/rollway/collector/receiver"
	"github.com/rollway/rollway/internal/levels"
)

// Protocol is a receiver.StreamProtocol and a receiver.PacketProtocol.
type Protocol struct {
	// Zone is that of timestamps that name none. Default: time.Local.
	Zone *time.Location
	// MaxMessage is how many bytes a message may have; longer ones are skipped
	// and count as too large. Default 1 MiB.
	MaxMessage int
}

// Name is for the log.
func (Protocol) Name() string { return "syslog" }

func words(list ...string) (b [][]byte) {
	for _, s := range list {
		b = append(b, []byte(s))
	}
	return b
}

var (
	severities = words("emerg", "alert", "crit", "err", "warning", "notice", "info", "debug")
	facilities = words("kern", "user", "mail", "daemon", "auth", "syslog", "lpr", "news", "uucp", "cron", "authpriv", "ftp",
		"ntp", "audit", "alert", "clock", "local0", "local1", "local2", "local3", "local4", "local5", "local6", "local7")

	// NameFacility is the attribute with a facility.
	NameFacility = []byte("facility")

	nameSeverity = []byte("severity")
	nameHostname = []byte("host")
	nameProcID   = []byte("procid")
	nameMsgID    = []byte("msgid")
	namePeer     = []byte("peer")
	nameTorn     = []byte("torn")
)

// DecodePacket puts the event of one datagram into c.Batch.
func (p Protocol) DecodePacket(c *receiver.Chunk) { p.event(c, c.Data, false) }

// event makes an event of one message without its frame. An empty one makes none.
func (p Protocol) event(c *receiver.Chunk, msg []byte, torn bool) {
	var m message
	msg = trim(msg)
	m.parse(msg, c.Received, p.zone())
	p.add(c, &m, msg, torn)
}

// trim takes the end of a message off.
func trim(msg []byte) []byte { return bytes.TrimRight(msg, "\r\n\x00") }

// add adds the event of a message that was sent as msg.
func (p Protocol) add(c *receiver.Chunk, m *message, msg []byte, torn bool) {
	if len(msg) == 0 {
		return
	}
	b := c.Norm.Build(c.Batch, c.Received)
	b.Begin()
	b.Raw(msg)
	if len(m.text) > 0 {
		b.Message(m.text)
	}
	m.header(b)
	if m.hostname == nil && c.Peer.IsValid() {
		var buf [64]byte
		b.Attr(namePeer)
		b.String(c.Peer.Addr().AppendTo(buf[:0]))
	}
	if torn {
		b.Attr(nameTorn)
		b.Bool(true)
	}
	if !b.End() && c.Peer.IsValid() {
		b.Context(maxAddr, c.Peer.Addr().AppendTo)
	}
	b.Done()
}

// maxAddr is about how long an address is.
const maxAddr = 64

// Reread puts the event of c.Data, a message that was rejected, into c.Batch;
// context is the address of its sender, if that is known.
func (p Protocol) Reread(c *receiver.Chunk, context []byte) {
	if peer, err := netip.ParseAddr(string(context)); err == nil {
		c.Peer = netip.AddrPortFrom(peer, 0)
	}
	p.DecodePacket(c)
}

func (p Protocol) zone() *time.Location {
	if p.Zone == nil {
		return time.Local
	}
	return p.Zone
}

// header adds all but the text.
func (m *message) header(b *normalize.Builder) {
	switch {
	case m.time == nil:
	case m.unix && !b.Has(normalize.Time):
		b.SetTime(m.sec, m.nsec)
	default:
		text(b, normalize.Time, m.time)
	}
	if m.priority >= 0 {
		if severity := m.priority & 7; b.Has(normalize.Level) {
			attr(b, nameSeverity, severities[severity])
		} else {
			b.SetLevel(levels.Syslog[severity])
		}
		attr(b, NameFacility, facilities[m.priority>>3])
	}
	text(b, normalize.Service, m.app)
	attr(b, nameHostname, m.hostname)
	attr(b, nameProcID, m.procID)
	attr(b, nameMsgID, m.msgID)
	structured(b, m.data)
}

// Facility returns the name of a facility's number, or what is no such number as it is.
func Facility(number []byte) []byte {
	if n, err := strconv.Atoi(string(number)); err == nil && n >= 0 && n < len(facilities) {
		return facilities[n]
	}
	return number
}

func text(b *normalize.Builder, s normalize.Slot, v []byte) {
	if len(v) > 0 {
		b.Slot(s)
		b.String(v)
	}
}

func attr(b *normalize.Builder, name, v []byte) {
	if len(v) > 0 {
		b.Attr(name)
		b.String(v)
	}
}

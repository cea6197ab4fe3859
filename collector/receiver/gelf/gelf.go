// Package gelf takes messages in Graylog's Extended Log Format over UDP, TCP, TLS and HTTP.
//
//	short_message  msg; without one message, as in Graylog
//	full_message   error.stack, if it is one; or attrs.full_message, unless it is equal to
//	               short_message
//	timestamp      time
//	level          level: a number of syslog from 0 to 7, or a name
//	host           attrs.host
//	_name          what a member called name is in any event, by package normalize
//	version        left out
//	others         attrs, under their names
//
// No member has to be there. What begins with an underscore comes last, so that it takes no
// place of the others.
//
// A datagram is a message, plain or packed with zlib or gzip, or one of up to 128 chunks of
// a message. On a stream a NUL ends each message; where LF follows a whole object as the
// connection's first message, LF ends messages too. A body of HTTP is one or more messages
// in a row. On a stream and in a body a message that only continues the one before belongs
// to its event, if they differ in nothing but text and time.
package gelf

import (
	"bytes"
	"fmt"

	"github.com/rollway/rollway/collector/normalize"
	"github.com/rollway/rollway/collector/pool"
	"github.com/rollway/rollway/collector/receiver"
	"github.com/rollway/rollway/collector/receiver/wire"
	"github.com/rollway/rollway/internal/levels"
)

// Protocol is a receiver.StreamProtocol and a receiver.PacketOpener.
type Protocol struct {
	// MaxMessage is how many bytes a message may have, unpacked; longer ones are passed
	// over and count as too large. Default 1 MiB.
	MaxMessage int
}

// Name is for the log.
func (Protocol) Name() string { return "GELF" }

func (p Protocol) withDefaults() Protocol {
	if p.MaxMessage <= 0 {
		p.MaxMessage = 1 << 20
	}
	return p
}

// tooLarge tells of a message above the limit.
func (p Protocol) tooLarge() string {
	return fmt.Sprintf("a message is longer than %d bytes", p.MaxMessage)
}

// decoder is the memory for one message after another.
type decoder struct {
	wire.Event
	lines wire.Joiner // of a body
}

// messageNames has that of a message's text.
var messageNames = wire.Names("short_message")

var decoders = pool.Pool[*decoder]{New: func() *decoder { return new(decoder) }}

// Memory is for the pool.
func (d *decoder) Memory() pool.Memory { return d.lines.Memory(d.Scratch()) }

// event adds the event of a text that should be one object; an empty one adds none.
func event(c *receiver.Chunk, text []byte) {
	if text = bytes.TrimRight(text, "\x00\r\n\t "); len(text) == 0 {
		return
	}
	d := decoders.Get()
	defer decoders.Put(d)
	d.Builder = c.Norm.Build(c.Batch, c.Received)
	if d.Start(text) {
		value, err := wire.Value(text)
		d.value(value, err)
	}
	d.Done()
}

// value adds the event that was begun, of a JSON value or of what was none because of err.
func (d *decoder) value(value []byte, err error) {
	switch {
	case err == nil && wire.IsObject(value):
		d.members(value)
		d.End()
	case err == nil:
		d.Reject(normalize.ReasonNotObject, "a message is not an object")
	case d.Describes():
		d.Reject(normalize.ReasonSyntax, err.Error())
	default:
		d.Reject(normalize.ReasonSyntax, "")
	}
}

func (d *decoder) members(object []byte) {
	short, added := wire.Get(object, "short_message"), false
	for w := wire.Members(object); w.Next() && !d.Failed(); {
		name, value := w.RawName(), w.RawValue()
		switch text := d.Text(name); string(text) {
		case "version":
		case "short_message":
			d.PutSlot(normalize.Message, name, value)
		case "message":
			if short != nil {
				d.PutAttr(name, value)
				continue
			}
			d.PutSlot(normalize.Message, name, value)
		case "full_message":
			if !bytes.Equal(value, short) {
				d.Member(text)
				d.JSON(value)
			}
		case "timestamp":
			d.PutSlot(normalize.Time, name, value)
		case "level":
			d.level(name, value)
		default:
			if len(text) > 1 && text[0] == '_' {
				added = true
				continue
			}
			d.PutAttr(name, value)
		}
	}
	if !added {
		return
	}
	for w := wire.Members(object); w.Next() && !d.Failed(); {
		name, value := d.Text(w.RawName()), w.RawValue()
		if len(name) < 2 || name[0] != '_' {
			continue
		}
		d.Field(name[1:])
		if wire.IsObject(value) {
			d.PutObject(value, nil)
		} else {
			d.JSON(value)
		}
	}
}

// level sets the level from a number of syslog; 3.0 is one too.
func (d *decoder) level(name, value []byte) {
	text := value
	if wire.IsString(value) {
		text = d.Text(value)
	}
	if level, known := levels.ParseSyslog(bytes.TrimSuffix(text, []byte(".0"))); known && !d.Has(normalize.Level) {
		d.SetLevel(level)
		return
	}
	d.PutSlot(normalize.Level, name, value)
}

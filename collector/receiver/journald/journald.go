// Package journald takes the entries of systemd's journal that systemd-journal-upload sends:
// a body in the journal's export format, without an end as long as there are entries.
//
//	MESSAGE                msg
//	PRIORITY               level, by syslog's severities
//	SYSLOG_IDENTIFIER      service; without one _SYSTEMD_UNIT
//	__REALTIME_TIMESTAMP   time
//	_HOSTNAME              attrs.host
//	_PID                   attrs.procid
//	SYSLOG_FACILITY        attrs.facility, by name
//	others                 attrs, under their names
//
// Other fields of two underscores, which say where in a journal the entry is, are left out.
// A field is NAME=value in a line, or, where it has line ends or bytes that are no text, a
// line NAME, the size in 8 bytes, little-endian, the value and LF. A blank line ends an entry.
//
// Entries of one _STREAM_ID are the lines that a service prints. Those that only continue the one
// before, see join.go, belong to its event.
package journald

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/rollway/rollway/collector/normalize"
	"github.com/rollway/rollway/collector/receiver"
	"github.com/rollway/rollway/collector/receiver/syslog"
	"github.com/rollway/rollway/internal/levels"
)

// Upload is the protocol of /upload, a receiver.BodyProtocol.
var Upload receiver.Protocol = upload{}

type upload struct{}

const mediaType = "application/vnd.fdo.journal"

// Name is for the log.
func (upload) Name() string { return "systemd's journal" }

// MaxFrame is one more than the longest entry, which shows that it is too long.
func (upload) MaxFrame(maxEvent, _ int) int { return longest(maxEvent) + 1 }

// longest is how long an entry may be whose line may have maxEvent bytes.
func longest(maxEvent int) int { return 2*maxEvent + 64<<10 }

// Open begins a request.
func (upload) Open() receiver.Session { return new(session) }

// Accepts refuses what systemd-journal-remote does.
func (upload) Accepts(h http.Header) error {
	if kind, _, _ := strings.Cut(h.Get("Content-Type"), ";"); kind != mediaType {
		return &receiver.Refusal{Code: http.StatusUnsupportedMediaType, Text: "Content-Type: " + mediaType + " is required"}
	}
	return nil
}

// Decode reads one entry again, without the blank line that has ended it.
func (upload) Decode(q *receiver.Request) error {
	event(q.Norm.Build(q.Batch, q.Received), q.Body)
	return nil
}

// Answer is in words, as systemd-journal-remote's.
func (upload) Answer(a *receiver.Answer) {
	a.Header.Set("Content-Type", "text/plain")
	text := a.Text
	if a.Code == http.StatusOK {
		a.Code, text = http.StatusAccepted, "OK."
	}
	a.Body = append(append(a.Body, text...), '\n')
}

// session is one request.
type session struct {
	most     int    // bytes of an entry
	at       int    // how much of the entry has been looked at, in whole fields
	skipping bool   // inside an entry that is too long
	skip     uint64 // bytes to come of the field that is being skipped
	inLine   bool   // that field is a line, of unknown length
	joined   []byte // scratch of join
}

// Decode takes whole entries.
func (s *session) Decode(c *receiver.Chunk) (taken int, err error) {
	if s.most == 0 {
		s.most = longest(c.Norm.MaxEventBytes())
	}
	for n := 1; n > 0 && taken < len(c.Data) && !c.Full(0); taken += n {
		next := s.entry
		if s.skipping {
			next = s.pass
		}
		if n, err = next(c, c.Data[taken:]); err != nil {
			c.RejectRaw(normalize.ReasonSyntax, err.Error(), c.Data[taken:])
			return taken, err
		}
	}
	return taken, nil
}

// entry takes the entry at the beginning of data and returns its length; 0 if more of it has
// to come. Of an entry that is too long it takes the fields before the one with which it is.
func (s *session) entry(c *receiver.Chunk, data []byte) (n int, err error) {
	for s.at < len(data) {
		f, err := read(data[s.at:])
		size := uint64(s.at) + max(f.size, uint64(len(f.name)+len(f.value)))
		switch {
		case err != nil:
			return 0, err
		case size > uint64(s.most):
			c.RejectRaw(normalize.ReasonTooLarge, fmt.Sprintf("an entry is longer than %d bytes", s.most), data[:min(size, uint64(len(data)))])
			n, s.at, s.skipping = s.at, 0, true
			if n == 0 {
				return s.pass(c, data)
			}
			return n, nil
		case f.size == 0 || size > uint64(len(data)):
			return 0, nil
		case f.name != nil:
			s.at = int(size)
			continue
		}
		n = int(size)
		if s.at > 0 {
			var fields []byte
			if fields, n = s.join(c, data, n); n == 0 {
				return 0, nil
			}
			event(c.Norm.Build(c.Batch, c.Received), fields)
		}
		s.at = 0
		return n, nil
	}
	return 0, nil
}

// pass returns how much of data belongs to an entry that is too long.
func (s *session) pass(_ *receiver.Chunk, data []byte) (n int, err error) {
	switch {
	case s.inLine:
		end := bytes.IndexByte(data, '\n')
		if end < 0 {
			return len(data), nil
		}
		s.inLine = false
		return end + 1, nil
	case s.skip == 0:
		f, err := read(data)
		if err != nil {
			return 0, err
		}
		s.skip, s.inLine, s.skipping = f.size, f.size == 0 && f.name != nil, f.name != nil || f.size == 0
		if s.inLine {
			return len(data), nil
		}
	}
	n = int(min(s.skip, uint64(len(data))))
	s.skip -= uint64(n)
	return n, nil
}

// field is one field, or the line between entries, which has no name. What is not whole has
// size 0 as long as its size is not known, and no name as long as that is not whole.
type field struct {
	name, value []byte // of a value with a size as much as is there
	size        uint64 // of all of it
}

// maxName is beyond the 64 bytes that the journal allows.
const maxName = 256

var errName = errors.New("not the journal's export format: expected NAME=value, or NAME, a size and a value")

// read reads the field at the beginning of data.
func read(data []byte) (f field, err error) {
	end := bytes.IndexAny(data[:min(len(data), maxName+1)], "=\n")
	switch {
	case end == 0 && data[0] == '\n':
		return field{size: 1}, nil
	case end <= 0 && (end == 0 || len(data) > maxName):
		return f, errName
	case end < 0:
		return f, nil
	case data[end] == '=':
		f.name, f.value = data[:end], data[end+1:]
		if end = bytes.IndexByte(f.value, '\n'); end >= 0 {
			f.value = f.value[:end]
			f.size = uint64(len(f.name) + end + 2)
		}
		return f, nil
	}
	const head = 8
	if len(data) < end+1+head {
		return f, nil
	}
	size := binary.LittleEndian.Uint64(data[end+1:])
	f.name, f.value, f.size = data[:end], data[end+1+head:], uint64(end+head+2)+size
	switch have := uint64(len(f.value)); {
	case size >= 1<<40:
		return f, fmt.Errorf("not the journal's export format: a value of %d bytes", size)
	case have > size && f.value[size] != '\n':
		return f, errName
	case have > size:
		f.value = f.value[:size]
	}
	return f, nil
}

var (
	message    = []byte("MESSAGE")
	service    = []byte("SYSLOG_IDENTIFIER")
	timestamp  = []byte("__REALTIME_TIMESTAMP")
	nameHost   = []byte("host")
	nameProcID = []byte("procid")
)

// event makes an event of the fields of an entry.
func event(b *normalize.Builder, entry []byte) {
	defer b.Done()
	b.Begin()
	b.Raw(entry)
	var unit []byte
	for len(entry) > 0 && !b.Failed() {
		f, err := read(entry)
		if err != nil || f.size == 0 || f.size > uint64(len(entry)) { // of one that is read again
			b.Reject(normalize.ReasonSyntax, errName.Error())
			return
		}
		entry = entry[f.size:]
		switch string(f.name) {
		case "MESSAGE":
			b.SlotNamed(normalize.Message, message)
		case "SYSLOG_IDENTIFIER":
			b.SlotNamed(normalize.Service, service)
		case "__REALTIME_TIMESTAMP":
			b.SlotNamed(normalize.Time, timestamp)
		case "PRIORITY":
			if level, known := levels.ParseSyslog(f.value); known && !b.Has(normalize.Level) {
				b.SetLevel(level)
				continue
			}
			b.Attr(f.name)
		case "SYSLOG_FACILITY":
			b.Attr(syslog.NameFacility)
			f.value = syslog.Facility(f.value)
		case "_HOSTNAME":
			b.Attr(nameHost)
		case "_PID":
			b.Attr(nameProcID)
		case "_SYSTEMD_UNIT":
			unit = f.value
			b.Attr(f.name)
		default:
			if bytes.HasPrefix(f.name, []byte("__")) {
				continue
			}
			b.Field(f.name)
		}
		if normalize.IsText(f.value) {
			b.String(f.value)
		} else {
			b.Bytes(f.value)
		}
	}
	if unit != nil && !b.Has(normalize.Service) && !b.Failed() {
		b.Slot(normalize.Service)
		b.String(unit)
	}
	b.End()
}

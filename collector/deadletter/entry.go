package deadletter

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/rollway/rollway/collector/normalize"
	"github.com/rollway/rollway/collector/ulid"
)

// Entry is one dead letter: a line of a file.
type Entry struct {
	ID       string    `json:"id,omitempty"`       // a ULID, the key under which it is sent again
	Time     time.Time `json:"time,omitzero"`      // of the first rejection
	Count    uint64    `json:"count,omitempty"`    // events that it is of; 0: one
	Last     time.Time `json:"last,omitzero"`      // of the last rejection
	Replayed bool      `json:"replayed,omitempty"` // it was sent again and stored
	Receiver string    `json:"receiver"`           // where the event came in: a path or a protocol
	Tenant   string    `json:"tenant,omitempty"`   // whose it was
	Client   string    `json:"client,omitempty"`   // who sent it, if it has no tenant: see Origin
	Reason   string    `json:"reason"`             // see package normalize
	Detail   string    `json:"detail,omitempty"`   // what was found and what was expected, in the first
	Cut      bool      `json:"cut,omitempty"`      // Event is the beginning only
	Event    string    `json:"event,omitempty"`    // as it was sent
	Base64   string    `json:"base64,omitempty"`   // the same if it is not UTF-8
	Withheld bool      `json:"withheld,omitempty"` // Event is not kept, as rules redact events
	Whole    bool      `json:"whole,omitempty"`    // Event is a request, in which no events could be found

	// What Event shared with others, or came in, as its receiver needs it to read it
	// again: labels, a tag. Nil: nothing.
	Context       *string `json:"context,omitempty"`
	ContextBase64 string  `json:"context_base64,omitempty"` // the same if it is not UTF-8
	ContextCut    bool    `json:"context_cut,omitempty"`    // there was some, too large to be kept
}

// An Origin says where rejected events came from.
type Origin struct {
	Receiver string // the path or the protocol where they came in
	Tenant   string // whose they are; "": nobody's in particular
	Client   string // who sent them, if they have no tenant: a token's scope, or an address
	Time     time.Time
}

// principal is who has a share of the room.
func (o *Origin) principal() string {
	if o.Tenant != "" {
		return o.Tenant
	}
	return "\x00" + o.Client // which no tenant is called
}

// Text returns the event.
func (l *Entry) Text() ([]byte, error) { return decode(l.Event, l.Base64) }

// ContextBytes returns the context; nil: there is none.
func (l *Entry) ContextBytes() ([]byte, error) {
	switch {
	case l.ContextBase64 != "":
		return decode("", l.ContextBase64)
	case l.Context != nil:
		return []byte(*l.Context), nil
	}
	return nil, nil
}

func decode(text, encoded string) ([]byte, error) {
	if encoded == "" {
		return []byte(text), nil
	}
	return base64.StdEncoding.DecodeString(encoded)
}

// Each line begins with its members id, time, count, last and replayed, which have a fixed
// length: count, last and replayed are written again where they are.
//
//	offset  size  member
//	     7    26  id
//	    43    30  time
//	    83    12  count, after spaces
//	   104    30  last
//	   147     5  replayed: true and a space, or false
//	   153        the other members
const (
	timeFormat   = "2006-01-02T15:04:05.000000000Z"
	countAt      = 75 // where what appendCount appends begins
	countValueAt = 83
	countSize    = len(`"count":`) + 12
	replayedAt   = 147
	headSize     = 153
	maxCount     = 999_999_999_999
)

// appendLine appends the line of a dead letter in batch.
func appendLine(dst []byte, k *kept, of *normalize.DeadLetter, batch *normalize.Batch, o *Origin) []byte {
	e := Entry{Receiver: o.Receiver, Tenant: o.Tenant, Client: o.Client, Reason: of.Reason, Detail: of.Detail, Cut: of.Cut, Withheld: of.Withheld}
	if !of.Withheld {
		e.setTexts(of, batch)
	}
	dst = o.Time.UTC().AppendFormat(append(append(append(dst, `{"id":"`...), k.id...), `","time":"`...), timeFormat)
	dst = append(appendCount(append(dst, `",`...), k), `"replayed":false,`...)
	out := bytes.NewBuffer(dst)
	rest := json.NewEncoder(out)
	rest.SetEscapeHTML(false)
	at := len(dst)
	rest.Encode(&e) // never fails: all of it is text
	line := out.Bytes()
	return append(line[:at], line[at+len("{"):]...)
}

// appendCount appends what is written again of a line when its count changes.
func appendCount(dst []byte, k *kept) []byte {
	var digits [20]byte
	count := strconv.AppendUint(digits[:0], k.count, 10)
	dst = append(append(dst, `"count":            `...)[:len(dst)+countSize-len(count)], count...)
	return append(k.last.UTC().AppendFormat(append(dst, `,"last":"`...), timeFormat), `",`...)
}

// setTexts sets the event and its context, in base64 if they are not UTF-8.
func (l *Entry) setTexts(of *normalize.DeadLetter, batch *normalize.Batch) {
	if text := batch.Text(of); utf8.Valid(text) {
		l.Event = string(text)
	} else {
		l.Base64 = base64.StdEncoding.EncodeToString(text)
	}
	switch l.Whole = of.Whole; {
	case of.Whole:
	case of.HasContext:
		context := string(batch.Context(of))
		if utf8.ValidString(context) {
			l.Context = &context
		} else {
			l.ContextBase64 = base64.StdEncoding.EncodeToString([]byte(context))
		}
	default:
		l.ContextCut = of.ContextCut
	}
}

// parseHead returns the count and the id at the beginning of a line, and whether it has them.
func parseHead(line []byte) (id string, count uint64, ok bool) {
	if len(line) < headSize || string(line[:7]) != `{"id":"` || string(line[countAt:countValueAt]) != `"count":` {
		return "", 0, false
	}
	count, err := strconv.ParseUint(strings.TrimLeft(string(line[countValueAt:countValueAt+12]), " "), 10, 64)
	return string(line[7 : 7+ulid.Len]), count, err == nil
}

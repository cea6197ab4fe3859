// Package datadog takes what clients of Datadog's logs intake send: its Agent, tracers,
// Vector, Fluent Bit.
//
// A body is an object or an array of them; as text/plain it is lines. Members become fields
// by the keys of package normalize, and these besides:
//
//	message           msg; an object there is read like an event
//	status            level: a name, or a number of syslog from 0 to 7; others are none
//	ddtags            attrs.ddtags, an object: "env:prod,team:a" is {"env":"prod","team":"a"}
//
// The query may name ddsource, ddtags, hostname and service for all events that do not.
// An event whose message only continues the one before belongs to it, if they differ in
// nothing else but their time. An empty object, which the Agent sends to see whether it can,
// is no event.
package datadog

import (
	"bytes"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/rollway/rollway/collector/normalize"
	"github.com/rollway/rollway/collector/pool"
	"github.com/rollway/rollway/collector/receiver"
	"github.com/rollway/rollway/collector/receiver/wire"
	"github.com/rollway/rollway/internal/jsonline"
	"github.com/rollway/rollway/internal/jsonwalk"
	"github.com/rollway/rollway/internal/levels"
)

// Protocol is that of /api/v2/logs.
var Protocol receiver.Protocol = protocol{}

type protocol struct{}

// parameters are what the query may say of all events.
var parameters = [...]string{"ddsource", tags: "ddtags", 2: "hostname", 3: "service"}

const tags = 1 // in parameters

// names are parameters as bytes.
var names = func() (list [len(parameters)][]byte) {
	for i, name := range parameters {
		list[i] = []byte(name)
	}
	return list
}()

// Tags are split if they are no more. Datadog takes 100.
const (
	maxTags     = 100
	maxTagBytes = 10 << 10 // of all tags of an event
)

// decoder is the memory of one Decode.
type decoder struct {
	wire.Event
	lines  wire.Joiner
	shared [len(parameters)][]byte // as JSON; nil: the query does not have it
	query  string                  // that says so, for events that are rejected
}

var decoders = pool.Pool[*decoder]{New: func() *decoder { return new(decoder) }}

// Memory is for the pool.
func (d *decoder) Memory() pool.Memory { return d.lines.Memory(d.Scratch()) }

// messageNames has that of an event's text.
var messageNames = wire.Names("message")

// Decode reads the events of a request.
func (protocol) Decode(q *receiver.Request) error {
	d := decoders.Get()
	defer decoders.Put(d)
	d.share(q.HTTP.URL.RawQuery)
	d.Builder = q.Norm.Build(q.Batch, q.Received)
	d.lines.Names, d.lines.Most = messageNames, q.Norm.MostJoined()
	var err error
	if strings.HasPrefix(q.HTTP.Header.Get("Content-Type"), "text/plain") {
		wire.Lines(d.Builder, q.Body, func() { d.end(0) })
	} else {
		err = d.events(q.Body)
	}
	d.Done()
	d.shared, d.query = [len(parameters)][]byte{}, ""
	return err
}

// share notes what the query says of all events, and nothing else of it.
func (d *decoder) share(query string) {
	if query == "" {
		return
	}
	values, _ := url.ParseQuery(query) // what cannot be read is left out
	kept := url.Values{}
	for i, name := range parameters {
		if v := values.Get(name); v != "" {
			kept.Set(name, v)
			d.shared[i] = jsonline.AppendString(nil, v)
		}
	}
	d.query = kept.Encode()
}

// Reread implements receiver.Rereader: the context is the query.
func (p protocol) Reread(q *receiver.Request, context []byte) error {
	q.HTTP.URL.RawQuery = string(context)
	if !wire.IsWholeObject(q.Body) {
		q.HTTP.Header.Set("Content-Type", "text/plain")
	}
	return p.Decode(q)
}

func (d *decoder) events(body []byte) error {
	if len(bytes.TrimSpace(body)) == 0 {
		return &receiver.Refusal{Code: http.StatusBadRequest, Text: "the body is empty; expected an array of objects", Empty: true}
	}
	for value, err := range d.lines.Each(body) {
		if err == nil {
			d.event(value)
			continue
		}
		d.Begin()
		d.Raw(value)
		d.reject(normalize.ReasonSyntax, err.Error())
	}
	return nil
}

func (d *decoder) event(value []byte) {
	w := wire.Members(value)
	if wire.IsObject(value) && !w.Next() || !d.Start(value) {
		return
	}
	if !wire.IsObject(value) {
		d.reject(normalize.ReasonNotObject, "an event is not an object")
		return
	}
	var there [len(parameters)]bool
	for w := wire.Members(value); w.Next() && !d.Failed(); {
		for i, name := range parameters {
			there[i] = there[i] || w.Is(name)
		}
		switch name, v := w.RawName(), w.RawValue(); {
		case w.Is("message") && wire.IsObject(v):
			for m := wire.Members(v); m.Next() && !d.Failed(); {
				d.PutField(m.RawName(), m.RawValue())
			}
		case w.Is("status"):
			d.status(name, v)
		case w.Is(parameters[tags]) && wire.IsString(v):
			d.tags(v)
		default:
			d.PutField(name, v)
		}
	}
	bits := 0
	for i := range there {
		if there[i] {
			bits |= 1 << i
		}
	}
	d.end(bits)
}

// status sets the level.
func (d *decoder) status(name, value []byte) {
	text := value
	if wire.IsString(value) {
		text = d.Text(value)
	}
	level, known := levels.ParseSyslog(text)
	switch number := len(text) > 0 && (jsonwalk.IsDigit(text[0]) || text[0] == '-'); {
	case number && known && !d.Has(normalize.Level):
		d.SetLevel(level)
	case number: // of HTTP
		d.PutAttr(name, value)
	default:
		d.PutSlot(normalize.Level, name, value)
	}
}

// end ends an event. there has a bit for each parameter that it has itself.
func (d *decoder) end(there int) {
	for i, value := range d.shared {
		switch {
		case value == nil || there&(1<<i) != 0 || d.Failed():
		case i == tags:
			d.tags(value)
		default:
			d.Field(names[i])
			d.JSON(value)
		}
	}
	if !d.End() {
		d.keepQuery()
	}
}

func (d *decoder) reject(reason, detail string) {
	d.Reject(reason, detail)
	d.keepQuery()
}

// keepQuery keeps what the query says with an event that was rejected.
func (d *decoder) keepQuery() {
	if d.query != "" {
		d.Context(len(d.query), func(dst []byte) []byte { return append(dst, d.query...) })
	}
}

// tags adds attrs.ddtags: an object, in which a name that occurs again has an array, or the
// text if that has no tag with a value or too much to split.
func (d *decoder) tags(value []byte) {
	text := d.Text(value)
	d.Attr(names[tags])
	if len(text) > maxTagBytes || bytes.Count(text, comma) >= maxTags || bytes.IndexByte(text, ':') < 0 {
		d.String(text)
		return
	}
	d.BeginObject()
	for rest := text; len(rest) > 0; {
		name, v, more := cutTag(rest)
		before := text[:len(text)-len(rest)]
		rest = more
		if _, _, again := find(before, name); len(name) == 0 || again {
			continue
		}
		d.Name(name)
		other, after, again := find(rest, name)
		if !again {
			d.String(v)
			continue
		}
		d.BeginArray()
		d.String(v)
		for ; again; other, after, again = find(after, name) {
			d.String(other)
		}
		d.EndArray()
	}
	d.EndObject()
}

var comma, colon = []byte(","), []byte(":")

// cutTag returns the name and the value of the first tag.
func cutTag(tags []byte) (name, value, rest []byte) {
	tag, rest, _ := bytes.Cut(tags, comma)
	name, value, _ = bytes.Cut(bytes.TrimSpace(tag), colon)
	return name, value, rest
}

// find returns the value of the first tag of that name, and the tags after it.
func find(tags, name []byte) (value, rest []byte, found bool) {
	for rest = tags; len(rest) > 0; {
		var n []byte
		if n, value, rest = cutTag(rest); bytes.Equal(n, name) {
			return value, rest, true
		}
	}
	return nil, nil, false
}

// Answer answers as Datadog does: 202 once events are stored, though not all may be, and
// otherwise why nothing was.
func (protocol) Answer(a *receiver.Answer) {
	if a.Code == http.StatusOK {
		a.Code, a.Body = http.StatusAccepted, append(a.Body, "{}\n"...)
		return
	}
	a.Body = fmt.Appendf(a.Body, `{"errors":[{"status":"%d","title":%q,"detail":%s}]}`+"\n", a.Code, http.StatusText(a.Code), jsonline.AppendString(nil, a.Text))
}

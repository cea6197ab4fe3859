package loki

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/rollway/rollway/collector/receiver"
	"github.com/rollway/rollway/collector/receiver/wire"
	"github.com/rollway/rollway/internal/jsonwalk"
)

// readJSON makes events of the entries of a request in JSON:
//
//	{"streams":[{"stream":{NAME:VALUE,…},"values":[["NANOSECONDS","LINE",{NAME:VALUE,…}],…]}]}
//
// and, as Loki took it at first,
//
//	{"streams":[{"labels":"{NAME=\"VALUE\"}","entries":[{"ts":"RFC 3339","line":"LINE"}]}]}
func (r *reader) readJSON(q *receiver.Request) error {
	r.begin(q)
	r.Begin(q.Body, "push request")
	err := r.Finish(r.jsonRequest())
	r.b.Done()
	return q.Discard(err)
}

func (r *reader) jsonRequest() (end int, err error) {
	return r.Members(r.Start(), "a push request", func(name []byte, at int) (int, error) {
		if string(name) == "streams" {
			return r.Each(at, "streams", r.jsonStream)
		}
		return 0, nil
	})
}

// jsonStream reads the stream that begins at an offset: first its labels, which may
// come last, and then its entries.
func (r *reader) jsonStream(at int) (end int, err error) {
	r.labels, r.values = r.labels[:0], r.values[:0]
	if _, err := r.Object(at, "a stream"); err != nil {
		return 0, err
	}
	w := jsonwalk.Members(r.Body, at) // the second walk checks the text
	for w.Next() {
		raw, start := w.RawValue(), w.Value.Start
		switch name := string(r.Name(&w)); {
		case raw[0] == 'n':
		case name == "stream":
			if _, err = r.jsonPairs(&r.labels, start, "stream"); err != nil {
				return 0, err
			}
		case name == "labels":
			if raw[0] != '"' {
				return 0, r.Mismatch(start, "labels is a string")
			}
			if err := r.parseLabels(r.Text(raw)); err != nil {
				return 0, err
			}
		}
	}
	labels := len(r.values)
	return r.Members(at, "a stream", func(name []byte, at int) (int, error) {
		what := string(name)
		if what != "values" && what != "entries" {
			return 0, nil
		}
		return r.Each(at, what, func(at int) (int, error) {
			r.values = r.values[:labels]
			return r.jsonEntry(what == "values", at)
		})
	})
}

// jsonEntry makes the event of the entry at an offset, which is a value or an object.
func (r *reader) jsonEntry(isValue bool, at int) (end int, err error) {
	var e entry
	r.metadata = r.metadata[:0]
	if isValue {
		end, err = r.jsonValue(&e, at)
	} else {
		end, err = r.jsonMembers(&e, at)
	}
	if err == nil && isValue {
		next := 0
		err = r.join(&e, func() (line []byte, is bool) {
			line, next, is = r.jsonLine(&e, end)
			return line, is
		}, func() { end = next })
	}
	if err != nil {
		return 0, err
	}
	r.entry(&e)
	return end, nil
}

// jsonValue reads ["NANOSECONDS", "LINE", {…}].
func (r *reader) jsonValue(e *entry, at int) (end int, err error) {
	i := 0
	end, err = r.Each(at, "a value", func(at int) (end int, err error) {
		i++
		switch i {
		case 1:
			return r.jsonNanoseconds(e, at)
		case 2:
			e.line, end, err = r.jsonString(at, "a line")
			return end, err
		case 3:
			if end, err = r.jsonPairs(&r.metadata, at, "structured metadata"); err == nil {
				e.metadata = r.Body[at:end]
			}
			return end, err
		}
		return 0, r.Invalid(at, errors.New("a value has at most three elements: a time, a line and structured metadata"))
	})
	if err == nil && i < 2 {
		err = r.Invalid(at, errors.New("a value has at least two elements: a time and a line"))
	}
	return end, err
}

// jsonMembers reads {"ts":…,"line":…,"structuredMetadata":{…}}.
func (r *reader) jsonMembers(e *entry, at int) (end int, err error) {
	return r.Members(at, "an entry", func(name []byte, at int) (end int, err error) {
		switch string(name) {
		case "ts", "timestamp":
			return r.jsonTime(e, at)
		case "line":
			e.line, end, err = r.jsonString(at, "line")
		case "structuredMetadata":
			return r.jsonPairs(&r.metadata, at, "structuredMetadata")
		}
		return end, err
	})
}

// jsonNanoseconds reads a time: a number, or one as a string, since 1970.
func (r *reader) jsonNanoseconds(e *entry, at int) (end int, err error) {
	if end, err = r.Skip(at); err != nil {
		return 0, err
	}
	raw := r.Body[at:end]
	text := raw
	if raw[0] == '"' {
		text = r.Text(raw)
	}
	ns, err := strconv.ParseInt(string(text), 10, 64)
	if err != nil {
		return 0, r.Invalid(at, fmt.Errorf("time %.50q is not a number of nanoseconds since 1970", raw))
	}
	sec, nsec := ns/1e9, ns%1e9
	if nsec < 0 {
		sec, nsec = sec-1, nsec+1e9
	}
	e.setTime(sec, nsec)
	return end, nil
}

// jsonTime reads a time as in RFC 3339.
func (r *reader) jsonTime(e *entry, at int) (end int, err error) {
	text, end, err := r.jsonString(at, "ts")
	if err != nil {
		return 0, err
	}
	t, err := time.Parse(time.RFC3339Nano, string(text))
	if err != nil {
		return 0, r.Invalid(at, fmt.Errorf("ts %.50q is not a time as in RFC 3339", text))
	}
	e.setTime(t.Unix(), int64(t.Nanosecond()))
	return end, nil
}

// jsonPairs reads an object of strings as pairs of a list. Other values are taken as
// they are written.
func (r *reader) jsonPairs(list *[]pair, at int, what string) (end int, err error) {
	w, err := r.Object(at, what)
	if err != nil {
		return 0, err
	}
	for w.Next() {
		value := w.RawValue()
		if value[0] == 'n' {
			continue
		}
		p := pair{value: value}
		if p.name, err = r.keep(w.RawName()); err == nil && value[0] == '"' {
			p.value, err = r.keep(value)
		}
		if err == nil {
			err = r.add(list, p)
		}
		if err != nil {
			return 0, err
		}
	}
	return wire.End(&w)
}

// jsonString reads a string, which is called what.
func (r *reader) jsonString(at int, what string) (text []byte, end int, err error) {
	if r.Kind(at) != '"' {
		return nil, 0, r.Mismatch(at, what+" is a string")
	}
	if end, err = r.Skip(at); err != nil {
		return nil, 0, err
	}
	text, err = r.keep(r.Body[at:end])
	return text, end, err
}

// keep returns the text of a string, which is in values if it has escapes.
func (r *reader) keep(raw []byte) ([]byte, error) {
	inner := raw[1 : len(raw)-1]
	if bytes.IndexByte(inner, '\\') < 0 {
		return inner, nil
	}
	if err := r.room(len(inner)); err != nil {
		return nil, err
	}
	start := len(r.values)
	r.values = jsonwalk.AppendText(r.values, inner)
	return r.values[start:len(r.values):len(r.values)], nil
}

package otlp

import (
	"errors"
	"fmt"

	"github.com/rollway/rollway/collector/receiver"
	"github.com/rollway/rollway/collector/receiver/wire"
	"github.com/rollway/rollway/internal/jsonwalk"
)

// readJSON makes events of the records of a request in JSON. It goes over the text
// twice: once over a ResourceLogs, to check that it is JSON and to find what its
// records share, which may come after them, and then over each record.
//
// If the request cannot be read to its end, nothing that was read counts.
func (r *reader) readJSON(q *receiver.Request) error {
	r.begin(q, true)
	r.Begin(q.Body, "ExportLogsServiceRequest")
	err := r.Finish(r.jsonRequest())
	r.b.Done()
	if err == nil {
		return nil
	}
	var refusal *receiver.Refusal
	if !errors.As(err, &refusal) {
		q.Batch.Reset()
	}
	return err
}

func (r *reader) jsonRequest() (end int, err error) {
	w, err := r.object(&requestMsg, r.Start())
	if err != nil {
		return 0, err
	}
	for f := r.member(&requestMsg, &w); f != nil; f = r.member(&requestMsg, &w) {
		if end, err = r.Each(w.Value.Start, f.name, r.jsonResourceLogs); err != nil {
			return 0, err
		}
		w.SetEnd(end)
	}
	return wire.End(&w)
}

// object returns a walk through the message that begins at an offset.
func (r *reader) object(m *message, at int) (w jsonwalk.Walk, err error) {
	return r.Object(at, m.name)
}

// member goes to the next member that is a field of m and is not null, and returns
// the field; nil: there is none.
func (r *reader) member(m *message, w *jsonwalk.Walk) *field {
	for w.NextName() {
		if f := m.lookup(r.Name(w)); f != nil && r.Kind(w.Value.Start) != 'n' {
			return f
		}
		if !w.SkipValue() {
			return nil
		}
	}
	return nil
}

// scopeAt is where a ScopeLogs is in the text, and what its records share.
type scopeAt struct {
	at        int
	scope     int // -1: there is none
	schemaURL jsonwalk.Span
}

// scopeBytes is what a ScopeLogs takes up in memory, also while the list grows.
const scopeBytes = 64

// jsonResourceLogs reads the ResourceLogs that begins at an offset.
func (r *reader) jsonResourceLogs(at int) (end int, err error) {
	var res resource
	r.scopes = r.scopes[:0]
	w, err := r.object(&resourceLogsMsg, at)
	if err != nil {
		return 0, err
	}
	for f := r.member(&resourceLogsMsg, &w); f != nil; f = r.member(&resourceLogsMsg, &w) {
		switch f.num {
		case 1:
			end, err = r.jsonResource(&res, w.Value.Start)
		case 2:
			end, err = r.Each(w.Value.Start, f.name, r.jsonFindScope)
		default:
			_, res.schemaURL, end, err = r.scalar(f, &w)
		}
		if err != nil {
			return 0, err
		}
		w.SetEnd(end)
	}
	if end, err = wire.End(&w); err != nil {
		return 0, err
	}
	for i := range r.scopes {
		if err := r.jsonScopeLogs(&res, &r.scopes[i]); err != nil {
			return 0, err
		}
	}
	return end, nil
}

// jsonResource reads the Resource that begins at an offset.
func (r *reader) jsonResource(res *resource, at int) (end int, err error) {
	*res = resource{schemaURL: res.schemaURL, msg: part{at: at}}
	w, err := r.object(&resourceMsg, at)
	if err != nil {
		return 0, err
	}
	for f := r.member(&resourceMsg, &w); f != nil; f = r.member(&resourceMsg, &w) {
		if f.num == resourceAttributes {
			end, err = r.Each(w.Value.Start, f.name, func(at int) (int, error) {
				p, err := r.jsonKeyValue(at)
				if err != nil {
					return 0, err
				}
				if text := r.jsonService(&p); text != nil && res.service == nil {
					res.service = text
				} else {
					res.others = true
				}
				return p.end, nil
			})
		} else {
			res.dropped, _, end, err = r.scalar(f, &w)
		}
		if err != nil {
			return 0, err
		}
		w.SetEnd(end)
	}
	if end, err = wire.End(&w); err == nil {
		res.msg.bytes = r.Body[at:end]
	}
	return end, err
}

// jsonFindScope notes where a ScopeLogs begins, at an offset, and what its records
// share. It does not check the text: jsonScopeLogs does.
func (r *reader) jsonFindScope(at int) (end int, err error) {
	s := scopeAt{at: at, scope: -1}
	w, err := r.object(&scopeLogsMsg, at)
	if err != nil {
		return 0, err
	}
	w = jsonwalk.Members(r.Body, at)
	for f := r.member(&scopeLogsMsg, &w); f != nil; f = r.member(&scopeLogsMsg, &w) {
		if _, err := r.Value(&w); err != nil {
			return 0, err
		}
		switch f.num {
		case 1:
			s.scope = w.Value.Start
		case 3:
			s.schemaURL = w.Value
		}
	}
	if len(r.scopes) == cap(r.scopes) {
		if err := r.reserve(0); err != nil {
			return 0, err
		}
	}
	r.scopes = append(r.scopes, s)
	return wire.End(&w)
}

// jsonScopeLogs reads the records of a ScopeLogs.
func (r *reader) jsonScopeLogs(res *resource, s *scopeAt) error {
	sc := scope{schemaURL: s.schemaURL.Of(r.Body)}
	if s.scope >= 0 {
		if err := r.jsonScope(&sc, s.scope); err != nil {
			return err
		}
	}
	w, err := r.object(&scopeLogsMsg, s.at)
	if err != nil {
		return err
	}
	for f := r.member(&scopeLogsMsg, &w); f != nil; f = r.member(&scopeLogsMsg, &w) {
		end := 0
		switch f.num {
		case 2:
			end, err = r.Each(w.Value.Start, f.name, func(at int) (int, error) { return r.jsonRecord(res, &sc, at) })
		case 3:
			_, _, end, err = r.scalar(f, &w)
		default:
			if _, err := r.Value(&w); err != nil {
				return err
			}
			continue
		}
		if err != nil {
			return err
		}
		w.SetEnd(end)
	}
	_, err = wire.End(&w)
	return err
}

// jsonScope reads the InstrumentationScope that begins at an offset.
func (r *reader) jsonScope(sc *scope, at int) error {
	w, err := r.object(&scopeMsg, at)
	if err != nil {
		return err
	}
	for f := r.member(&scopeMsg, &w); f != nil; f = r.member(&scopeMsg, &w) {
		end := 0
		switch f.num {
		case 1:
			_, sc.name, end, err = r.scalar(f, &w)
		case 2:
			_, sc.version, end, err = r.scalar(f, &w)
		case scopeAttributes:
			end, err = r.Each(w.Value.Start, f.name, func(at int) (int, error) {
				sc.attributes = true
				p, err := r.jsonKeyValue(at)
				return p.end, err
			})
		default:
			sc.dropped, _, end, err = r.scalar(f, &w)
		}
		if err != nil {
			return err
		}
		w.SetEnd(end)
	}
	end, err := wire.End(&w)
	if err == nil {
		sc.msg = part{bytes: r.Body[at:end], at: at}
	}
	return err
}

// jsonRecord makes the event of the LogRecord that begins at an offset.
func (r *reader) jsonRecord(res *resource, sc *scope, at int) (end int, err error) {
	if err := r.reserve(sharedSize(res, sc)); err != nil {
		return 0, err
	}
	r.b.Begin()
	if r.b.Failed() {
		if end, err = r.Skip(at); err != nil {
			return 0, err
		}
		r.b.Raw(r.Body[at:end])
		r.end(res, sc)
		return end, nil
	}
	w, err := r.object(&logRecordMsg, at)
	if err != nil {
		return 0, err
	}
	var rec record
	body := -1
	for f := r.member(&logRecordMsg, &w); f != nil; f = r.member(&logRecordMsg, &w) {
		switch f.num {
		case recordBody:
			body = w.Value.Start
			if _, err := r.Value(&w); err != nil {
				return 0, err
			}
			continue
		case recordAttributes:
			end, err = r.jsonPairs(f, w.Value.Start, asAttr)
		default:
			var number uint64
			var bytes []byte
			if number, bytes, end, err = r.scalar(f, &w); bytes != nil {
				rec.setBytes(f.num, bytes)
			} else {
				rec.setNumber(f.num, number)
			}
		}
		if err != nil {
			return 0, err
		}
		w.SetEnd(end)
	}
	if end, err = wire.End(&w); err != nil {
		return 0, err
	}
	r.spread += int64(end - at)
	r.b.Raw(r.Body[at:end])
	if err := r.jsonFinish(&rec, sc, res, body); err != nil {
		return 0, err
	}
	r.end(res, sc)
	return end, nil
}

// jsonFinish is finish for a record whose body begins at an offset; -1: it has none.
func (r *reader) jsonFinish(rec *record, sc *scope, res *resource, body int) error {
	if body < 0 {
		return r.finish(rec, sc, res)
	}
	w, err := r.openAny(&rec.body, body)
	if err != nil {
		return err
	}
	if err := r.finish(rec, sc, res); err != nil {
		return err
	}
	_, err = r.closeAny(&rec.body, &w)
	return err
}

// jsonPairs reads a field that is an array of KeyValues, at an offset.
func (r *reader) jsonPairs(f *field, at int, as named) (end int, err error) {
	return r.Each(at, f.name, func(at int) (int, error) {
		switch {
		case r.b.Failed():
			return r.Skip(at)
		case as == asOther:
			p, err := r.jsonKeyValue(at)
			if err != nil {
				return 0, err
			}
			if r.jsonService(&p) != nil {
				as = asMember
				return p.end, nil
			}
		}
		if end := r.jsonPlainPair(at, as); end > 0 {
			return end, nil
		}
		return r.jsonPair(at, as)
	})
}

// jsonPlainPair is jsonPair for the form that most attributes have. If the KeyValue
// has another it does nothing and returns -1.
func (r *reader) jsonPlainPair(at int, as named) (end int) {
	const beforeKey, beforeValue, atEnd = `{"key":`, `,"value":{"stringValue":`, `}}`
	key := r.after(beforeKey, at)
	value := r.after(beforeValue, r.stringEnd(key))
	valueEnd := r.stringEnd(value)
	if end = r.after(atEnd, valueEnd); end < 0 {
		return -1
	}
	text := r.Body
	r.name(r.textOf(text[key:value-len(beforeValue)]), as)
	r.b.String(r.textOf(text[value:valueEnd]))
	return end
}

// after returns the end of token, if it is at an offset and there is more after it,
// and else -1.
func (r *reader) after(token string, at int) int {
	text := r.Body
	if at < 0 || len(text)-at <= len(token) || string(text[at:at+len(token)]) != token {
		return -1
	}
	return at + len(token)
}

// stringEnd returns the end of the string at an offset, or -1.
func (r *reader) stringEnd(at int) int {
	if at < 0 || r.Body[at] != '"' {
		return -1
	}
	return jsonwalk.CheckString(r.Body, at)
}

// jsonPairsIn reads the KeyValues of the message that begins at an offset.
func (r *reader) jsonPairsIn(m *message, at int, as named) (end int, err error) {
	w, err := r.object(m, at)
	if err != nil {
		return 0, err
	}
	for f := r.member(m, &w); f != nil; f = r.member(m, &w) {
		if f.message != &keyValueMsg {
			if _, err := r.Value(&w); err != nil {
				return 0, err
			}
			continue
		}
		end, err := r.jsonPairs(f, w.Value.Start, as)
		if err != nil {
			return 0, err
		}
		w.SetEnd(end)
	}
	return wire.End(&w)
}

// jsonPair gives the Builder the KeyValue that begins at an offset, whose key comes
// first as a rule.
func (r *reader) jsonPair(at int, as named) (end int, err error) {
	w, err := r.object(&keyValueMsg, at)
	if err != nil {
		return 0, err
	}
	if f := r.member(&keyValueMsg, &w); f == nil || f.num != 1 {
		return r.jsonPairLater(at, as)
	}
	_, key, end, err := r.scalar(&keyValueMsg.fields[0], &w)
	if err != nil {
		return 0, err
	}
	w.SetEnd(end)
	if f := r.member(&keyValueMsg, &w); f == nil || f.num != 2 {
		return r.jsonPairLater(at, as)
	}
	r.name(r.textOf(key), as)
	if end, err = r.jsonValue(w.Value.Start); err != nil {
		return 0, err
	}
	w.SetEnd(end)
	if f := r.member(&keyValueMsg, &w); f != nil {
		return 0, r.Invalid(w.Name.Start, fmt.Errorf("%s comes twice", f.name))
	}
	return wire.End(&w)
}

// maxReread is how many times the length of a request what is passed over may have,
// to be read again.
const maxReread = 16

// jsonPairLater is jsonPair for a KeyValue whose members come in another order, or
// of which one is not there.
func (r *reader) jsonPairLater(at int, as named) (end int, err error) {
	p, err := r.jsonKeyValue(at)
	if err != nil {
		return 0, err
	}
	if r.reread += p.end - at; r.reread > maxReread*len(r.Body) {
		return 0, r.Invalid(at, errors.New("values that hold others come before their keys"))
	}
	r.name(r.textOf(p.key), as)
	if p.value < 0 {
		r.b.Null()
		return p.end, nil
	}
	_, err = r.jsonValue(p.value)
	return p.end, err
}

// pairAt is a KeyValue in the text.
type pairAt struct {
	key   []byte // a string; nil: there is none
	value int    // where it begins; -1: there is none
	end   int
}

// jsonKeyValue finds the parts of the KeyValue that begins at an offset.
func (r *reader) jsonKeyValue(at int) (p pairAt, err error) {
	p.value = -1
	w, err := r.object(&keyValueMsg, at)
	if err != nil {
		return p, err
	}
	for f := r.member(&keyValueMsg, &w); f != nil; f = r.member(&keyValueMsg, &w) {
		if f.num == 1 {
			_, p.key, p.end, err = r.scalar(f, &w)
			if err != nil {
				return p, err
			}
			w.SetEnd(p.end)
			continue
		}
		p.value = w.Value.Start
		if _, err := r.Value(&w); err != nil {
			return p, err
		}
	}
	p.end, err = wire.End(&w)
	return p, err
}

// jsonService returns the value of a KeyValue if its key is service.name and the
// value is a string that is not empty.
func (r *reader) jsonService(p *pairAt) []byte {
	if p.key == nil || p.value < 0 || !jsonwalk.Equal(p.key, string(serviceName)) {
		return nil
	}
	var v anyValue
	if _, err := r.openAny(&v, p.value); err != nil || v.kind != anyString || len(v.bytes) <= len(`""`) {
		return nil
	}
	return v.bytes
}

// jsonValue gives the Builder the AnyValue that begins at an offset.
func (r *reader) jsonValue(at int) (end int, err error) {
	var v anyValue
	w, err := r.openAny(&v, at)
	if err != nil {
		return 0, err
	}
	if err := r.put(&v); err != nil {
		return 0, err
	}
	return r.closeAny(&v, &w)
}

// openAny reads the field of an AnyValue. An array or a list is left to the caller,
// who calls closeAny once v has its end.
func (r *reader) openAny(v *anyValue, at int) (w jsonwalk.Walk, err error) {
	if w, err = r.object(&anyValueMsg, at); err != nil {
		return w, err
	}
	f := r.member(&anyValueMsg, &w)
	if f == nil {
		return w, nil
	}
	v.kind = anyKind(f.num)
	if f.message != nil {
		v.span.start = w.Value.Start
		return w, nil
	}
	v.value, v.bytes, v.span.end, err = r.scalar(f, &w)
	return w, err
}

// closeAny ends the walk through an AnyValue, and returns its end.
func (r *reader) closeAny(v *anyValue, w *jsonwalk.Walk) (end int, err error) {
	if v.kind != anyEmpty {
		w.SetEnd(v.span.end)
		if f := r.member(&anyValueMsg, w); f != nil {
			return 0, r.Invalid(w.Name.Start, fmt.Errorf("an AnyValue has one value, but %s is another", f.name))
		}
	}
	return wire.End(w)
}

// jsonArray gives the Builder the elements of the ArrayValue that begins at an
// offset.
func (r *reader) jsonArray(at int) (end int, err error) {
	w, err := r.object(&arrayValueMsg, at)
	if err != nil {
		return 0, err
	}
	for f := r.member(&arrayValueMsg, &w); f != nil; f = r.member(&arrayValueMsg, &w) {
		end, err := r.Each(w.Value.Start, f.name, func(at int) (int, error) {
			if r.b.Failed() {
				return r.Skip(at)
			}
			return r.jsonValue(at)
		})
		if err != nil {
			return 0, err
		}
		w.SetEnd(end)
	}
	return wire.End(&w)
}

package otlp

import (
	"errors"
	"fmt"

	"github.com/rollway/rollway/collector/receiver"
	"github.com/rollway/rollway/collector/receiver/wire"
	"github.com/rollway/rollway/internal/jsonwalk"
)

// readJSON makes events of the records of a request in JSON. It goes over a
// ResourceLogs twice: first to find what its records share, which may come after
// them, and then to read each record.
func (r *reader) readJSON(q *receiver.Request) error {
	r.begin(q, true)
	r.Begin(q.Body, "ExportLogsServiceRequest")
	err := r.Finish(r.jsonFields(&requestMsg, r.Start(), func(f *field, at int) (int, error) {
		return r.Each(at, f.name, r.jsonResourceLogs)
	}))
	r.b.Done()
	return wire.Discard(q, err)
}

// jsonFields has read read each field of the message at an offset that is known and
// not null. read returns the end of the field's value, jsonFields that of the message.
func (r *reader) jsonFields(m *message, at int, read func(f *field, at int) (end int, err error)) (end int, err error) {
	w, err := r.Object(at, m.name)
	if err != nil {
		return 0, err
	}
	for w.NextName() {
		f := m.lookup(r.Name(&w))
		if f == nil || r.Kind(w.Value.Start) == 'n' {
			w.SkipValue()
			continue
		}
		if end, err = read(f, w.Value.Start); err != nil {
			return 0, err
		}
		w.SetEnd(end)
	}
	return wire.End(&w)
}

// scopeAt is where a ScopeLogs is in the text, and what its records share.
type scopeAt struct {
	at        int
	scope     int // -1: there is none
	schemaURL jsonwalk.Span
}

// scopeBytes is what a ScopeLogs takes up in memory, also while the list grows.
const scopeBytes = 64

func (r *reader) jsonResourceLogs(at int) (end int, err error) {
	var res resource
	r.scopes = r.scopes[:0]
	end, err = r.jsonFields(&resourceLogsMsg, at, func(f *field, at int) (end int, err error) {
		switch f.num {
		case 1:
			return r.jsonResource(&res, at)
		case 2:
			return r.Each(at, f.name, r.jsonFindScope)
		}
		_, res.schemaURL, end, err = r.scalar(f, at)
		return end, err
	})
	for i := 0; i < len(r.scopes) && err == nil; i++ {
		err = r.jsonScopeLogs(&res, r.scopes[i])
	}
	return end, err
}

func (r *reader) jsonResource(res *resource, at int) (end int, err error) {
	*res = resource{schemaURL: res.schemaURL, msg: part{at: at}}
	attribute := func(at int) (int, error) {
		p, err := r.jsonKeyValue(at)
		if text := r.jsonService(&p); text != nil && res.service == nil {
			res.service = text
		} else {
			res.others = true
		}
		return p.end, err
	}
	end, err = r.jsonFields(&resourceMsg, at, func(f *field, at int) (end int, err error) {
		if f.num == resourceAttributes {
			return r.Each(at, f.name, attribute)
		}
		res.dropped, _, end, err = r.scalar(f, at)
		return end, err
	})
	if err == nil {
		res.msg.bytes = r.Body[at:end]
	}
	return end, err
}

// jsonFindScope notes where a ScopeLogs begins and what its records share. It does
// not check the text: jsonScopeLogs does.
func (r *reader) jsonFindScope(at int) (end int, err error) {
	s := scopeAt{at: at, scope: -1}
	if _, err := r.Object(at, scopeLogsMsg.name); err != nil {
		return 0, err
	}
	w := jsonwalk.Members(r.Body, at)
	for w.Next() {
		f := scopeLogsMsg.lookup(r.Name(&w))
		switch {
		case f == nil || r.Kind(w.Value.Start) == 'n':
		case f.num == 1:
			s.scope = w.Value.Start
		case f.num == 3:
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

func (r *reader) jsonScopeLogs(res *resource, s scopeAt) (err error) {
	sc := scope{schemaURL: s.schemaURL.Of(r.Body)}
	if s.scope >= 0 {
		if err := r.jsonScope(&sc, s.scope); err != nil {
			return err
		}
	}
	record := func(at int) (int, error) { return r.jsonRecord(res, &sc, at) }
	_, err = r.jsonFields(&scopeLogsMsg, s.at, func(f *field, at int) (end int, err error) {
		switch f.num {
		case 1:
			return r.Skip(at)
		case 2:
			return r.Each(at, f.name, record)
		}
		_, _, end, err = r.scalar(f, at)
		return end, err
	})
	return err
}

func (r *reader) jsonScope(sc *scope, at int) error {
	attribute := func(at int) (int, error) {
		sc.attributes = true
		p, err := r.jsonKeyValue(at)
		return p.end, err
	}
	end, err := r.jsonFields(&scopeMsg, at, func(f *field, at int) (end int, err error) {
		switch f.num {
		case 1:
			_, sc.name, end, err = r.scalar(f, at)
		case 2:
			_, sc.version, end, err = r.scalar(f, at)
		case scopeAttributes:
			end, err = r.Each(at, f.name, attribute)
		default:
			sc.dropped, _, end, err = r.scalar(f, at)
		}
		return end, err
	})
	if err == nil {
		sc.msg = part{bytes: r.Body[at:end], at: at}
	}
	return err
}

func (r *reader) jsonRecord(res *resource, sc *scope, at int) (end int, err error) {
	if err := r.reserve(sharedSize(res, sc)); err != nil {
		return 0, err
	}
	r.b.Begin()
	if r.b.Failed() {
		if end, err = r.Skip(at); err == nil {
			r.b.Raw(r.Body[at:end])
			r.end(res, sc)
		}
		return end, err
	}
	var rec record
	body := -1
	end, err = r.jsonFields(&logRecordMsg, at, func(f *field, at int) (end int, err error) {
		switch f.num {
		case recordBody:
			body = at
			return r.Skip(at)
		case recordAttributes:
			as := asAttr
			return r.jsonPairs(f, at, &as)
		}
		number, bytes, end, err := r.scalar(f, at)
		rec.set(f.num, number, bytes)
		return end, err
	})
	if err != nil {
		return 0, err
	}
	r.spread += int64(end - at)
	r.b.Raw(r.Body[at:end])
	if body < 0 {
		_, err = r.finish(&rec, sc, res)
	} else {
		_, err = r.jsonAny(body, func(v anyValue) (int, error) {
			rec.body = v
			return r.finish(&rec, sc, res)
		})
	}
	if err != nil {
		return 0, err
	}
	r.end(res, sc)
	return end, nil
}

// jsonPairs reads the array of KeyValues at an offset. After the first service.name
// asOther becomes asMember.
func (r *reader) jsonPairs(f *field, at int, as *named) (end int, err error) {
	return r.Each(at, f.name, func(at int) (int, error) {
		if r.b.Failed() {
			return r.Skip(at)
		}
		if *as == asOther {
			p, err := r.jsonKeyValue(at)
			if err != nil {
				return 0, err
			}
			if r.jsonService(&p) != nil {
				*as = asMember
				return p.end, nil
			}
		}
		if end := r.jsonPlainPair(at, *as); end > 0 {
			return end, nil
		}
		return r.jsonPair(at, *as)
	})
}

// jsonPairsIn reads the KeyValues of the message at an offset.
func (r *reader) jsonPairsIn(m *message, at int, as named) (end int, err error) {
	return r.jsonFields(m, at, func(f *field, at int) (int, error) {
		if f.message != &keyValueMsg {
			return r.Skip(at)
		}
		return r.jsonPairs(f, at, &as)
	})
}

// jsonPlainPair is jsonPair for the form that most attributes have. If the KeyValue
// has another it does nothing and returns -1.
func (r *reader) jsonPlainPair(at int, as named) (end int) {
	const beforeKey, beforeValue, atEnd = `{"key":`, `,"value":{"stringValue":`, `}}`
	key := r.After(beforeKey, at)
	value := r.After(beforeValue, r.StringEnd(key))
	valueEnd := r.StringEnd(value)
	if end = r.After(atEnd, valueEnd); end < 0 {
		return -1
	}
	r.name(r.Text(r.Body[key:value-len(beforeValue)]), as)
	r.b.String(r.Text(r.Body[value:valueEnd]))
	return end
}

// maxReread is how many times the length of a request is read again to find keys.
const maxReread = 16

// jsonPair gives the Builder the KeyValue at an offset. Its key comes first as a rule;
// else the value is passed over and read again.
func (r *reader) jsonPair(at int, as named) (end int, err error) {
	hasKey, hasValue := false, false
	end, err = r.jsonFields(&keyValueMsg, at, func(f *field, at int) (end int, err error) {
		switch {
		case hasValue, hasKey && f.num == 1:
			return 0, r.Invalid(at, errAnother)
		case f.num == 1:
			var key []byte
			if _, key, end, err = r.scalar(f, at); err != nil {
				return 0, err
			}
			hasKey = true
			r.name(r.Text(key), as)
			return end, nil
		case f.num == 2 && hasKey:
			hasValue = true
			return r.jsonAny(at, r.put)
		}
		return 0, errOrder
	})
	switch {
	case err == errOrder && !hasKey:
	case err == nil && hasKey && !hasValue:
		r.b.Null()
		return end, nil
	case err == nil && !hasKey:
	default:
		return end, err
	}
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
	_, err = r.jsonAny(p.value, r.put)
	return p.end, err
}

// errAnother is the error for a second key or value.
var errAnother = errors.New("a KeyValue has one key and one value, and this is another")

// errOrder is the error for a KeyValue whose value comes before its key.
var errOrder = errors.New("a value before its key")

// pairAt is a KeyValue in the text.
type pairAt struct {
	key   []byte // a string; nil: there is none
	value int    // where it begins; -1: there is none
	end   int
}

// jsonKeyValue finds the parts of the KeyValue at an offset.
func (r *reader) jsonKeyValue(at int) (p pairAt, err error) {
	p.value = -1
	p.end, err = r.jsonFields(&keyValueMsg, at, func(f *field, at int) (end int, err error) {
		if f.num == 1 && p.key != nil || f.num == 2 && p.value >= 0 {
			return 0, r.Invalid(at, errAnother)
		}
		if f.num == 1 {
			_, p.key, end, err = r.scalar(f, at)
			return end, err
		}
		p.value = at
		return r.Skip(at)
	})
	return p, err
}

// jsonService returns the value of a KeyValue if its key is service.name and the
// value is a string that is not empty.
func (r *reader) jsonService(p *pairAt) (text []byte) {
	if p.key == nil || p.value < 0 || !jsonwalk.Equal(p.key, string(serviceName)) {
		return nil
	}
	r.jsonAny(p.value, func(v anyValue) (int, error) {
		if v.kind == anyString && len(v.bytes) > len(`""`) {
			text = v.bytes
		}
		return v.end, nil
	})
	return text
}

// jsonAny calls use for the one value of the AnyValue at an offset. use returns the
// end of an array or a list.
func (r *reader) jsonAny(at int, use func(v anyValue) (end int, err error)) (end int, err error) {
	seen := false
	end, err = r.jsonFields(&anyValueMsg, at, func(f *field, at int) (end int, err error) {
		if seen {
			return 0, r.Invalid(at, fmt.Errorf("an AnyValue has one value, but %s is another", f.name))
		}
		seen = true
		v := anyValue{kind: anyKind(f.num), at: at}
		if f.message != nil {
			return use(v)
		}
		if v.value, v.bytes, v.end, err = r.scalar(f, at); err == nil {
			_, err = use(v)
		}
		return v.end, err
	})
	if err == nil && !seen {
		_, err = use(anyValue{})
	}
	return end, err
}

// jsonArray gives the Builder the elements of the ArrayValue at an offset.
func (r *reader) jsonArray(at int) (end int, err error) {
	return r.jsonFields(&arrayValueMsg, at, func(f *field, at int) (int, error) {
		return r.Each(at, f.name, func(at int) (int, error) {
			if r.b.Failed() {
				return r.Skip(at)
			}
			return r.jsonAny(at, r.put)
		})
	})
}

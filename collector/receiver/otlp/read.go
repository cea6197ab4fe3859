package otlp

import (
	"github.com/rollway/rollway/collector/receiver"
)

// read makes events of the records of a request.
func (r *reader) read(q *receiver.Request, json bool) error {
	r.q, r.json = q, json
	r.b = q.Norm.Build(q.Batch, q.Received)
	if json {
		r.Begin(q.Body, requestMsg.name)
	}
	end, err := r.fields(&requestMsg, part{q.Body, r.Start()}, func(_ *field, v value) (int, error) {
		return r.resourceLogs(v.part)
	})
	if json {
		err = r.Finish(end, err)
	}
	r.b.Done()
	return q.Discard(err)
}

// scopeAt is a ScopeLogs, and what its records share.
type scopeAt struct {
	msg, scope part
	schemaURL  []byte
}

// scopeBytes is what a scopeAt takes up in memory, also while the list grows.
const scopeBytes = 176

// resourceLogs reads what the records share, which may come after them, and then the
// records.
func (r *reader) resourceLogs(msg part) (end int, err error) {
	var res resource
	r.scopes = r.scopes[:0]
	end, err = r.fields(&resourceLogsMsg, msg, func(f *field, v value) (int, error) {
		switch f.num {
		case 1:
			return r.readResource(&res, v.part)
		case 2:
			return r.findScope(v.part)
		}
		res.schemaURL = v.bytes
		return 0, nil
	})
	for i := 0; i < len(r.scopes) && err == nil; i++ {
		err = r.scopeLogs(&res, &r.scopes[i])
	}
	clear(r.scopes) // they refer to the request
	return end, err
}

func (r *reader) readResource(res *resource, msg part) (end int, err error) {
	*res = resource{schemaURL: res.schemaURL, msg: msg}
	end, err = r.fields(&resourceMsg, msg, func(f *field, v value) (int, error) {
		if f.num != resourceAttributes {
			res.dropped = v.number
			return 0, nil
		}
		p, err := r.keyValue(v.part)
		if i, text := r.ownResource(&p); text != nil && res.own[i] == nil {
			res.own[i] = text
		} else {
			res.others = true
		}
		return p.end, err
	})
	res.msg.read(r, end)
	return end, err
}

// read notes the bytes of a message in JSON, whose end is known now.
func (p *part) read(r *reader, end int) {
	if r.json && end > 0 {
		p.bytes = r.Body[p.at:end]
	}
}

// findScope notes a ScopeLogs and what its records share.
func (r *reader) findScope(msg part) (end int, err error) {
	s := scopeAt{msg: msg}
	end, err = r.fields(&scopeHeadMsg, msg, func(f *field, v value) (int, error) {
		if f.num == 1 {
			s.scope = v.part
		} else {
			s.schemaURL = v.bytes
		}
		return 0, nil
	})
	if err != nil {
		return 0, err
	}
	if len(r.scopes) == cap(r.scopes) {
		if err := r.q.Reserve(scopeBytes * int64(max(2*cap(r.scopes), 8))); err != nil {
			return 0, err
		}
	}
	r.scopes = append(r.scopes, s)
	return end, nil
}

func (r *reader) scopeLogs(res *resource, s *scopeAt) error {
	sc := scope{msg: s.scope, schemaURL: s.schemaURL}
	if s.scope.at > 0 || len(s.scope.bytes) > 0 {
		if err := r.readScope(&sc); err != nil {
			return err
		}
	}
	_, err := r.fields(&scopeLogsMsg, s.msg, func(_ *field, v value) (int, error) {
		return r.record(res, &sc, v.part)
	})
	return err
}

func (r *reader) readScope(sc *scope) error {
	end, err := r.fields(&scopeMsg, sc.msg, func(f *field, v value) (int, error) {
		switch f.num {
		case 1:
			sc.name = v.bytes
		case 2:
			sc.version = v.bytes
		case scopeAttributes:
			sc.attributes = true
			p, err := r.keyValue(v.part)
			return p.end, err
		default:
			sc.dropped = v.number
		}
		return 0, nil
	})
	sc.msg.read(r, end)
	return err
}

// record makes the event of a LogRecord.
func (r *reader) record(res *resource, sc *scope, msg part) (end int, err error) {
	r.b.Begin()
	if r.b.Failed() {
		if r.json {
			if end, err = r.Skip(msg.at); err != nil {
				return 0, err
			}
		}
		msg.read(r, end)
		r.b.Raw(msg.bytes)
		r.end(res, sc)
		return end, nil
	}
	var rec record
	var body part
	hasBody := false
	end, err = r.fields(&logRecordMsg, msg, func(f *field, v value) (int, error) {
		switch f.num {
		case recordBody:
			body, hasBody = v.part, true
		case recordAttributes:
			return r.pair(v.part, asAttr)
		default:
			rec.set(f.num, v.number, v.bytes)
		}
		return 0, nil
	})
	if err != nil {
		return 0, err
	}
	if r.json {
		msg.read(r, end)
	}
	r.b.Raw(msg.bytes)
	if hasBody {
		_, err = r.any(body, func(v anyValue) (int, error) {
			rec.body = v
			return r.finish(&rec, sc, res)
		})
	} else {
		_, err = r.finish(&rec, sc, res)
	}
	if err != nil {
		return 0, err
	}
	r.end(res, sc)
	return end, nil
}

// sharedSize returns how many bytes of a request each record of a scope shares.
func sharedSize(res *resource, sc *scope) int {
	return len(res.msg.bytes) + len(res.schemaURL) + len(sc.msg.bytes) + len(sc.schemaURL)
}

package otlp

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/rollway/rollway/collector/receiver/wire"
	"github.com/rollway/rollway/internal/jsonwalk"
)

// part is a message in the request. Until it was read, that in JSON has no bytes.
type part struct {
	bytes []byte
	at    int // where it begins in a request in JSON
}

// value is what a field has.
type value struct {
	part          // a message, or what has a length: of a string in JSON with its quotes
	number uint64 // all else
}

// A visitor gets the fields of a message. It returns the end of a message that it has
// read in JSON; 0 passes over it.
type visitor func(f *field, v value) (end int, err error)

// fields has visit get each field of m that is known and not null, and each message of
// an array. In JSON it returns the end of m.
func (r *reader) fields(m *message, msg part, visit visitor) (end int, err error) {
	if r.json {
		return r.jsonFields(m, msg.at, visit)
	}
	w := wire.Over(msg.bytes)
	for w.Next() {
		f := m.byNumber(w.Num, w.Type)
		if f == nil {
			continue
		}
		if _, err := visit(f, value{part: part{bytes: w.Bytes}, number: w.Value}); err != nil {
			return 0, err
		}
	}
	return 0, broken(m, w.Err())
}

// broken names the message that an error of the wire format is in.
func broken(m *message, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("the body is not a valid ExportLogsServiceRequest: %s: %w; nothing was stored", m.name, err)
}

func (r *reader) jsonFields(m *message, at int, visit visitor) (end int, err error) {
	w, err := r.Object(at, m.name)
	if err != nil {
		return 0, err
	}
	if m.survey {
		w = jsonwalk.Members(r.Body, at)
	}
	for w.NextName() {
		f, at := m.lookup(r.Name(&w)), w.Value.Start
		if f == nil || r.Kind(at) == 'n' {
			w.SkipValue()
			continue
		}
		v := value{part: part{at: at}}
		switch f.kind {
		case ofMessage:
			end, err = visit(f, v)
		case ofMessages:
			end, err = r.Each(at, f.name, func(at int) (int, error) {
				end, err := visit(f, value{part: part{at: at}})
				if end == 0 && err == nil {
					return r.Skip(at)
				}
				return end, err
			})
		default:
			if v, end, err = r.scalar(f, at); err == nil {
				_, err = visit(f, v)
			}
		}
		if err != nil {
			return 0, err
		}
		if end == 0 {
			w.SkipValue()
			continue
		}
		w.SetEnd(end)
	}
	return wire.End(&w)
}

// scalar reads the value at an offset, of a field that is no message: the bytes of a
// string with its quotes, or decoded from base64, or else a number.
func (r *reader) scalar(f *field, at int) (v value, end int, err error) {
	if end, err = r.Skip(at); err != nil {
		return v, 0, err
	}
	raw := r.Body[at:end]
	v.at = at
	switch first := raw[0]; {
	case first == '"' && f.kind == ofString:
		v.bytes = raw
	case first == '"' && f.kind == ofBytes:
		r.fromText, err = appendBase64(r.fromText[:0], r.Text(raw))
		v.bytes = r.fromText
	case first == '"' && f.kind > ofBool:
		v.number, err = f.number(r.Text(raw))
	case (first == '-' || jsonwalk.IsDigit(first)) && f.kind > ofBool:
		v.number, err = f.number(raw)
	case (first == 't' || first == 'f') && f.kind == ofBool:
		v.number = protowire.EncodeBool(first == 't')
	default:
		err = errKind
	}
	if err != nil {
		err = r.Invalid(at, fmt.Errorf("%s cannot be %.50q", f.name, raw))
	}
	return v, end, err
}

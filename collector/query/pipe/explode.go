package pipe

// Explode gives rows of the single values of lines, with their names and types. Each calls take with the
// JSON of every one.
type Explode struct {
	Each func(line []byte, take func(name, raw []byte) error) error
}

type explodeStep struct {
	*Explode
	next step
	take func(name, raw []byte) error
	out  Row
	text []byte
}

func (e *Explode) start(_ *Env, next step) step {
	s := &explodeStep{Explode: e, next: next}
	s.take = func(name, raw []byte) error {
		s.text = s.text[:0]
		v := valueOf(raw, &s.text)
		s.out.Values = append(s.out.Values[:0], Value{String, name}, v, Value{String, typeOf(v)})
		return s.next.row(&s.out)
	}
	return s
}

func (s *explodeStep) row(r *Row) error { return s.Each(r.Line, s.take) }

func (s *explodeStep) end() error { return s.next.end() }

// types are the types of values.
var types = struct{ null, text, number, boolean, list, object []byte }{
	[]byte("null"), []byte("string"), []byte("number"), []byte("boolean"), []byte("list"), []byte("object"),
}

func typeOf(v Value) []byte {
	switch {
	case v.Kind == String:
		return types.text
	case v.Kind == Number:
		return types.number
	case v.Kind == Absent || v.Text[0] == 'n':
		return types.null
	case v.Text[0] == '[':
		return types.list
	case v.Text[0] == '{':
		return types.object
	}
	return types.boolean
}

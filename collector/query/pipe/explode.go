package pipe

// Explode gives rows of single values, with their names and types. They are those of Fields, or
// else those that Each gives, which calls take with JSON.
type Explode struct {
	Fields []Field
	Each   func(line []byte, take func(name, raw []byte) error) error
}

type explodeStep struct {
	*Explode
	next  step
	names [][]byte // of Fields
	take  func(name, raw []byte) error
	out   Row
	text  []byte
}

func (e *Explode) start(_ *Env, next step) step {
	s := &explodeStep{Explode: e, next: next}
	for i := range e.Fields {
		s.names = append(s.names, []byte(e.Fields[i].Name))
	}
	s.take = func(name, raw []byte) error {
		s.text = s.text[:0]
		return s.give(name, valueOf(raw, &s.text))
	}
	return s
}

func (s *explodeStep) row(r *Row) error {
	if s.Each != nil {
		return s.Each(r.Line, s.take)
	}
	for i := range s.Fields {
		if err := s.give(s.names[i], s.Fields[i].of(r)); err != nil {
			return err
		}
	}
	return nil
}

func (s *explodeStep) give(name []byte, v Value) error {
	s.out.Values = append(s.out.Values[:0], Value{String, name}, v, Value{String, typeOf(v)})
	return s.next.row(&s.out)
}

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

package pipe

// Explode gives rows of single values: a name, a value, and, in the column of the value's type
// among Types, the value again. They are those of Fields, or else those that Each gives.
type Explode struct {
	Fields []Field
	Each   func(line []byte, take func(name, raw []byte) error) error // take gets values as JSON
}

// Types are the types of values, and names of columns of Explode.
var Types = [...]string{"string", "number", "boolean", "null", "list", "object"}

type explodeStep struct {
	*Explode
	next step
	out  Row
	text []byte
}

func (e *Explode) start(_ *Env, next step) step { return &explodeStep{Explode: e, next: next} }

func (s *explodeStep) row(r *Row) error {
	if s.Each != nil {
		return s.Each(r.Line, func(name, raw []byte) error {
			s.text = s.text[:0]
			return s.give(name, valueOf(raw, &s.text))
		})
	}
	for i := range s.Fields {
		if err := s.give([]byte(s.Fields[i].Name), s.Fields[i].of(r)); err != nil {
			return err
		}
	}
	return nil
}

func (s *explodeStep) give(name []byte, v Value) error {
	s.out.Values = append(s.out.Values[:0], Value{String, name}, v)
	t := typeOf(v)
	for i := range Types {
		if i == t {
			s.out.Values = append(s.out.Values, v)
		} else {
			s.out.Values = append(s.out.Values, Value{})
		}
	}
	return s.next.row(&s.out)
}

func (s *explodeStep) end() error { return s.next.end() }

// typeOf is an index in Types; -1: there is no value.
func typeOf(v Value) int {
	switch {
	case v.Kind == Absent:
		return -1
	case v.Kind == String:
		return 0
	case v.Kind == Number:
		return 1
	}
	switch v.Text[0] {
	case '{':
		return 5
	case '[':
		return 4
	case 'n':
		return 3
	}
	return 2
}

package pipe

// Fields makes a row of its fields alone.
type Fields struct{ Fields []Field }

type fieldsStep struct {
	*Fields
	next step
	out  Row
}

func (f *Fields) start(_ *Env, next step) step { return &fieldsStep{Fields: f, next: next} }

func (s *fieldsStep) row(r *Row) error {
	s.out.Values = s.out.Values[:0]
	for i := range s.Fields.Fields {
		s.out.Values = append(s.out.Values, s.Fields.Fields[i].of(r))
	}
	return s.next.row(&s.out)
}

func (s *fieldsStep) end() error { return s.next.end() }

// Limit passes on the first N rows.
type Limit struct{ N int }

type limitStep struct {
	left int
	next step
}

func (l Limit) start(_ *Env, next step) step { return &limitStep{l.N, next} }

func (s *limitStep) row(r *Row) error {
	if s.left == 0 {
		return errFull
	}
	s.left--
	if err := s.next.row(r); err != nil || s.left > 0 {
		return err
	}
	return errFull
}

func (s *limitStep) end() error { return s.next.end() }

// From passes on the rows whose Field is At or comes after it.
type From struct {
	Field Field
	At    Value
}

type fromStep struct {
	*From
	next step
}

func (f *From) start(_ *Env, next step) step { return &fromStep{f, next} }

func (s *fromStep) row(r *Row) error {
	if v := s.Field.of(r); v.Kind == Absent || s.Field.compare(v, s.At) < 0 {
		return nil
	}
	return s.next.row(r)
}

func (s *fromStep) end() error { return s.next.end() }

package loki

import (
	"fmt"
	"strconv"
	"strings"
)

// parseLabels reads labels as Prometheus writes them: {name="value", …}, values
// quoted as in Go.
func (r *reader) parseLabels(text []byte) error {
	r.copied = max(r.copied, len(text))
	if err := r.room(len(text)); err != nil {
		return err
	}
	s := strings.TrimSpace(string(text))
	if s == "" {
		return nil
	}
	bad := func() error {
		return fmt.Errorf("the body is not a valid push request: labels %.100q are not of the form {name=\"value\"}; nothing was stored", text)
	}
	if len(s) < 2 || s[0] != '{' || s[len(s)-1] != '}' {
		return bad()
	}
	s = strings.TrimSpace(s[1 : len(s)-1])
	for s != "" {
		name, after, found := strings.Cut(s, "=")
		if name = strings.TrimSpace(name); !found || name == "" {
			return bad()
		}
		after = strings.TrimLeft(after, " ")
		quoted, err := strconv.QuotedPrefix(after)
		if err != nil {
			return bad()
		}
		value, err := strconv.Unquote(quoted)
		if err != nil {
			return bad()
		}
		if err := r.label(name, value); err != nil {
			return err
		}
		s = strings.TrimSpace(after[len(quoted):])
		if s == "" {
			break
		}
		if s[0] != ',' {
			return bad()
		}
		s = strings.TrimSpace(s[1:])
	}
	return nil
}

// label adds a label, whose text is kept in values.
func (r *reader) label(name, value string) error {
	part := func(s string) []byte {
		start := len(r.values)
		r.values = append(r.values, s...)
		return r.values[start:len(r.values):len(r.values)]
	}
	return r.add(&r.labels, pair{part(name), part(value)})
}

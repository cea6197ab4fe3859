package encode

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"log/slog"
	"path"
	"regexp"
	"slices"
	"strings"
)

// Redactor hides values before a Format sees them. It is immutable.
type Redactor struct {
	keys        [][]string // patterns of a key anywhere, or of a path from the top, in lower case
	patterns    []*regexp.Regexp
	replacement string
	depth       int // LogValuers that led here: what one returns may wrap itself
}

// NewRedactor returns a Redactor of the values of keys, which are paths with the
// wildcards of path.Match, and of what matches patterns.
func NewRedactor(keys []string, patterns []*regexp.Regexp, replacement string) (*Redactor, error) {
	for i, p := range patterns {
		if p == nil {
			return nil, fmt.Errorf("Patterns[%d] is nil", i)
		}
	}
	rd := &Redactor{patterns: patterns, replacement: cmp.Or(replacement, "[REDACTED]")}
	for _, key := range keys {
		parts := strings.Split(matchable(key), ".")
		for _, p := range parts {
			if _, err := path.Match(p, ""); err != nil || p == "" {
				return nil, fmt.Errorf("Keys: %q is not a path of keys: give parts without an open [, separated by dots", key)
			}
		}
		rd.keys = append(rd.keys, parts)
	}
	return rd, nil
}

// hides reports whether the value under key, in the groups above, is hidden.
func (rd *Redactor) hides(above []string, key string) bool {
	parts := append(strings.Split(strings.Join(above, "."), "."), strings.Split(key, ".")...)
	if len(above) == 0 {
		parts = parts[1:]
	}
	for i := range parts {
		parts[i] = matchable(parts[i])
	}
	return slices.ContainsFunc(rd.keys, func(pattern []string) bool {
		of := parts
		if len(pattern) == 1 {
			of = parts[len(parts)-1:]
		}
		return slices.EqualFunc(pattern, of, func(p, part string) bool {
			ok, _ := path.Match(p, part)
			return ok
		})
	})
}

// matchable returns s in lower case and without slashes, which path.Match treats
// specially.
func matchable(s string) string {
	return strings.ReplaceAll(strings.ToLower(s), "/", "\x00")
}

// Text returns s with every match of a pattern replaced.
func (rd *Redactor) Text(s string) string {
	for _, p := range rd.patterns {
		if p.MatchString(s) {
			s = p.ReplaceAllString(s, rd.replacement)
		}
	}
	return s
}

// Attrs returns attrs with hidden values replaced; above are the groups around them.
// It does not change attrs. Attributes beyond maxNodes are left out.
func (rd *Redactor) Attrs(above []string, attrs []slog.Attr) []slog.Attr {
	nodes := maxNodes
	return rd.walk(above, attrs, &nodes)
}

func (rd *Redactor) walk(above []string, attrs []slog.Attr, nodes *int) []slog.Attr {
	out := make([]slog.Attr, 0, min(len(attrs), *nodes))
	for _, a := range attrs {
		if *nodes--; *nodes < 0 {
			break
		}
		out = append(out, slog.Attr{Key: a.Key, Value: rd.value(above, a.Key, a.Value, nodes)})
	}
	return out
}

func (rd *Redactor) value(above []string, key string, v slog.Value, nodes *int) slog.Value {
	if v.Kind() == slog.KindLogValuer {
		v = resolve(v)
	}
	if key != "" && rd.hides(above, key) {
		return slog.StringValue(rd.replacement)
	}
	switch v.Kind() {
	case slog.KindString:
		return slog.StringValue(rd.Text(v.String()))
	case slog.KindGroup:
		if len(above) >= maxDepth {
			return slog.StringValue(rd.replacement) // not searched so deep
		}
		if key != "" {
			above = append(above[:len(above):len(above)], key)
		}
		return slog.GroupValue(rd.walk(above, v.Group(), nodes)...)
	case slog.KindAny:
		return rd.anyValue(append(above[:len(above):len(above)], key), v)
	}
	return v
}

// anyValue searches a value of any type in its JSON form.
func (rd *Redactor) anyValue(above []string, v slog.Value) slog.Value {
	switch value := v.Any().(type) {
	case nil:
		return v
	case error:
		return slog.AnyValue(redactedError{value, rd})
	}
	plain := Format{Options: zeroJSON.Options, byMembers: true, redact: rd}
	dec := json.NewDecoder(bytes.NewReader(plain.appendJSONAny(nil, v.Any(), 0)))
	dec.UseNumber()
	var tree any
	if err := dec.Decode(&tree); err != nil {
		return slog.StringValue(rd.replacement) // it cannot be searched, so it is hidden
	}
	out, err := json.Marshal(rd.tree(above, tree))
	if err != nil {
		return slog.StringValue(rd.replacement)
	}
	return slog.AnyValue(json.RawMessage(out))
}

// tree replaces hidden values in decoded JSON.
func (rd *Redactor) tree(above []string, node any) any {
	switch n := node.(type) {
	case string:
		return rd.Text(n)
	case map[string]any:
		for k, v := range n {
			if rd.hides(above, k) {
				n[k] = rd.replacement
			} else {
				n[k] = rd.tree(append(above[:len(above):len(above)], k), v)
			}
		}
	case []any:
		for i, v := range n {
			n[i] = rd.tree(above, v)
		}
	}
	return node
}

// maxSearched bounds the errors in which errorText looks for LogValuers. The text of
// an error that wraps more is hidden as a whole.
const maxSearched = 256

// errorText returns the text of err. If err, or an error that it wraps, is a
// LogValuer, the result of LogValue replaces its text.
func (rd *Redactor) errorText(err error) string {
	if v, ok := err.(slog.LogValuer); ok {
		return rd.valueText(v)
	}
	var found [][2]string
	left := maxSearched
	eachCause(nil, err, 0, &left, func(_ []byte, cause error, _ int, _ bool) {
		if v, ok := cause.(slog.LogValuer); ok {
			if clear := errorText(cause); clear != "" {
				found = append(found, [2]string{clear, rd.valueText(v)})
			}
		}
	})
	if left <= 0 {
		return rd.replacement
	}
	slices.SortStableFunc(found, func(a, b [2]string) int { return len(b[0]) - len(a[0]) }) // one may begin with another
	var pairs []string
	for _, f := range found {
		pairs = append(pairs, f[:]...)
	}
	return strings.NewReplacer(pairs...).Replace(errorText(err))
}

// Value returns the value of an attribute outside of groups redacted.
func (rd *Redactor) Value(groups []string, a slog.Attr) slog.Value {
	nodes := maxNodes
	return rd.value(groups, a.Key, a.Value, &nodes)
}

// Panic returns p, with which a function panicked, redacted.
func (rd *Redactor) Panic(p any) any {
	if err, ok := p.(error); ok {
		return redactedError{err, rd}
	}
	if k := slog.AnyValue(p).Kind(); k == slog.KindAny || k == slog.KindLogValuer {
		return rd.valueText(p)
	}
	return p
}

// valueText returns the result of LogValue as text. It gives up if that leads back to
// v.
func (rd *Redactor) valueText(v any) string {
	if rd.depth >= 2 {
		return rd.replacement
	}
	inner, nodes := *rd, maxNodes
	inner.depth++
	switch out := inner.value(nil, "", slog.AnyValue(v), &nodes); out.Kind() {
	case slog.KindAny:
		if err, ok := out.Any().(error); ok {
			return err.Error()
		}
		fallthrough
	case slog.KindGroup:
		return string(AppendValue(nil, out))
	default:
		return out.String()
	}
}

// redactedError is an error whose text, and the text of every error that it wraps, is
// redacted. It has no other methods of the error, which could reveal more. It hides
// the errors that a LogValuer wraps.
type redactedError struct {
	err error
	rd  *Redactor
}

func (e redactedError) Error() string { return e.rd.Text(e.rd.errorText(e.err)) }

func (e redactedError) Unwrap() []error {
	if _, ok := e.err.(slog.LogValuer); ok {
		return nil
	}
	several, one := unwrapped(e.err)
	if one != nil {
		several = []error{one}
	}
	var wrapped []error
	for _, w := range several {
		wrapped = append(wrapped, redactedError{w, e.rd})
	}
	return wrapped
}

package main

import (
	"bytes"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/rollway/rollway/internal/encode"
	"github.com/rollway/rollway/internal/levels"
)

// A renderer writes canonical lines for people:
//
//	2026-05-28 14:40:00.123 ERROR payment-api: failed to charge  customer_id=cus_123 retry_count=2
//
// Times are local unless utc is set. Texts of several lines, such as stacks, come below,
// indented. The output never contains a control code of the input. A renderer is not safe
// for concurrent use.
type renderer struct {
	color bool
	utc   bool
	bare  bool           // rows come, which have no time, level and message
	zone  *time.Location // of local times; nil: time.Local

	fields []byte // of the current line, after the message
	below  []byte // texts, each line after a line feed
	path   []string
}

// appendLine appends line and a newline. Anything other than a JSON object is shown as
// text.
func (r *renderer) appendLine(dst, line []byte) []byte {
	line = bytes.TrimSuffix(line, []byte("\n"))
	start := len(dst)
	dst, ok := r.appendObject(dst, line)
	if !ok {
		return append(appendPlain(dst[:start], line), '\n')
	}
	return append(append(dst, r.below...), '\n')
}

func (r *renderer) appendObject(dst, line []byte) ([]byte, bool) {
	d := jsontext.NewDecoder(bytes.NewReader(line), jsontext.AllowDuplicateNames(true))
	if d.PeekKind() != '{' {
		return dst, false
	}
	var at, level, service, msg string
	shown := map[string]*string{"time": &at, "level": &level, "service": &service, "msg": &msg}
	if r.bare {
		clear(shown)
	}
	r.fields, r.below, r.path = r.fields[:0], r.below[:0], r.path[:0]
	err := members(d, func(name string) error {
		switch kind := d.PeekKind(); {
		case kind == '"' && shown[name] != nil:
			token, err := d.ReadToken()
			if err == nil {
				*shown[name] = token.String()
			}
			return err
		case kind == '{' && name == "attrs":
			return members(d, func(name string) error { return r.member(d, name) })
		}
		return r.member(d, name)
	})
	if err != nil {
		return dst, false
	}
	if r.bare {
		return append(dst, bytes.TrimPrefix(r.fields, []byte(" "))...), true
	}
	if at != "" {
		dst = r.paint(dst, encode.ColorFaint, r.appendTime(nil, at))
		dst = append(dst, ' ')
	}
	label := appendPlain(nil, level)
	for utf8.RuneCount(label) < len("ERROR") {
		label = append(label, ' ')
	}
	l, _ := levels.Parse([]byte(level))
	dst = r.paint(dst, encode.LevelColor(l), label)
	dst = append(dst, ' ')
	if service != "" {
		dst = append(r.paint(dst, encode.ColorCyan, appendPlain(nil, service)), ':', ' ')
	}
	if first, rest, many := strings.Cut(msg, "\n"); many && strings.TrimSpace(rest) != "" {
		fields := r.below
		r.below = nil
		r.appendBelow(rest)
		r.below, msg = append(r.below, fields...), strings.TrimSuffix(first, "\r")
	}
	dst = appendPlain(dst, msg)
	if len(r.fields) > 0 {
		dst = append(dst, ' ')
		dst = append(dst, r.fields...)
	}
	return dst, true
}

// members reads an object and calls f to read the value of each name.
func members(d *jsontext.Decoder, f func(name string) error) error {
	if _, err := d.ReadToken(); err != nil {
		return err
	}
	for d.PeekKind() != '}' {
		name, err := d.ReadToken()
		if err == nil {
			err = f(name.String())
		}
		if err != nil {
			return err
		}
	}
	_, err := d.ReadToken()
	return err
}

// member appends the next value as ` path=value`, and the members of an object one by
// one.
func (r *renderer) member(d *jsontext.Decoder, name string) error {
	r.path = append(r.path, name)
	defer func() { r.path = r.path[:len(r.path)-1] }()
	switch d.PeekKind() {
	case '{':
		before := len(r.fields)
		err := members(d, func(name string) error { return r.member(d, name) })
		if err == nil && len(r.fields) == before {
			r.field("{}")
		}
		return err
	case '"':
		token, err := d.ReadToken()
		if err != nil {
			return err
		}
		if text := token.String(); strings.Contains(strings.TrimSpace(text), "\n") && !r.bare {
			r.below = append(r.below, "\n    "...)
			r.below = r.paint(r.below, encode.ColorFaint, appendPlain(nil, strings.Join(r.path, ".")+":"))
			r.appendBelow(text)
		} else {
			r.field(word(text))
		}
		return nil
	}
	value, err := d.ReadValue()
	if err == nil {
		// Brackets delimit the value. Strings in it are JSON, whose escapes cover
		// control codes but not everything unprintable.
		r.field(string(appendPlain(nil, []byte(value))))
	}
	return err
}

// appendBelow adds the lines of a text, indented so that none looks like a log line.
func (r *renderer) appendBelow(text string) {
	for line := range strings.Lines(strings.TrimRight(text, "\r\n")) {
		r.below = append(r.below, "\n      "...)
		r.below = appendPlain(r.below, strings.ReplaceAll(strings.TrimRight(line, "\r\n"), "\t", "    "))
	}
}

func (r *renderer) field(value string) {
	r.fields = append(r.fields, ' ')
	r.fields = r.paint(r.fields, encode.ColorFaint, []byte(word(strings.Join(r.path, "."))+"="))
	r.fields = append(r.fields, value...)
}

func (r *renderer) paint(dst []byte, color string, text []byte) []byte {
	if !r.color {
		return append(dst, text...)
	}
	dst = append(dst, color...)
	dst = append(dst, text...)
	return append(dst, encode.ColorReset...)
}

func (r *renderer) appendTime(dst []byte, text string) []byte {
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return appendPlain(dst, text)
	}
	if r.utc {
		return t.UTC().AppendFormat(dst, "2006-01-02 15:04:05.000Z")
	}
	zone := r.zone
	if zone == nil {
		zone = time.Local
	}
	return t.In(zone).AppendFormat(dst, "2006-01-02 15:04:05.000")
}

// word returns s, quoted if its end would not be visible otherwise.
func word(s string) string {
	plain := s != "" && strings.IndexFunc(s, func(c rune) bool {
		return c == ' ' || c == '"' || c == '=' || c == '\\' || c == utf8.RuneError || !strconv.IsPrint(c)
	}) < 0
	if plain {
		return s
	}
	return strconv.Quote(s)
}

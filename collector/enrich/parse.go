package enrich

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/rollway/rollway/collector/normalize"
	"github.com/rollway/rollway/collector/query/pipe"
	"github.com/rollway/rollway/collector/textlog"
	"github.com/rollway/rollway/internal/jsonline"
	"github.com/rollway/rollway/internal/jsonwalk"
	"github.com/rollway/rollway/internal/levels"
)

// A parser says how the messages of some events are read. It is immutable.
type parser struct {
	where *rule
	read  func(dst, text []byte) (object []byte, whole bool)
}

// Parse implements normalize.Enricher.
func (p *Program) Parse(line []byte, known *normalize.Known, s *normalize.Scratch) (object []byte, whole bool) {
	if len(p.parsers) == 0 || known.Filled()&(1<<normalize.Message) == 0 {
		return nil, false
	}
	seen := seen{event: known, level: known.Level, filled: known.Filled()}
	for i := range p.parsers {
		if !p.parsers[i].where.applies(line, &seen, &s.Text) {
			continue
		}
		text := plain(known.Slot(normalize.Message).Of(line), &s.B)
		if object, whole = p.parsers[i].read(s.A[:0], text); len(object) > len("{}") {
			s.A = object
			return object, whole
		}
	}
	return nil, false
}

// forms are the names of forms.
var forms = map[string]func(dst, text []byte) (object []byte, whole bool){
	"json":   readJSON,
	"logfmt": readLogfmt,
	"access": readAccess,
}

// readJSON reads an object from the first brace to the end of a text.
func readJSON(dst, text []byte) ([]byte, bool) {
	const deepest = 10_000
	i := bytes.IndexByte(text, '{')
	if i < 0 || !jsonwalk.Valid(text[i:], deepest) {
		return nil, false
	}
	return append(dst, bytes.TrimSpace(text[i:])...), len(bytes.TrimSpace(text[:i])) == 0
}

// maxWords is how many words may come before the pairs of logfmt.
const maxWords = 32

// readLogfmt reads pairs up to the end of a text.
func readLogfmt(dst, text []byte) ([]byte, bool) {
	text = bytes.TrimSpace(text)
	for i, rest := 0, text; i < maxWords; i++ {
		if object, is := textlog.AppendLogfmt(dst, rest); is {
			return object, i == 0
		}
		_, after, found := bytes.Cut(rest, []byte(" "))
		if !found {
			break
		}
		rest = bytes.TrimLeft(after, " ")
	}
	return nil, false
}

// readAccess reads a line of an access log.
func readAccess(dst, text []byte) ([]byte, bool) {
	h, found := textlog.Parse(text, time.Time{}, time.UTC)
	if !found || h.Request == 0 {
		return nil, false
	}
	dst = append(dst, '{')
	if h.HasTime {
		dst = append(jsonline.AppendUnix(append(dst, `"time":"`...), h.Sec, h.Nsec), `",`...)
	}
	dst = append(levels.Append(append(dst, `"level":"`...), h.Level), `",`...)
	for i, part := range textlog.ParseRequest(text, h.Request) {
		if part != nil {
			dst = append(append(append(dst, '"'), textlog.RequestNames[i]...), `":`...)
			dst = append(textlog.AppendPart(dst, i, part), ',')
		}
	}
	dst[len(dst)-1] = '}'
	return dst, false
}

// captures reads what a pattern or an expression of the pipe parse finds.
func captures(names []string, m pipe.Matcher) func(dst, text []byte) ([]byte, bool) {
	var prefixes [][]byte
	for _, name := range names {
		prefixes = append(prefixes, append(jsonline.AppendString(nil, name), ':'))
	}
	found := sync.Pool{New: func() any { return new([]pipe.Value) }}
	return func(dst, text []byte) ([]byte, bool) {
		values := found.Get().(*[]pipe.Value)
		defer found.Put(values)
		*values = append((*values)[:0], make([]pipe.Value, len(names))...)
		defer clear(*values)
		if !pipe.Find(m, text, *values) {
			return nil, false
		}
		dst = append(dst, '{')
		for i, v := range *values {
			switch v.Kind {
			case pipe.Number:
				dst = append(append(dst, prefixes[i]...), v.Text...)
			case pipe.String:
				dst = jsonline.AppendStringBytes(append(dst, prefixes[i]...), v.Text)
			default:
				continue
			}
			dst = append(dst, ',')
		}
		if dst[len(dst)-1] == '{' {
			return nil, false
		}
		dst[len(dst)-1] = '}'
		return dst, false
	}
}

const parseKey = "normalize.parse"

func (l *loader) parsers(n *yaml.Node) {
	if n.Kind != yaml.SequenceNode {
		l.fail(n, parseKey, "a list is wanted, each as in \"- {where: 'service=nginx', as: access}\"")
		return
	}
	if len(n.Content) > maxRules {
		l.fail(n, parseKey, "%d entries are more than %d", len(n.Content), maxRules)
		return
	}
	for _, item := range n.Content {
		p, before := parser{where: new(rule)}, len(l.errors)
		l.mapping(item, parseKey, []string{"where", "as"}, func(name string, k, v *yaml.Node) {
			at := parseKey + "." + name
			switch {
			case v.Kind != yaml.ScalarNode || v.Tag != "!!str":
				l.fail(v, at, "a text is wanted, best in single quotes")
			case name == "where":
				p.where.where = l.where(v, at)
			default:
				var err error
				if p.read, err = formOf(v.Value); err != nil {
					l.fail(v, at, "%v", err)
				}
			}
		})
		if len(l.errors) == before && p.read == nil {
			l.fail(item, parseKey, "as is wanted: json, logfmt, access, a pattern such as '<method> <path> took <ms:number>', or ~ and a regular expression with named groups")
		}
		l.program.parsers = append(l.program.parsers, p)
	}
}

// formOf returns what reads a form: one with a name, a pattern, or ~ and an expression.
func formOf(text string) (func(dst, text []byte) ([]byte, bool), error) {
	if read := forms[text]; read != nil {
		return read, nil
	}
	read, rest := pipe.NewPattern, text
	if expression, is := strings.CutPrefix(text, "~"); is {
		read, rest = pipe.NewExpression, expression
	}
	names, m, err := read(rest)
	if err != nil {
		return nil, fmt.Errorf("%q is not json, logfmt or access, and as a pattern it has %w", text, err)
	}
	seen := make(map[string]bool)
	for _, name := range names {
		if seen[name] || len(name) > maxName {
			return nil, fmt.Errorf("the name %.50q is there twice or too long; different names of at most %d bytes are wanted", name, maxName)
		}
		seen[name] = true
	}
	return captures(names, m), nil
}

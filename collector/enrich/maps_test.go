package enrich

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Rules do to lines what they do, by the words of docs/ENRICH.md, to what a JSON
// reader makes of them.
func TestRulesAgainstMaps(t *testing.T) {
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 1))
		event := string(appendRandom(nil, r, true, 0))
		rules := make([]mapRule, 1+r.IntN(3))
		var text []string
		for i := range rules {
			rules[i] = randomRule(r)
			text = append(text, rules[i].text)
		}
		config := "rules: [" + strings.Join(text, ", ") + "]"
		want := readLine(t, enriched(t, nil, event))
		for i := range rules {
			if want = rules[i].do(want); want == nil {
				break
			}
		}
		line := enriched(t, mustCompile(t, config), event)
		var got map[string]any
		if !strings.HasPrefix(line, "dropped: ") {
			got = readLine(t, line)
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("seed %d, %s\n of %s\ngot %swant %v", seed, config, event, line, want)
		}
	}
}

func readLine(t *testing.T, line string) map[string]any {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(line))
	d.UseNumber()
	var v map[string]any
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%v: %s", err, line)
	}
	return v
}

// appendRandom appends an object: an event, or one inside of it.
func appendRandom(dst []byte, r *rand.Rand, event bool, depth int) []byte {
	names := []string{"ab", "abc", "cab", "x", "y", "x.ab", "1"}
	if event {
		names = append(names, "msg", "service", "error")
	}
	r.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	dst = append(dst, '{')
	for i, name := range names[:r.IntN(5)] {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(appendRandomText(dst, r, name), ':')
		if name == "msg" || name == "service" {
			dst = appendRandomText(dst, r, randomText(r))
			continue
		}
		dst = appendRandomValue(dst, r, depth)
	}
	return append(dst, '}')
}

func appendRandomValue(dst []byte, r *rand.Rand, depth int) []byte {
	kind := r.IntN(8)
	switch {
	case kind == 0:
		return append(dst, []string{"true", "null"}[r.IntN(2)]...)
	case kind == 1:
		return append(dst, []string{"1", "12", "-121", "1.5"}[r.IntN(4)]...)
	case kind < 5 || depth > 2:
		return appendRandomText(dst, r, randomText(r))
	case kind < 7:
		return appendRandom(dst, r, false, depth+1)
	}
	dst = append(dst, '[')
	for i := range r.IntN(3) {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendRandomValue(dst, r, depth+1)
	}
	return append(dst, ']')
}

func randomText(r *rand.Rand) string {
	b := make([]rune, r.IntN(6))
	for i := range b {
		b[i] = []rune("abcab é1\"")[r.IntN(9)]
	}
	return string(b)
}

// appendRandomText writes some letters as escapes.
func appendRandomText(dst []byte, r *rand.Rand, text string) []byte {
	dst = append(dst, '"')
	for _, c := range text {
		switch {
		case c == '"' || r.IntN(8) == 0:
			dst = fmt.Appendf(dst, `\u%04x`, c)
		default:
			dst = append(dst, string(c)...)
		}
	}
	return append(dst, '"')
}

// A mapRule is a rule without the code that is tested.
type mapRule struct {
	text   string // as it is written
	action string
	keys   []string       // none: all
	match  *regexp.Regexp // nil: all
}

func randomRule(r *rand.Rand) mapRule {
	rule := mapRule{action: []string{"drop", "keep", "remove", "redact", "only"}[r.IntN(5)]}
	var fields []string
	if rule.action == "remove" || rule.action == "only" || r.IntN(3) > 0 {
		all := []string{"ab", "x", "x.ab", "*.ab", "**.ab", "x.*", "x.**.ab", "x*", "**", "*", "attrs.ab", "attrs.*.x", "msg", "error", "error.x", "service", "*b*"}
		for range 1 + r.IntN(2) {
			rule.keys = append(rule.keys, all[r.IntN(len(all))])
		}
		fields = append(fields, "key: ['"+strings.Join(rule.keys, "', '")+"']")
	}
	needed := rule.action == "drop" || rule.action == "keep" || len(rule.keys) == 0 // a redaction without keys may change names, so it is not tried
	if rule.action == "redact" && len(rule.keys) == 0 {
		rule.keys, fields = []string{"**"}, []string{"key: '**'"}
		needed = r.IntN(2) == 0
	}
	if rule.action != "only" && (needed || r.IntN(2) == 0) {
		all := []string{`ab+c`, `^c`, `b$`, `[ab]{3}`, `1\d`, `(?i)AB`, `\bab\b`, `a|cc`, `c.b`, `é+`, `"`}
		expr := all[r.IntN(len(all))]
		rule.match = regexp.MustCompile(expr)
		fields = append(fields, "match: '"+expr+"'")
	}
	rule.text = "{" + rule.action + ": {" + strings.Join(fields, ", ") + "}}"
	return rule
}

// do returns what the rule leaves of the line v; nil: nothing.
func (m *mapRule) do(v map[string]any) map[string]any {
	switch m.action {
	case "drop", "keep":
		if m.findIn(v) == (m.action == "drop") {
			return nil
		}
		return v
	}
	out := map[string]any{}
	for name, value := range v {
		switch {
		case name == "time" || name == "level":
			out[name] = value
		case name == "attrs":
			if attrs := m.object(value.(map[string]any), "", true, false); len(attrs) > 0 {
				out[name] = attrs
			}
		case m.action == "only":
			out[name] = value
		default:
			if left, is := m.member(value, name, false, m.selects(name, false)); is {
				out[name] = left
			}
		}
	}
	return out
}

func (m *mapRule) object(v map[string]any, path string, attrs, selected bool) map[string]any {
	out := map[string]any{}
	for name, value := range v {
		at := strings.TrimPrefix(path+"."+strings.ToLower(name), ".")
		if left, is := m.member(value, at, attrs, selected || m.selects(at, attrs)); is {
			out[name] = left
		}
	}
	return out
}

// member returns what is left of the value of a member; false: nothing.
func (m *mapRule) member(v any, path string, attrs, selected bool) (any, bool) {
	switch {
	case m.action == "remove" && selected:
		return v, m.match != nil && !m.anywhere(v, true)
	case m.action == "only" && selected:
		return v, true
	case m.action == "only":
		if !holds(v) || !m.leads(path, attrs) {
			return nil, false
		}
	}
	return m.value(v, path, attrs, selected), true
}

// holds reports whether v is an object or a list.
func holds(v any) bool {
	_, object := v.(map[string]any)
	_, list := v.([]any)
	return object || list
}

func (m *mapRule) value(v any, path string, attrs, selected bool) any {
	if m.action == "redact" && selected && m.match == nil {
		return "[REDACTED]"
	}
	switch v := v.(type) {
	case map[string]any:
		return m.object(v, path, attrs, selected)
	case []any:
		out := []any{}
		for _, e := range v {
			if m.action != "only" || holds(e) {
				out = append(out, m.value(e, path, attrs, selected))
			}
		}
		return out
	case string:
		if m.action == "redact" && selected {
			return m.match.ReplaceAllLiteralString(v, "[REDACTED]")
		}
	case json.Number:
		if m.action == "redact" && selected && m.match.MatchString(v.String()) {
			return m.match.ReplaceAllLiteralString(v.String(), "[REDACTED]")
		}
	}
	return v
}

// findIn reports whether the expression is in what is selected of a line.
func (m *mapRule) findIn(v map[string]any) bool {
	for name, value := range v {
		switch {
		case name == "time" || name == "level":
		case name == "attrs" && m.findBelow(value, "", true, len(m.keys) == 0):
			return true
		case name != "attrs" && m.findBelow(value, name, false, m.selects(name, false)):
			return true
		}
	}
	return false
}

func (m *mapRule) findBelow(v any, path string, attrs, selected bool) bool {
	if selected {
		return m.anywhere(v, len(m.keys) == 0)
	}
	switch v := v.(type) {
	case map[string]any:
		for name, e := range v {
			at := strings.TrimPrefix(path+"."+strings.ToLower(name), ".")
			if m.findBelow(e, at, attrs, m.selects(at, attrs)) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, func(e any) bool { return m.findBelow(e, path, attrs, false) })
	}
	return false
}

// anywhere reports whether the expression is in a text or number of v, or a name.
func (m *mapRule) anywhere(v any, names bool) bool {
	switch v := v.(type) {
	case map[string]any:
		for name, e := range v {
			if names && m.match.MatchString(name) || m.anywhere(e, names) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, func(e any) bool { return m.anywhere(e, names) })
	case string:
		return m.match.MatchString(v)
	case json.Number:
		return m.match.MatchString(v.String())
	}
	return false
}

func (m *mapRule) selects(path string, attrs bool) bool {
	return len(m.keys) == 0 || slices.ContainsFunc(m.keys, func(k string) bool { return isKey(k, path, attrs) })
}

// leads reports whether something below path may be selected: all names that
// there are, three levels deep.
func (m *mapRule) leads(path string, attrs bool) bool {
	below := []string{path}
	for range 3 {
		var deeper []string
		for _, above := range below {
			for _, name := range []string{"ab", "abc", "cab", "x", "y", "x.ab", "1"} {
				if m.selects(above+"."+name, attrs) {
					return true
				}
				deeper = append(deeper, above+"."+name)
			}
		}
		below = deeper
	}
	return false
}

var keyExprs = map[string]*regexp.Regexp{}

// isKey reports whether the key is for path.
func isKey(key, path string, attrs bool) bool {
	key, attribute := strings.CutPrefix(key, "attrs.")
	if attribute && !attrs {
		return false
	}
	if keyExprs[key] == nil {
		expr := strings.NewReplacer(`\*\*\.`, `(?:.*\.)?`, `\*\*`, `.*`, `\*`, `[^.]*`).Replace(regexp.QuoteMeta(key))
		keyExprs[key] = regexp.MustCompile("^(?:" + expr + ")$")
	}
	return keyExprs[key].MatchString(path)
}

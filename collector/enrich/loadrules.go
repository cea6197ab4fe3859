package enrich

import (
	"errors"
	"fmt"
	"maps"
	"regexp/syntax"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/rollway/rollway/collector/config"
	"github.com/rollway/rollway/collector/query"
	"github.com/rollway/rollway/internal/jsonline"
)

const (
	maxRules = 1000
	fewRules = 2 // so few that it does not pay to note the names of an event for their expressions
)

// verbs are the actions with what each takes beside where, and what it must be given.
var verbs = []verb{
	{"drop", drop, []string{"where", "key", "match"}, someEvents, "where or match is wanted: which events"},
	{"keep", keep, []string{"where", "key", "match"}, someEvents, "where or match is wanted: which events"},
	{"remove", remove, []string{"where", "key", "match"}, someKey, "key is wanted: which values"},
	{"only", only, []string{"where", "key"}, someKey, "key is wanted: which values"},
	{"rename", rename, []string{"where", "from", "to"}, func(g map[string]bool) bool { return g["from"] && g["to"] }, "from and to are wanted"},
	{"redact", redact, []string{"where", "key", "match", "with"}, func(g map[string]bool) bool { return g["key"] || g["match"] }, "key or match is wanted: which values, or what in them"},
}

type verb struct {
	name   string
	action action
	keys   []string
	enough func(given map[string]bool) bool
	wanted string
}

func someEvents(given map[string]bool) bool { return given["where"] || given["match"] }
func someKey(given map[string]bool) bool    { return given["key"] }

func (l *loader) rules(n *yaml.Node) {
	if n.Kind != yaml.SequenceNode {
		l.fail(n, "rules", "a list of rules is wanted, each as in \"- drop: {where: 'level<info'}\"")
		return
	}
	if len(n.Content) > maxRules {
		l.fail(n, "rules", "%d rules are more than %d", len(n.Content), maxRules)
		return
	}
	names := make(map[string]int)
	for i, item := range n.Content {
		r := rule{name: fmt.Sprintf("rule_%d", i+1), tenants: l.env.Tenants}
		if l.rule(item, &r) {
			if line, taken := names[r.name]; taken {
				l.fail(item, "rules", "the name %s is taken in line %d", r.name, line)
			}
			names[r.name] = item.Line
			l.program.rules = append(l.program.rules, r)
		}
	}
	p := l.program
	l.lateDefaults()
	for i := range p.rules {
		r := &p.rules[i]
		r.needs = needsOf(r.keys)
		if r.where != nil && len(p.rules) > fewRules {
			for _, name := range r.where.Requires() {
				r.asks.add(lastPart([]byte(name)), lastBit)
			}
		}
		switch r.action {
		case redact:
			p.redacts = true
			p.hashAt = i + 1 // a secret leaves no trace in it
		case only:
			for _, name := range append(slices.Sorted(maps.Keys(l.names)), "time_suspect", "received") {
				r.keys = append(r.keys, key{text: lower(name), attrs: true})
			}
		}
	}
}

// lateDefaults puts those defaults off that a rule may provide by renaming.
func (l *loader) lateDefaults() {
	p := l.program
	for i := range p.rules {
		r := &p.rules[i]
		if r.action != rename || p.defaults == nil {
			continue
		}
		if raw := p.defaults.Take(r.toName); raw != nil {
			late := rule{action: rename, to: r.to, slot: r.slot, with: raw}
			p.late = append(p.late, late)
		}
	}
}

// rule reads one rule and reports whether it did.
func (l *loader) rule(n *yaml.Node, r *rule) bool {
	known := []string{"name"}
	for _, v := range verbs {
		known = append(known, v.name)
	}
	before, verb := len(l.errors), ""
	l.mapping(n, "rules", known, func(name string, k, v *yaml.Node) {
		if name == "name" {
			if v.Kind != yaml.ScalarNode || !config.Name.MatchString(v.Value) {
				l.fail(v, "rules.name", "1 to 64 letters, digits, dots, hyphens and underscores are wanted")
				return
			}
			r.name = v.Value
			return
		}
		if verb != "" {
			l.fail(k, "rules", "a rule does one thing, and this one is %s already: begin another with \"- %s:\"", verb, name)
			return
		}
		verb = name
		l.body(v, slices.Index(known, name)-1, r)
	})
	if verb == "" && len(l.errors) == before {
		l.fail(n, "rules", "a rule is one of %s", strings.Join(known[1:], ", "))
	}
	return len(l.errors) == before
}

// body reads what a rule takes that is verbs[verb].
func (l *loader) body(n *yaml.Node, verb int, r *rule) {
	do := &verbs[verb]
	r.action = do.action
	section, given := "rules."+do.name, make(map[string]bool)
	with := "[REDACTED]"
	before := len(l.errors)
	l.mapping(n, section, do.keys, func(name string, k, v *yaml.Node) {
		given[name] = true
		at := section + "." + name
		switch name {
		case "key", "from":
			r.keys = l.keys(v, at, r.action == redact)
			return
		}
		if v.Kind != yaml.ScalarNode || v.Tag != "!!str" {
			l.fail(v, at, "a text is wanted, best in single quotes")
			return
		}
		switch name {
		case "where":
			r.where = l.where(v, at)
		case "match":
			r.match = l.match(v, at)
		case "with":
			with = v.Value
		case "to":
			l.to(v, at, r)
		}
	})
	if len(l.errors) > before {
		return
	}
	r.with = jsonline.AppendString(nil, with)
	// Text of a configuration may hold bytes that are not UTF-8 only if YAML let
	// them pass; a line must not.
	r.withText = []byte(strings.ToValidUTF8(with, "\uFFFD"))
	if !do.enough(given) {
		hint := ""
		if r.action <= keep && given["key"] {
			hint = "; to take a value out of events use remove, to keep some only use only"
		}
		l.fail(n, section, "%s%s", do.wanted, hint)
	}
}

// keys reads a key or a list of them; secret is that of newKeys.
func (l *loader) keys(n *yaml.Node, at string, secret bool) (keys []key) {
	list := []*yaml.Node{n}
	if n.Kind == yaml.SequenceNode {
		list = n.Content
	}
	if len(list) == 0 {
		l.fail(n, at, "at least one key is wanted")
	}
	for _, item := range list {
		if item.Kind != yaml.ScalarNode || item.Tag == "!!null" {
			l.fail(item, at, "a key is wanted, or a list of them")
			continue
		}
		more, err := newKeys(l.env.Names, item.Value, secret)
		if err != nil {
			l.fail(item, at, "%v", err)
		}
		keys = append(keys, more...)
	}
	return keys
}

func (l *loader) where(v *yaml.Node, at string) *query.Query {
	q, err := query.Parse(v.Value)
	if err != nil {
		first, _, _ := strings.Cut(err.Error(), "\n") // the others show the place
		l.fail(v, at, "%s", first)
		return nil
	}
	if strings.TrimSpace(v.Value) == "" {
		l.fail(v, at, "an expression is wanted, as for \"rollway query\"")
	}
	return q
}

func (l *loader) match(v *yaml.Node, at string) *matcher {
	m, err := newMatcher(v.Value)
	if err == nil {
		return m
	}
	var bad *syntax.Error
	if errors.As(err, &bad) {
		err = fmt.Errorf("%s: %q; the syntax is that of RE2, without backreferences and lookaround", bad.Code, bad.Expr)
	}
	l.fail(v, at, "%v", err)
	return nil
}

// to reads the new name of a value.
func (l *loader) to(v *yaml.Node, at string, r *rule) {
	name := v.Value
	if rest, found := strings.CutPrefix(name, "attrs."); found {
		name = rest
	} else {
		r.slot = l.env.Names.SlotOf(name)
	}
	switch {
	case r.slot == "time" || r.slot == "level":
		l.fail(v, at, "%s is read when an event comes in, before rules", r.slot)
	case name == "" || len(name) > maxName || strings.Contains(name, "*"):
		l.fail(v, at, "a name of 1 to %d bytes is wanted, without *", maxName)
	case r.slot == "" && !l.tenant(v, at, name):
	default:
		r.to, r.toName = jsonline.AppendString(nil, name), name
	}
}

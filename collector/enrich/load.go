package enrich

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/rollway/rollway/collector/config"
	"github.com/rollway/rollway/collector/normalize"
	"github.com/rollway/rollway/collector/ulid"
	"github.com/rollway/rollway/internal/jsonline"
)

// Environment is what a Program needs to know beside the configuration.
type Environment struct {
	Host string       // name of this machine
	IDs  *ulid.Source // where identifiers come from

	// Tenants tells that only tokens and addresses write the attribute normalize.Tenant:
	// no rule changes it.
	Tenants bool

	Names *normalize.Keys // under which events are read; nil: those of the table
}

// Compile makes a Program of the configuration's blocks enrich, rules and
// normalize.parse; nil, if they say nothing. What is wrong is told all at once, each with its line, as
// config.Errors.
func Compile(enrich, rules, parse *config.Block, env Environment) (*Program, error) {
	p := new(Program)
	l := loader{program: p, env: env, names: map[string]string{normalize.Tenant: "what tokens and addresses say"}}
	if enrich != nil {
		l.file = enrich.File
		l.enrich(enrich.Node)
	}
	if rules != nil {
		l.file = rules.File
		l.rules(rules.Node)
	}
	if parse != nil {
		l.file = parse.File
		l.parsers(parse.Node)
	}
	if len(l.errors) > 0 {
		return nil, l.errors
	}
	if enrich == nil && rules == nil && parse == nil {
		return nil, nil
	}
	return p, nil
}

// A loader reads nodes into a Program.
type loader struct {
	file    string
	program *Program
	env     Environment
	names   map[string]string // attributes that are added, to what adds them
	errors  config.Errors
}

func (l *loader) fail(n *yaml.Node, key, format string, args ...any) {
	l.errors = append(l.errors, &config.Error{File: l.file, Line: n.Line, Column: n.Column, Key: key, Message: fmt.Sprintf(format, args...)})
}

// mapping calls read for each key of n, which must be one of keys.
func (l *loader) mapping(n *yaml.Node, section string, keys []string, read func(name string, k, v *yaml.Node)) {
	if n.Kind != yaml.MappingNode {
		l.fail(n, section, "keys with values are wanted: %s", strings.Join(keys, ", "))
		return
	}
	seen := make(map[string]int)
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		if line, twice := seen[k.Value]; twice {
			l.fail(k, section+"."+k.Value, "given twice; the first is in line %d", line)
			continue
		}
		seen[k.Value] = k.Line
		if keys != nil && !slices.Contains(keys, k.Value) {
			l.fail(k, "", "unknown key %s.%s%s", section, k.Value, nearest(k.Value, keys))
			continue
		}
		read(k.Value, k, v)
	}
}

// nearest is a hint at the key that was probably meant, or at all of them.
func nearest(name string, keys []string) string {
	best := config.Nearest(name, keys)
	if best == "" {
		return "; there are " + strings.Join(keys, ", ")
	}
	return "; did you mean " + best + "?"
}

var enrichKeys = []string{"fields", "defaults", "host", "client", "id", "fingerprint", "networks"}

func (l *loader) enrich(n *yaml.Node) {
	p := l.program
	l.mapping(n, "enrich", enrichKeys, func(name string, k, v *yaml.Node) {
		key := "enrich." + name
		switch name {
		case "fields":
			l.values(v, key, func(k *yaml.Node, raw []byte) {
				if l.attribute(k, key+"."+k.Value, "what enrich.fields adds") {
					p.fixed.AddJSON(k.Value, raw)
				}
			})
		case "defaults":
			p.defaults = new(normalize.Defaults)
			l.values(v, key, func(k *yaml.Node, raw []byte) {
				if l.tenant(k, key+"."+k.Value, k.Value) && !p.defaults.AddJSON(k.Value, raw) {
					l.fail(k, key+"."+k.Value, "it is a key of every line, to which only service and logger have defaults, texts both")
				}
			})
		case "host":
			if l.truth(v, key) && l.reserve(k, Host, key) {
				p.fixed.Add(Host, l.env.Host)
			}
		case "client":
			p.client = l.truth(v, key) && l.reserve(k, Client, key)
		case "id":
			switch {
			case v.Kind != yaml.ScalarNode || v.Value != "ulid":
				l.fail(v, key, "ulid is wanted, the one kind of identifier there is")
			case l.reserve(k, ID, key):
				p.ids = l.env.IDs
			}
		case "networks":
			l.networks(v)
		case "fingerprint":
			p.hashed = l.truth(v, key) && l.reserve(k, Fingerprint, key)
		}
	})
}

// truth reads true or false.
func (l *loader) truth(v *yaml.Node, key string) bool {
	if v.Kind != yaml.ScalarNode || v.Tag != "!!bool" {
		l.fail(v, key, "true or false is wanted")
		return false
	}
	return strings.EqualFold(v.Value, "true")
}

// values reads names with a text, a number or a truth value each.
func (l *loader) values(n *yaml.Node, key string, add func(k *yaml.Node, raw []byte)) {
	if n.Kind != yaml.MappingNode {
		l.fail(n, key, "names with values are wanted, as in {env: prod}")
		return
	}
	l.mapping(n, key, nil, func(name string, k, v *yaml.Node) {
		var value any
		if v.Kind != yaml.ScalarNode || v.Tag == "!!null" || v.Decode(&value) != nil {
			l.fail(v, key+"."+name, "a text, a number, true or false is wanted")
			return
		}
		if v.Tag == "!!timestamp" {
			value = v.Value
		}
		var raw []byte
		var err error
		if text, is := value.(string); is {
			raw = jsonline.AppendString(nil, text)
		} else {
			raw, err = json.Marshal(value)
		}
		switch {
		case err != nil:
			l.fail(v, key+"."+name, "%s is nothing that JSON can hold", v.Value)
		case name == "" || len(name) > maxName:
			l.fail(k, key, "a name has 1 to %d bytes", maxName)
		default:
			add(k, raw)
		}
	})
}

// maxName is how many bytes the name of an attribute has that is added.
const maxName = 256

// attribute notes that by adds an attribute, the one that k names unless name
// does, and reports whether it may.
func (l *loader) attribute(k *yaml.Node, key, by string, name ...string) bool {
	attr := append(name, k.Value)[0]
	if slot := l.env.Names.SlotOf(attr); slot != "" {
		hint := ""
		if slot == "service" || slot == "logger" {
			hint = "; enrich.defaults has it for events without one"
		}
		l.fail(k, key, "%s is a key of every line and no attribute%s", attr, hint)
		return false
	}
	if other, taken := l.names[attr]; taken && other != by {
		l.fail(k, key, "the attribute %s is %s already", attr, other)
		return false
	}
	l.names[attr] = by
	return true
}

// tenant reports whether the configuration may write an attribute of the name.
func (l *loader) tenant(n *yaml.Node, key, name string) bool {
	if l.env.Tenants && name == normalize.Tenant {
		l.fail(n, key, "with access.tokens the attribute %s is what tokens and addresses say; use another name", name)
		return false
	}
	return true
}

// reserve is attribute for the one that a key adds.
func (l *loader) reserve(k *yaml.Node, name, key string) bool {
	return l.attribute(k, key, "what "+key+" adds", name)
}

package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/rollway/rollway/internal/disk"
)

// An Error is one thing wrong in a file.
type Error struct {
	File    string `json:"file,omitempty"`   // empty: not from a file
	Line    int    `json:"line,omitempty"`   // from 1; 0: the file as a whole
	Column  int    `json:"column,omitempty"` // from 1
	Key     string `json:"key,omitempty"`    // as written in full, "limits.max_body"; empty: not about one key
	Message string `json:"message"`
}

func (e *Error) Error() string {
	text := ""
	if e.File != "" {
		text = e.File
		for _, n := range []int{e.Line, e.Column} {
			if n > 0 {
				text += ":" + strconv.Itoa(n)
			}
		}
		text += ": "
	}
	if e.Key != "" {
		text += e.Key + ": "
	}
	return text + e.Message
}

// Errors are all things wrong in a file, in the order of its lines.
type Errors []*Error

// Error returns one line for each of them.
func (e Errors) Error() string {
	var lines []string
	for _, err := range e {
		lines = append(lines, err.Error())
	}
	return strings.Join(lines, "\n")
}

// maxFile is far above any configuration; it keeps a wrong path, such as a
// log, from being read into memory.
const maxFile = 1 << 20

// Load reads the file at path over the defaults. An unknown or repeated key, a
// value of the wrong type or out of range, and a contradiction are errors; the
// error is then of type Errors and lists all of them, each with its line.
func Load(path string) (Config, error) {
	text, err := disk.ReadConfig(path, maxFile+1)
	if err != nil {
		return Default(), fmt.Errorf("read configuration: %w", err)
	}
	if len(text) > maxFile {
		return Default(), fmt.Errorf("read configuration: %s is larger than %v: not a configuration file", path, Size(maxFile))
	}
	return Parse(path, text)
}

// Parse is Load for text in memory; errors name it name.
func Parse(name string, text []byte) (Config, error) {
	c := Default()
	l := loader{name: name, config: &c, seen: make(map[string]*yaml.Node)}
	l.document(text)
	if list, ok := c.Check().(Errors); ok && len(l.errors) == 0 {
		for _, e := range list {
			e.File = name
			if k := l.seen[e.Key]; k != nil {
				e.Line, e.Column = k.Line, k.Column
			}
		}
		l.errors = list
	}
	if len(l.errors) > 0 {
		slices.SortStableFunc(l.errors, func(a, b *Error) int { return a.Line - b.Line })
		return c, l.errors
	}
	return c, nil
}

// A loader walks the nodes of one file.
type loader struct {
	name   string
	config *Config
	seen   map[string]*yaml.Node // keys by their full name
	errors Errors
}

func (l *loader) fail(n *yaml.Node, key, format string, args ...any) {
	l.errors = append(l.errors, &Error{File: l.name, Line: n.Line, Column: n.Column, Key: key, Message: fmt.Sprintf(format, args...)})
}

func (l *loader) document(text []byte) {
	var docs [2]yaml.Node
	d := yaml.NewDecoder(bytes.NewReader(text))
	for i := range docs {
		err := d.Decode(&docs[i])
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			l.syntax(err)
			return
		}
	}
	switch {
	case docs[0].Kind == 0: // an empty file: all defaults
		return
	case docs[1].Kind != 0:
		l.fail(&docs[1], "", "a second document begins here: a file contains one configuration")
		return
	}
	switch root := docs[0].Content[0]; {
	case root.Kind == yaml.MappingNode:
		l.mapping("", root)
	case root.Kind != yaml.ScalarNode || root.Tag != "!!null":
		l.fail(root, "", "the file must hold keys and values, as in \"listen: 127.0.0.1:4318\"; this is %s", describe(root))
	}
}

var yamlLine = regexp.MustCompile(`^(?:yaml: )?(?:line (\d+): )?((?s).*)$`)

// syntax reports what the YAML parser could not read.
func (l *loader) syntax(err error) {
	m := yamlLine.FindStringSubmatch(err.Error())
	line, _ := strconv.Atoi(m[1]) // 0: it does not say
	l.errors = append(l.errors, &Error{File: l.name, Line: line, Message: "not valid YAML: " + m[2]})
}

// mapping reads the keys below section; "" is the top.
func (l *loader) mapping(section string, m *yaml.Node) {
	for k, v := range pairs(m) {
		if v.Kind == yaml.AliasNode {
			v = v.Alias
		}
		if k.Kind != yaml.ScalarNode {
			l.fail(k, section, "a key must be a plain word; this is %s", describe(k))
			continue
		}
		key := join(section, k.Value)
		if first, ok := l.seen[key]; ok {
			l.fail(k, key, "given twice; the first is in line %d", first.Line)
			continue
		}
		l.seen[key] = k
		l.entry(section, key, k, v)
	}
}

func (l *loader) entry(section, key string, k, v *yaml.Node) {
	i := slices.IndexFunc(fields, func(f field) bool { return f.key == key })
	isSection := slices.ContainsFunc(fields, func(f field) bool { return strings.HasPrefix(f.key, key+".") })
	switch {
	case i >= 0 && fields[i].isBlock():
		if alias := findAlias(v); alias != nil {
			l.fail(alias, key, "aliases are not allowed: write out the value")
			return
		}
		fields[i].value(l.config).Set(reflect.ValueOf(newBlock(l.name, v)))
	case isSection && v.Kind == yaml.MappingNode:
		l.mapping(key, v)
	case isSection && v.Tag == "!!null":
		// All keys of the section are commented out.
	case isSection:
		l.fail(v, key, "a section with keys below it is wanted; this is %s", describe(v))
	case i < 0:
		l.fail(k, "", "unknown key %s%s", key, suggestion(section, k.Value))
	case fields[i].isWords() && v.Kind == yaml.SequenceNode:
		l.words(fields[i], v)
	case v.Kind != yaml.ScalarNode:
		l.fail(v, key, "%s is wanted; this is %s", fields[i].wants(), describe(v))
	case v.Tag == "!!null":
		l.fail(k, key, "no value: %s is wanted; remove the line for the default", fields[i].wants())
	default:
		l.value(fields[i], v)
	}
}

// words sets a field from a list of strings.
func (l *loader) words(f field, v *yaml.Node) {
	var list Words
	for _, word := range v.Content {
		if word.Kind != yaml.ScalarNode || word.Tag != "!!str" {
			l.fail(word, f.key, "a name in quotes is wanted; this is %s", describe(word))
			return
		}
		list = append(list, word.Value)
	}
	f.value(l.config).Set(reflect.ValueOf(list))
}

// value sets a field from a scalar whose YAML type must fit: strings are not
// made of numbers, nor numbers of booleans.
func (l *loader) value(f field, v *yaml.Node) {
	fits := v.Tag == "!!str" && f.typ.Kind() != reflect.Int || v.Tag == "!!int" && (f.typ.Kind() == reflect.Int || f.typ == reflect.TypeFor[Size]())
	if !fits && !(v.Value == "0" && f.zeroOK) {
		l.fail(v, f.key, "%s is wanted; this is %s", f.wants(), describe(v))
		return
	}
	if err := f.set(l.config, v.Value); err != nil {
		l.fail(v, f.key, "%v", err)
	}
}

// describe names a node's type in words.
func describe(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a section"
	case yaml.SequenceNode:
		return "a list"
	}
	switch n.Tag {
	case "!!int", "!!float":
		return "the number " + n.Value
	case "!!bool":
		return "the truth value " + n.Value
	case "!!null":
		return "empty"
	case "!!timestamp":
		return "the date " + n.Value
	}
	return fmt.Sprintf("the text %q", n.Value)
}

func join(section, name string) string {
	if section == "" {
		return name
	}
	return section + "." + name
}

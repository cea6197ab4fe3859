package config

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// A field is one setting: its key in the file, where it is in a Config, and what is
// valid.
type field struct {
	key      string
	index    []int // for reflect
	typ      reflect.Type
	initial  string             // default
	min, max int64              // of a number, in its unit
	zeroOK   bool               // 0, "no limit", is valid below min
	check    func(string) error // of a string
	words    []string           // a string must be one of them; nil: it may be another
}

// fields are the settings in the order in which they are documented and printed.
var fields = fieldsOf(reflect.TypeFor[Config](), "", nil)

func fieldsOf(typ reflect.Type, section string, index []int) (list []field) {
	for i := range typ.NumField() {
		sf := typ.Field(i)
		f := field{key: join(section, sf.Tag.Get("key")), index: append(slices.Clone(index), i), typ: sf.Type, initial: sf.Tag.Get("default")}
		switch kind := sf.Type.Kind(); {
		case sf.Tag.Get("key") == "":
			panic("config: " + sf.Name + " has no key")
		case kind == reflect.Struct:
			list = append(list, fieldsOf(sf.Type, f.key, f.index)...)
			continue
		case kind == reflect.String:
			f.check = checkNamed(sf.Tag.Get("check"))
			if list, ok := strings.CutPrefix(sf.Tag.Get("check"), "one "); ok {
				f.words = strings.Fields(list)
			}
		case !f.isBlock() && !f.isWords():
			f.setRange(sf.Tag.Get("range"))
		}
		list = append(list, f)
	}
	return list
}

// setRange reads the tag of a number: "1KiB 4GiB", "64 64MiB or 0", "1s *".
func (f *field) setRange(tag string) {
	tag, f.zeroOK = strings.CutSuffix(tag, " or 0")
	low, high, _ := strings.Cut(tag, " ")
	var err error
	f.min, err = numbers[f.typ].parse(low)
	f.max = math.MaxInt64
	if high != "*" && err == nil {
		f.max, err = numbers[f.typ].parse(high)
	}
	if err != nil {
		panic("config: the range of " + f.key + ": " + err.Error())
	}
}

// A number is a type of settings that are whole numbers of a unit.
type number struct {
	wants string
	parse func(string) (int64, error)
	print func(int64) string
}

var numbers = map[reflect.Type]number{
	reflect.TypeFor[int](): {"a whole number",
		func(s string) (int64, error) {
			n, err := strconv.Atoi(s)
			if err != nil {
				err = fmt.Errorf("%q is not a whole number", s)
			}
			return int64(n), err
		},
		func(n int64) string { return strconv.FormatInt(n, 10) }},
	reflect.TypeFor[Size](): {"a size such as 64MiB",
		func(s string) (int64, error) { n, err := ParseSize(s); return int64(n), err },
		func(n int64) string { return Size(n).String() }},
	reflect.TypeFor[time.Duration](): {"a duration such as 30s or 7d",
		func(s string) (int64, error) { d, err := ParseDuration(s); return int64(d), err },
		func(n int64) string { return formatDuration(time.Duration(n)) }},
}

// wants names the values of the field for an error.
func (f field) wants() string {
	switch {
	case f.isBlock():
		return "a block of YAML"
	case f.isWords():
		return "a list of names, as in [status, severity],"
	case f.typ.Kind() == reflect.String:
		return "a string in quotes"
	}
	return numbers[f.typ].wants
}

func (f field) value(c *Config) reflect.Value { return reflect.ValueOf(c).Elem().FieldByIndex(f.index) }

// isBlock reports whether another package parses the field.
func (f field) isBlock() bool { return f.typ == reflect.TypeFor[*Block]() }

// Words is a list of words.
type Words []string

func (f field) isWords() bool { return f.typ == reflect.TypeFor[Words]() }

// set gives the field of c the value of text.
func (f field) set(c *Config, text string) error {
	v := f.value(c)
	switch {
	case f.isBlock():
		return errors.New("it is a block of a file")
	case f.isWords():
		v.Set(reflect.ValueOf(Words(strings.Fields(text))))
	case f.check != nil:
		if err := f.check(text); err != nil {
			return err
		}
		v.SetString(text)
	default:
		n, err := numbers[f.typ].parse(text)
		if err == nil {
			err = f.inRange(n)
		}
		if err != nil {
			return err
		}
		v.SetInt(n)
	}
	return nil
}

func (f field) inRange(n int64) error {
	if n == 0 && f.zeroOK || n >= f.min && n <= f.max {
		return nil
	}
	print := numbers[f.typ].print
	bound := "at most " + print(f.max)
	if n < f.min {
		bound = "at least " + print(f.min)
		if f.zeroOK {
			bound += ", or 0 for no limit"
		}
	}
	return fmt.Errorf("%s is out of range: it must be %s", print(n), bound)
}

// node returns the field's value in c as YAML.
func (f field) node(c *Config) *yaml.Node {
	v := f.value(c)
	n := &yaml.Node{Kind: yaml.ScalarNode}
	switch {
	case f.isBlock() && v.IsNil():
		n.Kind, n.Style = yaml.MappingNode, yaml.FlowStyle
		if f.key == "rules" {
			n.Kind = yaml.SequenceNode
		}
	case f.isWords():
		n.Kind, n.Style = yaml.SequenceNode, yaml.FlowStyle
		for i := range v.Len() {
			n.Content = append(n.Content, &yaml.Node{Kind: yaml.ScalarNode, Style: yaml.DoubleQuotedStyle, Value: v.Index(i).String()})
		}
	case f.isBlock():
		return uncommented(v.Interface().(*Block).Node)
	case f.typ == reflect.TypeFor[string]():
		n.Style, n.Value = yaml.DoubleQuotedStyle, v.String()
	case f.check != nil: // one of some words
		n.Value = v.String()
	default:
		n.Value = numbers[f.typ].print(v.Int())
	}
	return n
}

// encode writes a node, which package yaml can always write.
func encode(n *yaml.Node) string {
	var b strings.Builder
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	if err := e.Encode(n); err != nil {
		panic("config: " + err.Error())
	}
	return b.String()
}

var sizeUnits = []struct {
	name string
	size Size
}{
	{"TiB", TiB}, {"GiB", GiB}, {"MiB", MiB}, {"KiB", KiB},
	{"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12},
	{"B", 1},
}

// ParseSize reads a number of bytes with or without a unit: 1000, 512B, 64KiB,
// 64MiB, 2GiB, 1TiB (powers of 1024), 10KB, 10MB, 2GB, 1TB (powers of 1000).
// Case does not matter; a blank may precede the unit.
func ParseSize(text string) (Size, error) {
	number, unit := strings.TrimSpace(text), Size(1)
	for _, u := range sizeUnits {
		if n := len(number) - len(u.name); n > 0 && strings.EqualFold(number[n:], u.name) {
			number, unit = strings.TrimSpace(number[:n]), u.size
			break
		}
	}
	n, err := strconv.ParseInt(number, 10, 64)
	switch {
	case errors.Is(err, strconv.ErrRange), err == nil && n > math.MaxInt64/int64(unit):
		return 0, fmt.Errorf("%q is more than can be counted", text)
	case err != nil || n < 0:
		return 0, fmt.Errorf("%q is not a size: write a whole number of bytes or a unit, as in 64KiB, 64MiB, 2GiB", text)
	}
	return Size(n) * unit, nil
}

// ParseDuration reads what time.ParseDuration reads, and whole days (7d).
func ParseDuration(text string) (time.Duration, error) {
	const day = 24 * time.Hour
	if days, ok := strings.CutSuffix(text, "d"); ok {
		if n, err := strconv.ParseInt(days, 10, 64); err == nil && n >= 0 && n <= math.MaxInt64/int64(day) {
			return time.Duration(n) * day, nil
		}
	}
	if text == "0" {
		return 0, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return 0, fmt.Errorf("%q is not a duration: write a number and a unit, as in 500ms, 30s, 10m, 12h, 7d", text)
	}
	return d, nil
}

// formatDuration is the inverse of ParseDuration, without units that are zero.
func formatDuration(d time.Duration) string {
	const day = 24 * time.Hour
	if d >= day && d%day == 0 {
		return strconv.FormatInt(int64(d/day), 10) + "d"
	}
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = s[:len(s)-2]
	}
	if strings.HasSuffix(s, "h0m") {
		s = s[:len(s)-2]
	}
	return s
}

package encode

import (
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/rollway/rollway/internal/jsonline"
)

// Values of types that this package does not know are written as by encoding/json,
// with three differences. Methods that say how a value is written apply at every
// depth (also those of errors, LogValuers and Stringers, and those that only the
// pointer has). A method that panics costs its own element alone. NaN is a string.

// errTooDeep ends the encoding of a value that contains itself or is very large.
var errTooDeep = errors.New("too deep or too large")

// typeInfo says how the values of a type are written.
type typeInfo struct {
	special bool     // appendJSONAny handles it
	byAddr  bool     // appendJSONAny handles the pointer to it
	members []member // of a struct
}

// member is a field of a struct as encoding/json sees it.
type member struct {
	key                          string
	index                        []int
	tagged                       bool
	omitEmpty, omitZero, inQuote bool
}

var typeInfos sync.Map // reflect.Type to *typeInfo

var specialTypes = []reflect.Type{
	reflect.TypeFor[slog.LogValuer](), reflect.TypeFor[error](),
	reflect.TypeFor[json.Marshaler](), reflect.TypeFor[encoding.TextMarshaler](), reflect.TypeFor[fmt.Stringer](),
}

func isSpecial(t reflect.Type) bool {
	return slices.ContainsFunc(specialTypes, t.Implements) || slices.ContainsFunc(SelfAppenders, t.Implements)
}

func infoOf(t reflect.Type) *typeInfo {
	if info, ok := typeInfos.Load(t); ok {
		return info.(*typeInfo)
	}
	info := &typeInfo{special: isSpecial(t)}
	if k := t.Kind(); k != reflect.Pointer && k != reflect.Interface {
		info.byAddr = !info.special && isSpecial(reflect.PointerTo(t))
	}
	if t.Kind() == reflect.Struct {
		info.members = membersOf(t)
	}
	typeInfos.Store(t, info)
	return info
}

// membersOf returns the fields of a struct, including those of embedded structs. Of
// fields with one name the shallowest counts, then the one named by a tag; if two are
// left, neither.
func membersOf(t reflect.Type) []member {
	var all []member
	var add func(t reflect.Type, index []int, around []reflect.Type)
	add = func(t reflect.Type, index []int, around []reflect.Type) {
		for i := range t.NumField() {
			sf := t.Field(i)
			elem := sf.Type
			if elem.Kind() == reflect.Pointer && elem.Name() == "" {
				elem = elem.Elem()
			}
			tag := sf.Tag.Get("json")
			if tag == "-" || !sf.IsExported() && (!sf.Anonymous || elem.Kind() != reflect.Struct) {
				continue
			}
			name, options, _ := strings.Cut(tag, ",")
			m := member{key: name, index: append(slices.Clone(index), i), tagged: true}
			if name == "" || strings.ContainsFunc(name, notInTag) {
				if sf.Anonymous && elem.Kind() == reflect.Struct {
					if !slices.Contains(around, elem) {
						add(elem, m.index, append(slices.Clone(around), elem))
					}
					continue
				}
				m.key, m.tagged = sf.Name, false
			}
			for option := range strings.SplitSeq(options, ",") {
				switch k := elem.Kind(); option {
				case "omitempty":
					m.omitEmpty = true
				case "omitzero":
					m.omitZero = true
				case "string":
					m.inQuote = k >= reflect.Bool && k <= reflect.Float64 || k == reflect.String
				}
			}
			all = append(all, m)
		}
	}
	add(t, nil, []reflect.Type{t})
	rank := func(m *member) int {
		if m.tagged {
			return 2 * len(m.index)
		}
		return 2*len(m.index) + 1
	}
	return slices.DeleteFunc(slices.Clone(all), func(m member) bool {
		for i := range all {
			o := &all[i]
			if o.key == m.key && rank(o) <= rank(&m) && !slices.Equal(o.index, m.index) {
				return true
			}
		}
		return false
	})
}

// notInTag reports whether encoding/json ignores a name with r.
func notInTag(r rune) bool {
	return !strings.ContainsRune("!#$%&()*+-./:;<=>?@[]^_{|}~ ", r) && !unicode.IsLetter(r) && !unicode.IsDigit(r)
}

// appendReflect appends v by its methods or else by its kind.
func (f *Format) appendReflect(dst []byte, v reflect.Value, depth int) []byte {
	if k := v.Kind(); (k == reflect.Pointer || k == reflect.Interface) && v.IsNil() {
		return append(dst, "null"...)
	}
	switch info := infoOf(v.Type()); {
	case !v.CanInterface() && (info.byAddr || info.special): // an embedded struct that is not exported
		return append(dst, `"!ERROR: not exported"`...)
	case info.byAddr:
		return f.appendJSONAny(dst, addressable(v).Addr().Interface(), depth)
	case info.special:
		return f.appendJSONAny(dst, v.Interface(), depth)
	default:
		return f.appendPlain(dst, v, info, depth)
	}
}

// addressable returns v, or a copy of it that has an address.
func addressable(v reflect.Value) reflect.Value {
	if v.CanAddr() {
		return v
	}
	p := reflect.New(v.Type()).Elem()
	p.Set(v)
	return p
}

// appendPlain appends v by its kind.
func (f *Format) appendPlain(dst []byte, v reflect.Value, info *typeInfo, depth int) []byte {
	if depth > maxRawDepth || f.tooLong(dst) {
		panic(errTooDeep)
	}
	switch kind := v.Kind(); kind {
	case reflect.Bool:
		return strconv.AppendBool(dst, v.Bool())
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return jsonline.AppendInt(dst, v.Int())
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return jsonline.AppendUint(dst, v.Uint())
	case reflect.Float32: // its shortest decimal
		n, _ := strconv.ParseFloat(strconv.FormatFloat(v.Float(), 'g', -1, 32), 64)
		return jsonline.AppendFloat(dst, n)
	case reflect.Float64:
		return jsonline.AppendFloat(dst, v.Float())
	case reflect.String:
		return jsonline.AppendString(dst, v.String())
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return append(dst, "null"...)
		}
		if info := infoOf(v.Elem().Type()); info.byAddr { // the methods of v are known
			return f.appendPlain(dst, v.Elem(), info, depth+1)
		}
		return f.appendReflect(dst, v.Elem(), depth+1)
	case reflect.Struct:
		return f.appendStruct(dst, v, info, depth)
	case reflect.Map:
		return f.appendMap(dst, v, depth)
	case reflect.Slice, reflect.Array:
		if kind == reflect.Slice && v.IsNil() {
			return append(dst, "null"...)
		}
		if elem := v.Type().Elem(); kind == reflect.Slice && elem.Kind() == reflect.Uint8 && !isSpecial(elem) && !isSpecial(reflect.PointerTo(elem)) {
			return f.appendBytes(dst, v.Bytes())
		}
		dst = append(dst, '[')
		for i := range v.Len() {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = f.appendReflect(dst, v.Index(i), depth+1)
		}
		return append(dst, ']')
	}
	return jsonline.AppendString(dst, "!ERROR: unsupported type: "+v.Type().String())
}

func (f *Format) appendStruct(dst []byte, v reflect.Value, info *typeInfo, depth int) []byte {
	dst = append(dst, '{')
	for i := range info.members {
		m := &info.members[i]
		field, err := v.FieldByIndexErr(m.index)
		if err != nil || m.omitEmpty && isEmpty(field) || m.omitZero && isZero(field) {
			continue // err: an embedded pointer is nil
		}
		dst = jsonline.AppendKey(dst, m.key)
		mark := len(dst)
		dst = f.appendReflect(dst, field, depth+1)
		if text := string(dst[mark:]); m.inQuote && text != "null" && !infoOf(field.Type()).special && !infoOf(field.Type()).byAddr {
			dst = jsonline.AppendString(dst[:mark], text)
		}
	}
	return append(dst, '}')
}

// isEmpty reports whether omitempty omits v.
func isEmpty(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Array, reflect.Map, reflect.Slice, reflect.String:
		return v.Len() == 0
	case reflect.Struct:
		return false
	}
	return v.IsZero()
}

// isZero reports whether omitzero omits v.
func isZero(v reflect.Value) bool {
	if k := v.Kind(); (k == reflect.Pointer || k == reflect.Interface) && v.IsNil() {
		return true
	}
	if z, ok := v.Interface().(interface{ IsZero() bool }); ok {
		return z.IsZero()
	}
	if z, ok := addressable(v).Addr().Interface().(interface{ IsZero() bool }); ok {
		return z.IsZero()
	}
	return v.IsZero()
}

func (f *Format) appendMap(dst []byte, v reflect.Value, depth int) []byte {
	if v.IsNil() {
		return append(dst, "null"...)
	}
	type entry struct {
		key   string
		value reflect.Value
	}
	entries := make([]entry, 0, v.Len())
	for it := v.MapRange(); it.Next(); {
		entries = append(entries, entry{f.mapKey(it.Key(), depth), it.Value()})
	}
	slices.SortStableFunc(entries, func(a, b entry) int { return strings.Compare(a.key, b.key) })
	dst = append(dst, '{')
	for i, e := range entries {
		if i > 0 && e.key == entries[i-1].key {
			continue // keys of different values with one text
		}
		dst = f.appendReflect(jsonline.AppendKey(dst, e.key), e.value, depth+1)
	}
	return append(dst, '}')
}

// mapKey returns a key as in encoding/json: a string as it is, otherwise its text;
// for a LogValuer the value it resolves to.
func (f *Format) mapKey(k reflect.Value, depth int) string {
	_, hides := k.Interface().(slog.LogValuer)
	if k.Kind() == reflect.String && !hides {
		return validUTF8(k.String())
	}
	text := f.appendReflect(nil, k, depth+1)
	var s string
	if json.Unmarshal(text, &s) != nil {
		s = string(text)
	}
	return s
}

// appendByMethod appends a value by a method that says how it is written, as JSON or
// text, and reports whether it has one.
func (f *Format) appendByMethod(dst []byte, value any, depth int) ([]byte, bool) {
	var text string
	var err error
	switch v := value.(type) {
	case time.Time:
		return f.appendTimeValue(dst, v), true
	case time.Duration:
		return f.appendDuration(dst, v), true
	case slog.Value:
		return f.appendJSONValue(dst, v, depth+1), true
	case slog.Attr:
		return append(f.appendJSONAttrs(append(dst, '{'), []slog.Attr{v}, depth+1, nil), '}'), true
	case json.Number:
		if v == "" {
			v = "0"
		}
		if _, err := v.Float64(); err != nil || !json.Valid([]byte(v)) {
			return jsonline.AppendString(dst, string(v)), true
		}
		return append(dst, v...), true
	case json.Marshaler:
		if IsNil(value) {
			return append(dst, "null"...), true
		}
		var raw []byte
		if raw, err = v.MarshalJSON(); err == nil {
			return AppendRawJSON(dst, raw), true
		}
	case encoding.TextMarshaler:
		if IsNil(value) {
			return append(dst, "null"...), true
		}
		var b []byte
		b, err = v.MarshalText()
		text = string(b)
	case fmt.Stringer:
		if f.byMembers && isComposite(reflect.TypeOf(value)) {
			return dst, false
		}
		if IsNil(value) {
			return append(dst, "null"...), true
		}
		text = v.String()
	default:
		return dst, false
	}
	if err != nil {
		text = "!ERROR: " + err.Error()
	}
	return jsonline.AppendString(dst, text), true
}

// isComposite reports whether values of a type contain others.
func isComposite(t reflect.Type) bool {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	k := t.Kind()
	return k == reflect.Struct || k == reflect.Map || k == reflect.Slice || k == reflect.Array
}

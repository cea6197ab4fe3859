package encode

import (
	"errors"
	"fmt"
	"strings"

	"github.com/rollway/rollway/internal/jsonline"
)

// layoutField is one field of a line.
type layoutField struct {
	what    int    // slotService to slotStack, or one of the fields below
	key     string // JSON: `"name":`; "" for attributes at the top; a constant with its value
	name    string // unquoted
	prefix  []byte // of an id in JSON, escaped
	inside  bool   // JSON: key opens an object, which ends after the value
	value   string // of a constant
	renamed bool   // by a colon
	beside  string // key of an attribute with that name
}

// The fields that are not slots.
const (
	fieldTime = numSlots + iota
	fieldLevel
	fieldMsg
	fieldAttrs
	fieldConstant
	numFields
)

var fieldNames = map[string]int{
	"time": fieldTime, "level": fieldLevel, "msg": fieldMsg, "service": slotService, "logger": slotLogger, "source": slotSource,
	"trace_id": slotTraceID, "span_id": slotSpanID, "error": slotError, "stack": slotStack, "attrs": fieldAttrs,
}

// The default layouts of the text formats.
const (
	canonicalLayout = "time level msg service logger source trace_id span_id error attrs"
	consoleLayout   = "time level logger msg error attrs service trace_id span_id source"
)

// parseLayout returns the fields of a layout; nil for "", the canonical line of JSON.
func parseLayout(layout string) ([]layoutField, error) {
	var fields []layoutField
	var errs []error
	seen, names := make(map[string]bool), make(map[string]bool)
	for _, f := range strings.Fields(layout) {
		field, name, renamed := strings.Cut(f, ":")
		what, ok := fieldNames[field]
		name, value, given := strings.Cut(name, "=")
		if constant, text, is := strings.Cut(f, "="); is && !renamed {
			field, name, value, given = constant, constant, text, true
			what, ok, renamed = fieldConstant, constant != "", true
		}
		name, member, inside := strings.Cut(name, "{")
		switch {
		case !ok:
			errs = append(errs, fmt.Errorf("field %q of Layout is not one of time, level, msg, service, logger, source, trace_id, span_id, error, stack, attrs, nor a constant as version=8", field))
			continue
		case given && what != slotTraceID && what != slotSpanID && what != fieldConstant:
			errs = append(errs, fmt.Errorf("field %q of Layout has a =: only trace_id and span_id take a prefix", field))
			continue
		case inside && (what >= numSlots || name == "" || len(member) < 2 || strings.IndexByte(member, '}') != len(member)-1):
			errs = append(errs, fmt.Errorf("field %q of Layout has a {: write service:OBJECT{MEMBER}, for any field but time, level, msg and attrs", field))
			continue
		case seen[field]:
			errs = append(errs, fmt.Errorf("field %q appears twice in Layout", field))
			continue
		case !renamed:
			name = field
		case name == "" && what != fieldAttrs:
			errs = append(errs, fmt.Errorf("field %q of Layout has no name after its colon", field))
			continue
		}
		if names[name] && name != "" {
			errs = append(errs, fmt.Errorf("two fields of Layout have the name %q", name))
			continue
		}
		seen[field], names[name] = true, true
		part := layoutField{what: what, name: name, inside: inside, renamed: renamed, beside: "attrs." + name}
		if name != "" {
			part.key = string(jsonline.AppendString(nil, name)) + ":"
		}
		switch {
		case inside:
			part.key = string(jsonline.AppendString([]byte(part.key+"{"), member[:len(member)-1])) + ":"
		case what == fieldConstant:
			part.key, part.value = string(jsonline.AppendString([]byte(part.key), value)), value
		}
		if given && what != fieldConstant {
			part.prefix = jsonline.AppendEscaped(nil, value)
		}
		fields = append(fields, part)
	}
	return fields, errors.Join(errs...)
}

// slotsOf returns a bit for each slot among fields; for the canonical line all.
func slotsOf(fields []layoutField) (set uint) {
	if fields == nil {
		return 1<<slotStack - 1
	}
	for _, f := range fields {
		if f.what < numSlots {
			set |= 1 << f.what
		}
	}
	return set
}

// setTextNames sets what a text format needs to know of its fields.
func (f *Format) setTextNames() {
	for i := range f.fields {
		field := &f.fields[i]
		if field.what == fieldAttrs {
			if field.renamed && field.name != "" {
				f.attrsPrefix = field.name + "."
			}
		} else if !f.bare(field) {
			f.nameLengths |= 1 << min(len(field.name), 63)
		}
	}
}

// setTopNames sets nameLengths of a JSON format whose attributes are beside the
// fields.
func (f *Format) setTopNames() {
	top, lengths := false, uint64(0)
	for i := range f.fields {
		field := &f.fields[i]
		top = top || field.what == fieldAttrs && field.name == ""
		lengths |= 1 << min(len(field.name), 63)
	}
	if top {
		f.nameLengths = lengths
	}
}

// bare reports whether a field is printed on the console without its name.
func (f *Format) bare(field *layoutField) bool {
	if f.Kind != Console || field.renamed {
		return false
	}
	return field.what == fieldTime || field.what == fieldLevel || field.what == fieldMsg || field.what == slotLogger
}

// isField reports whether a field has that name, in a line with attributes beside the
// fields.
func (f *Format) isField(name string) bool {
	return f.nameLengths&(1<<min(len(name), 63)) != 0 && f.hasField(name)
}

func (f *Format) hasField(name string) bool {
	for i := range f.fields {
		if field := &f.fields[i]; field.what != fieldAttrs && field.name == name && !f.bare(field) {
			return true
		}
	}
	return false
}

// besideField returns the key of an attribute with the name of a field.
func (f *Format) besideField(name string) string {
	for i := range f.fields {
		if f.fields[i].name == name {
			return f.fields[i].beside
		}
	}
	return name
}

// fieldName returns the name of a field.
func (f *Format) fieldName(what int) string {
	for i := range f.fields {
		if f.fields[i].what == what {
			return f.fields[i].name
		}
	}
	return ""
}

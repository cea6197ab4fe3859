package rollway

import (
	"errors"
	"fmt"
	"strings"

	"github.com/rollway/rollway/internal/jsonline"
)

// layoutField is one key of a line.
type layoutField struct {
	what    int    // slotService to slotError, or one of the fields below
	key     string // JSON: `"name":`; "" for attributes at the top
	name    string // as it is
	renamed bool   // by a colon
}

// The keys of the canonical line that are not slots.
const (
	fieldTime = numSlots + iota
	fieldLevel
	fieldMsg
	fieldAttrs
)

var fieldNames = map[string]int{
	"time": fieldTime, "level": fieldLevel, "msg": fieldMsg, "service": slotService, "logger": slotLogger, "source": slotSource,
	"trace_id": slotTraceID, "span_id": slotSpanID, "error": slotError, "attrs": fieldAttrs,
}

// The layouts that text formats have where the user gives none.
const (
	canonicalLayout = "time level msg service logger source trace_id span_id error attrs"
	consoleLayout   = "time level logger msg error attrs service trace_id span_id source"
)

// parseLayout returns the fields of a Layout, nil for "", which is JSON's
// canonical line.
func parseLayout(layout string) ([]layoutField, error) {
	var fields []layoutField
	var errs []error
	seen, names := make(map[string]bool), make(map[string]bool)
	for _, f := range strings.Fields(layout) {
		field, name, renamed := strings.Cut(f, ":")
		what, ok := fieldNames[field]
		switch {
		case !ok:
			errs = append(errs, fmt.Errorf("field %q of Layout is none of time, level, msg, service, logger, source, trace_id, span_id, error, attrs", field))
			continue
		case seen[field]:
			errs = append(errs, fmt.Errorf("field %q stands twice in Layout", field))
			continue
		case !renamed:
			name = field
		case name == "" && what != fieldAttrs:
			errs = append(errs, fmt.Errorf("field %q of Layout has no name behind its colon", field))
			continue
		}
		if names[name] && name != "" {
			errs = append(errs, fmt.Errorf("two fields of Layout have the name %q", name))
			continue
		}
		seen[field], names[name] = true, true
		key := ""
		if name != "" {
			key = string(jsonline.AppendString(nil, name)) + ":"
		}
		fields = append(fields, layoutField{what, key, name, renamed})
	}
	return fields, errors.Join(errs...)
}

// slotsOf returns a bit for each fixed key among fields; for the canonical line
// all.
func slotsOf(fields []layoutField) (set uint) {
	if fields == nil {
		return 1<<numSlots - 1
	}
	for _, f := range fields {
		if f.what < numSlots {
			set |= 1 << f.what
		}
	}
	return set
}

// setText fills in what a text format needs to know of its layout.
func (s *formatSettings) setText(layout string) error {
	if s.layout = strings.Join(strings.Fields(s.layout), " "); s.layout == "" {
		s.layout = layout
	}
	fields, err := parseLayout(s.layout)
	for i := range fields {
		f := &fields[i]
		if f.what == fieldAttrs {
			if f.renamed && f.name != "" {
				s.attrsPrefix = f.name + "."
			}
		} else if !s.bare(f) {
			s.nameLengths |= 1 << min(len(f.name), 63)
		}
	}
	return err
}

// bare reports whether a field stands on the console without a name.
func (s *formatSettings) bare(f *layoutField) bool {
	if s.kind != kindConsole || f.renamed {
		return false
	}
	return f.what == fieldTime || f.what == fieldLevel || f.what == fieldMsg || f.what == slotLogger
}

// isField reports whether a text line has a field of that name.
func (f *format) isField(name string) bool {
	return f.nameLengths&(1<<min(len(name), 63)) != 0 && f.hasField(name)
}

func (f *format) hasField(name string) bool {
	for i := range f.fields {
		if field := &f.fields[i]; field.name == name && field.what != fieldAttrs && !f.bare(field) {
			return true
		}
	}
	return false
}

// fieldName returns the name of a fixed field.
func (f *format) fieldName(what int) string {
	for i := range f.fields {
		if f.fields[i].what == what {
			return f.fields[i].name
		}
	}
	return ""
}

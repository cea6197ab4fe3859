package rollway

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/rollway/rollway/internal/jsonline"
)

// layoutField is one key of a line.
type layoutField struct {
	what    int    // slotService to slotError, or one of the fields below
	key     string // JSON: `"name":`; "" for attributes at the top
	name    string // as it is
	renamed bool   // by a colon
	beside  string // key of an attribute with that name beside it
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
		fields = append(fields, layoutField{what, key, name, renamed, "attrs." + name})
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

// setTop notes the names of the fields where attributes stand beside them.
func (s *formatSettings) setTop(fields []layoutField) {
	top := false
	for i := range fields {
		top = top || fields[i].what == fieldAttrs && fields[i].name == ""
		s.nameLengths |= 1 << min(len(fields[i].name), 63)
	}
	if !top {
		s.nameLengths = 0
	}
}

// bare reports whether a field stands on the console without a name.
func (s *formatSettings) bare(f *layoutField) bool {
	if s.kind != kindConsole || f.renamed {
		return false
	}
	return f.what == fieldTime || f.what == fieldLevel || f.what == fieldMsg || f.what == slotLogger
}

// isField reports whether a field has that name, in a line where attributes
// stand beside the fields.
func (f *format) isField(name string) bool {
	return f.nameLengths&(1<<min(len(name), 63)) != 0 && f.hasField(name)
}

func (f *format) hasField(name string) bool {
	for i := range f.fields {
		if field := &f.fields[i]; field.what != fieldAttrs && field.name == name && !f.bare(field) {
			return true
		}
	}
	return false
}

// besideField returns the key of an attribute that has the name of a field.
func (f *format) besideField(name string) string {
	for i := range f.fields {
		if f.fields[i].name == name {
			return f.fields[i].beside
		}
	}
	return name
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

// inYears returns t in the format's zone; for a format of RFC 3339, which has no
// years before 0 and after 9999, the nearest instant that it can hold.
func (f *format) inYears(t time.Time) time.Time {
	in := t.In(f.zone())
	if year := in.Year(); year >= 0 && year <= 9999 || f.time != RFC3339Nano && f.time != RFC3339Milli {
		return in
	} else if year < 0 {
		return time.Date(0, 1, 1, 0, 0, 0, 0, f.zone())
	}
	return time.Date(9999, 12, 31, 23, 59, 59, 999_999_999, f.zone())
}

package rollway

import (
	"errors"
	"fmt"
	"strings"

	"github.com/rollway/rollway/internal/jsonline"
)

// layoutField is one key of a JSON line.
type layoutField struct {
	what int    // slotService to slotError, or one of the fields below
	key  string // `"name":`; "" for attributes at the top
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

// parseLayout returns the fields of JSON.Layout, nil for "", which is the
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
		fields = append(fields, layoutField{what, key})
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

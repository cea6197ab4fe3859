package normalize

import (
	"bytes"
	"cmp"
	byteorder "encoding/binary"
	"fmt"
	"slices"
	"strings"
)

// A key is a slot of the canonical line, in its order there, or tells what else to do
// with a member.
type key uint8

const (
	keyTime key = iota
	keyLevel
	keyMsg
	keyService
	keyLogger
	keySource
	keyTraceID
	keySpanID
	keyError
	keyErrorType // parts of the error, until the event ends
	keyErrorMessage
	keyErrorStack
	numParts

	keyAttrs  = numParts     // an object there is merged into attrs
	keyFields = numParts + 1 // the same, and its message is read
	keyOther  = numParts + 2
	keyRoot   = numParts + 3 // an object there has members that are read
	firstRow  = numParts + 4 // this and what is above are Keys.rows

	numSlots = keyErrorType
)

// targets are what rows lead to.
var targets = map[string]key{
	"time": keyTime, "level": keyLevel, "msg": keyMsg, "service": keyService, "logger": keyLogger, "source": keySource,
	"trace_id": keyTraceID, "span_id": keySpanID, "error": keyError,
	"error.type": keyErrorType, "error.message": keyErrorMessage, "error.stack": keyErrorStack, "members": keyAttrs,
}

// row is a part of the table of names.
type row struct {
	to     string // a slot, a part of error, or an attribute; members: of an object, to attrs
	rank   uint8
	form   manner
	names  string // separated by blanks
	beside string // one of these names must be in the event for the row to count
}

// Keys are the names under which slots, and attributes of one name, are read. They do not
// change. A nil *Keys has those of the table.
type Keys struct {
	cells    [1 << cellBits]uint16 // hash table: index in list + 1
	list     []named
	rows     []reading
	gelf     uint64 // mark of events in GELF
	numbered uint64 // mark of events whose level is a number

	belowLens [2][256]uint64 // of names that count in merged objects: a bit per length, by the first byte and by the last
}

const cellBits = 11

// named is a name that is read.
type named struct {
	ends [2]uint64 // of the name
	name string
	key  key
	low  key  // in objects that are merged
	root bool // an object there has members that are read
}

// reading is a row that is no first one.
type reading struct {
	slot   key
	attr   []byte // the attribute's name as JSON; nil: it is for a slot
	rank   uint8
	form   manner
	below  bool   // names count in merged objects too
	mark   uint64 // bit that tells that the event has such a name
	beside uint64 // it must have one of these marks; 0: it needs no mark
}

var defaultKeys = func() *Keys {
	k, err := NewKeys(nil)
	if err != nil {
		panic(err)
	}
	return k
}()

// A NameError says that the configuration names something that cannot be read so.
type NameError struct{ Slot, Message string }

func (e *NameError) Error() string { return e.Slot + ": " + e.Message }

// NewKeys returns the table with names added, by what they are read as: one of Targets.
func NewKeys(added map[string][]string) (*Keys, error) {
	k := new(Keys)
	rows := slices.Clone(names)
	for _, to := range Targets() {
		list := added[to]
		if len(list) > maxAdded {
			return nil, &NameError{to, fmt.Sprintf("%d names; at most %d can be added", len(list), maxAdded)}
		}
		for _, name := range list {
			if wrong := checkName(name, to, rows); wrong != "" {
				return nil, &NameError{to, wrong}
			}
			r := row{to: to, rank: configured, names: name}
			switch to {
			case "error":
				r.form = asError
			case "level": // HTTP's status is not a level
				r.form = asText
			}
			rows = append(rows, r)
		}
	}
	k.gelf = 1
	marks := map[string]uint64{"short_message": k.gelf} // by name
	for _, r := range rows {
		for name := range strings.FieldsSeq(r.beside) {
			if marks[name] == 0 {
				marks[name] = 1 << len(marks)
			}
		}
	}
	k.numbered = marks[ofNumber]
	for _, r := range rows {
		k.add(&r, marks)
	}
	for name := range seconds {
		k.noteBelow(name)
	}
	for i := range k.list {
		n := &k.list[i]
		if n.low = keyOther; n.key < numSlots {
			n.low = k.find([]byte(seconds[n.name])).key
		} else if n.key >= firstRow && k.row(n.key).below {
			n.low = n.key
		}
	}
	return k, nil
}

// Targets are what names may be added for, in the order of the table.
func Targets() (list []string) {
	for _, r := range names {
		if r.to != "" && r.to != "members" && !slices.Contains(list, r.to) {
			list = append(list, r.to)
		}
	}
	return list
}

// checkName returns what is wrong with a name that is to be read as to, or "".
func checkName(name, to string, rows []row) string {
	if name == "" || len(name) > maxName || strings.ContainsAny(name, " \t\r\n\"\\") {
		return fmt.Sprintf("%q is no name of a member: write 1 to %d bytes without blanks, quotes and backslashes", name, maxName)
	}
	for _, r := range rows {
		if r.beside == "" && slices.Contains(strings.Fields(r.names), name) || name == to {
			return fmt.Sprintf("%q is read as %s already: remove it", name, cmp.Or(r.to, to))
		}
	}
	return ""
}

const (
	maxName  = 64 // bytes of a name that is read
	maxAdded = 8  // names for one target
)

// add adds the names of a row. marks are bits of names that others must be beside.
func (k *Keys) add(r *row, marks map[string]uint64) {
	slot, isSlot := targets[r.to]
	if r.rank == first {
		for name := range strings.FieldsSeq(r.names) {
			if name == "fields" {
				slot = keyFields
			}
			k.put(name, slot, false)
		}
		return
	}
	s := reading{slot: keyOther, rank: r.rank, form: r.form}
	switch {
	case isSlot:
		s.slot = slot
		s.below = slot >= keyLogger && slot != keySource && slot != keyAttrs && r.beside == ""
	case r.to != "":
		s.attr, s.below = []byte(`"`+r.to+`"`), true
	}
	for name := range strings.FieldsSeq(r.beside) {
		s.beside |= marks[name]
	}
	at := -1 // in rows, of the names without a mark
	for name := range strings.FieldsSeq(r.names) {
		if s.mark = marks[name]; s.mark != 0 || at < 0 {
			k.rows = append(k.rows, s)
		}
		here := len(k.rows) - 1
		if s.below {
			k.noteBelow(name)
		}
		if s.mark == 0 {
			if at < 0 {
				at = here
			}
			here = at
		}
		k.put(name, firstRow+key(here), r.rank == configured)
	}
}

// put adds a name, again if it was read otherwise, and the objects that it may be a member of.
func (k *Keys) put(name string, to key, again bool) {
	n := k.entry(name)
	if n.key == keyOther || n.key == keyRoot || again {
		n.key = to
	}
	if strings.Contains(name, "/") || objectOf(name) != topLevel {
		return
	}
	for i := range len(name) {
		if name[i] == '.' {
			n := k.entry(name[:i])
			if n.root = true; n.key == keyOther {
				n.key = keyRoot
			}
		}
	}
}

// entry returns what is known of a name, after it was added.
func (k *Keys) entry(name string) *named {
	if n := k.find([]byte(name)); n != &unknown {
		return n
	}
	ends := endsOf([]byte(name))
	at := hash(ends)
	for k.cells[at] != 0 {
		at = (at + 1) % (1 << cellBits)
	}
	k.list = append(k.list, named{ends: ends, name: name, key: keyOther})
	k.cells[at] = uint16(len(k.list))
	return &k.list[len(k.list)-1]
}

// endsOf returns the first and the last bytes of a name, which is not empty: all of it, if it
// is not longer than 16 bytes.
func endsOf(name []byte) [2]uint64 {
	switch n := len(name); {
	case n >= 8:
		return [2]uint64{byteorder.LittleEndian.Uint64(name), byteorder.LittleEndian.Uint64(name[n-8:])}
	case n >= 4:
		return [2]uint64{uint64(byteorder.LittleEndian.Uint32(name)), uint64(byteorder.LittleEndian.Uint32(name[n-4:]))}
	default:
		return [2]uint64{uint64(name[0]) | uint64(name[n/2])<<8, uint64(name[n-1])}
	}
}

// hash returns the cell at which a name is searched.
func hash(ends [2]uint64) uint64 {
	return (ends[0] ^ ends[1]<<7) * 0x9E3779B97F4A7C15 >> (64 - cellBits)
}

var unknown = named{key: keyOther, low: keyOther}

// find returns what is known of a name.
func (k *Keys) find(name []byte) *named {
	if uint(len(name)-1) >= maxName {
		return &unknown
	}
	ends := endsOf(name)
	for at := hash(ends); ; at++ {
		c := k.cells[at%(1<<cellBits)]
		if c == 0 {
			return &unknown
		}
		if n := &k.list[c-1]; n.ends == ends && len(n.name) == len(name) && (len(name) <= 16 || n.name == string(name)) {
			return n
		}
	}
}

// noteBelow notes that a name counts in merged objects.
func (k *Keys) noteBelow(name string) {
	n := len(name)
	k.belowLens[0][name[0]] |= 1 << (n % 64)
	k.belowLens[1][name[n-1]] |= 1 << (n % 64)
}

// below is the key of a name in an object that is merged.
func (k *Keys) below(name []byte) key {
	if n := len(name); n == 0 || k.belowLens[0][name[0]]&k.belowLens[1][name[n-1]]>>(n&63)&1 == 0 {
		return keyOther
	}
	return k.find(name).low
}

// seconds are second names that count in merged objects for first ones.
var seconds = map[string]string{"error": "err", "logger": "loggerName",
	"trace_id": "traceID", "traceId": "traceID", "trace.id": "traceID",
	"span_id": "spanID", "spanId": "spanID", "span.id": "spanID"}

// row is that of a key that has one.
func (k *Keys) row(to key) *reading { return &k.rows[to-firstRow] }

// orDefault is k, or the table if there is none.
func (k *Keys) orDefault() *Keys {
	if k == nil {
		return defaultKeys
	}
	return k
}

// slotNames is what comes before a slot's value in a line.
var slotNames = [numSlots]string{
	keyMsg:     `,"msg":`,
	keyService: `,"service":`,
	keyLogger:  `,"logger":`,
	keySource:  `,"source":`,
	keyTraceID: `,"trace_id":`,
	keySpanID:  `,"span_id":`,
	keyError:   `,"error":`,
}

// String is the name that a slot has in a line; "" for other keys.
func (k key) String() string {
	switch {
	case k >= numSlots:
		return ""
	case k == keyTime:
		return "time"
	case k == keyLevel:
		return "level"
	}
	return strings.Trim(slotNames[k], `,":`)
}

// SlotOf returns the key of the canonical line whose value a member of the name
// becomes, unless it is one of the second names; "" if there is none.
func (k *Keys) SlotOf(name string) string { return k.orDefault().find([]byte(name)).key.String() }

// ReadAs is SlotOf for all names that are read, also those whose value becomes a slot's in
// some events only: rare says that in most it does not. It is the attribute's name for those
// that are read as one.
func (k *Keys) ReadAs(name string) (slot string, rare bool) {
	k = k.orDefault()
	to := k.find([]byte(name)).key
	if to < firstRow {
		return to.String(), false
	}
	r := k.row(to)
	rare = r.rank == third
	switch {
	case r.attr != nil:
		return strings.Trim(string(r.attr), `"`), rare
	case r.slot >= keyErrorType && r.slot < numParts:
		return "error." + [...]string{"type", "message", "stack"}[r.slot-keyErrorType], rare
	}
	return r.slot.String(), rare
}

// scope tells where the members of an object are looked up.
type scope uint8

const (
	topLevel     scope = iota // in the table
	belowFields               // message, and what is below
	belowContext              // the logger and level of Roarr, and what is below
	belowOthers               // errors and attributes
	belowAttrs                // not at all: a canonical line stays as it is
)

// merges reports whether an object under the key is merged into attrs.
func merges(k key) bool { return k == keyAttrs || k == keyFields }

// scopeOf is the scope of an object that is merged, by its name.
func scopeOf(k key, name []byte) scope {
	switch {
	case k == keyFields:
		return belowFields
	case string(name) == "context":
		return belowContext
	case string(name) == "attrs":
		return belowAttrs
	}
	return belowOthers
}

// objectOf is the scope of a name in the table that is looked up in one only.
func objectOf(name string) scope {
	switch {
	case name == messageInFields:
		return belowFields
	case strings.HasPrefix(name, "context."):
		return belowContext
	}
	return topLevel
}

// lookup returns the key of a name in a scope.
func (k *Keys) lookup(in scope, name []byte) key {
	switch {
	case in == topLevel:
		return k.find(name).key
	case in == belowAttrs:
		return keyOther
	case in == belowFields && string(name) == "message":
		return k.find([]byte(messageInFields)).key
	case in == belowContext && string(name) == "logLevel":
		return k.find([]byte("context.logLevel")).key
	case in == belowContext && string(name) == "namespace":
		return k.find([]byte("context.namespace")).key
	}
	return k.below(name)
}

// lookupIn is lookup for a name that is a JSON string.
func (n *Normalizer) lookupIn(in scope, raw []byte) key {
	name := raw[1 : len(raw)-1]
	if n.body.escapes && bytes.IndexByte(name, '\\') >= 0 {
		name = n.unquoted(raw)
	}
	if in == topLevel {
		return n.keys.find(name).key
	}
	return n.keys.lookup(in, name)
}

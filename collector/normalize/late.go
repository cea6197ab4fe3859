package normalize

import (
	"bytes"

	"github.com/rollway/rollway/internal/jsonwalk"
	"github.com/rollway/rollway/internal/levels"
	"github.com/rollway/rollway/internal/times"
)

// maxLate is how many members wait for the end of an event; others beyond that
// go to attrs.
const maxLate = 24

// late are the members of an event that wait for its end.
type late struct {
	list [maxLate]lateMember
	n    int
	seen uint64 // marks of names
}

type lateMember struct {
	key         key
	name, value jsonwalk.Span
}

// wait puts a member that has found no slot aside until the event's end, and
// reports whether it did; otherwise it belongs to attrs.
func (n *Normalizer) wait(k key, name, value jsonwalk.Span) bool {
	if k == keyOther || n.late.n == maxLate {
		return false
	}
	if k < firstRow && (n.body.text[value.Start] != '{' || !n.isRoot(name.Of(n.body.text))) {
		return false
	}
	n.late.list[n.late.n] = lateMember{k, name, value}
	n.late.n++
	if k >= firstRow {
		n.late.seen |= n.keys.row(k).mark
	}
	return true
}

// isRoot reports whether members are read of an object under a name, a JSON string.
func (n *Normalizer) isRoot(name []byte) bool { return n.keys.find(name[1 : len(name)-1]).root }

// settle gives the members that wait their slots, or puts them into attrs.
func (n *Normalizer) settle() {
	l := &n.late
	if at := n.ev.slots[keyLevel]; at.Len() > 0 && jsonwalk.IsDigit(n.body.text[at.Start]) {
		l.seen |= n.keys.numbered
	}
	var placed [maxLate]bool
	for rank := uint8(configured); rank <= last; rank++ {
		for i := range l.n {
			m := &l.list[i]
			if m.key < firstRow {
				continue
			}
			if k := n.keys.row(m.key); k.rank == rank && (k.beside == 0 || l.seen&k.beside != 0) {
				placed[i] = n.fillSecond(m.key, m.name, m.value)
			}
		}
	}
	if l.seen&n.keys.gelf != 0 {
		n.readGELFLevel()
	}
	for i := 0; i < l.n && n.ev.fault == ok; i++ {
		if m := &l.list[i]; !placed[i] && !n.takeParts(m) && n.ev.fault == ok {
			n.ev.fault = n.addAttr(m.name, m.value, false)
		}
	}
	l.n, l.seen = 0, 0
}

// earliest is the first second of the times that a second name may have: numbers
// under such names that are below it are more often something else.
const earliest = 100_000_000 // March 1973

// fillSecond is fill for a key that is a row.
func (n *Normalizer) fillSecond(k key, name, value jsonwalk.Span) bool {
	r := n.keys.row(k)
	raw := value.Of(n.body.text)
	if r.attr != nil {
		return n.fillAttr(r.attr, value)
	}
	if r.form == asError {
		return n.fillError(name, value)
	}
	if r.slot == keyAttrs {
		return n.mergeMembers(value)
	}
	if r.slot == keyOther || n.ev.filled&(1<<r.slot) != 0 {
		return false
	}
	switch r.form {
	case asTime:
		sec, nsec, fits := times.Parse(n.plain(raw))
		return fits && sec >= earliest && n.setTime(sec, nsec)
	case asInstant:
		sec, nsec, fits := parseInstant(raw)
		return fits && n.setTime(sec, nsec)
	case asOTel:
		level, fits := levels.ParseOTel(n.plain(raw))
		return fits && n.setLevel(level)
	case asSyslog:
		level, fits := levels.ParseSyslog(n.plain(raw))
		return fits && n.setLevel(level)
	case asTrace:
		if raw[0] == '"' && !(hasLines(raw) && n.trace(value).Traced) || raw[0] != '"' && !isFrames(raw) {
			return false
		}
	case asText:
		if raw[0] != '"' {
			return false
		}
	case asTracePath:
		return n.fill(r.slot, value) && traceInPath(raw) == 0
	}
	if r.slot >= keyErrorType {
		return n.fillPart(r.slot, name, value)
	}
	return n.fill(r.slot, value)
}

// isFrames reports whether a value is a list of frames: objects of a function and its file.
func isFrames(raw []byte) bool {
	if raw[0] != '[' {
		return false
	}
	w := jsonwalk.Elements(raw, 0)
	if !w.Next() || w.Kind() != '{' {
		return false
	}
	f, _ := frameOf(w.RawValue())
	return len(f.Func) > 0 && len(f.File) > 0
}

// traceInPath returns where the id begins in a JSON string that is a path of Google Cloud, or
// 0.
func traceInPath(raw []byte) int {
	if !bytes.HasPrefix(raw, projects) {
		return 0
	}
	i := bytes.Index(raw, tracesInPath)
	if i < 0 || bytes.IndexByte(raw[i+len(tracesInPath):], '/') >= 0 || len(raw)-i == len(tracesInPath)+1 {
		return 0
	}
	return i + len(tracesInPath)
}

var projects, tracesInPath = []byte(`"projects/`), []byte("/traces/")

// mergeMembers puts the members of an object, or of the objects in a list, where their names
// say.
func (n *Normalizer) mergeMembers(value jsonwalk.Span) bool {
	text := n.body.text
	switch text[value.Start] {
	case '{':
		for w := jsonwalk.Members(text, value.Start); n.ev.fault == ok && w.Next(); {
			k := n.lookupIn(belowOthers, w.RawName())
			if k == keyOther || !n.fillSecond(k, w.Name, w.Value) {
				n.ev.fault = n.addAttr(w.Name, w.Value, false)
			}
		}
		return true
	case '[':
		for w := jsonwalk.Elements(text, value.Start); w.Next(); {
			if w.Kind() != '{' {
				return false
			}
		}
		for w := jsonwalk.Elements(text, value.Start); w.Next(); {
			n.mergeMembers(w.Value)
		}
		return true
	}
	return false
}

// fillAttr adds an attribute under its one name, if the event has none so far.
func (n *Normalizer) fillAttr(name []byte, value jsonwalk.Span) bool {
	raw := value.Of(n.body.text)
	if !isScalar(raw) || raw[0] == 'n' || len(raw) == len(`""`) {
		return false
	}
	if found, _ := n.names.find(name[1 : len(name)-1]); found >= 0 {
		return false
	}
	n.ev.fault = n.addAttrAs(name, value)
	return true
}

// readGELFLevel reads the level of an event in GELF again, where numbers are
// those of syslog.
func (n *Normalizer) readGELFLevel() {
	at := n.ev.slots[keyLevel]
	if raw := at.Of(n.body.text); len(raw) == 1 {
		if level, known := levels.ParseSyslog(raw); known {
			n.ev.level = level
		}
	}
}

// parseInstant reads the object that Log4j writes as a time:
// {"epochSecond":1779972000,"nanoOfSecond":118000000}.
func parseInstant(raw []byte) (sec int64, nsec int, fits bool) {
	seen := 0
	for w := jsonwalk.Members(raw, 0); w.Next(); {
		value := w.Value.Of(raw)
		switch string(w.Name.Of(raw)) {
		case `"epochSecond"`:
			var part int
			if sec, part, fits = times.Unix(value); !fits || part != 0 || len(value) > 11 {
				return 0, 0, false
			}
			seen |= 1
		case `"nanoOfSecond"`:
			nanos, part, isNumber := times.Unix(value)
			if !isNumber || part != 0 || nanos < 0 || nanos > 999_999_999 {
				return 0, 0, false
			}
			nsec = int(nanos)
			seen |= 2
		default:
			return 0, 0, false
		}
	}
	return sec, nsec, seen == 3
}

package normalize

import (
	"github.com/rollway/rollway/internal/jsonwalk"
	"github.com/rollway/rollway/internal/levels"
	"github.com/rollway/rollway/internal/times"
)

// maxLate is how many members wait for the end of an event; others beyond that
// go to attrs.
const maxLate = 12

// late are the members of an event that wait for its end.
type late struct {
	list [maxLate]lateMember
	n    int
	seen uint32 // bit per key above keyOther
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
	if k < keyOther && (n.body.text[value.Start] != '{' || !hasParts(k, name.Of(n.body.text))) {
		return false
	}
	n.late.list[n.late.n] = lateMember{k, name, value}
	n.late.n++
	if k > keyOther {
		n.late.seen |= 1 << (k - keyOther)
	}
	return true
}

// settle gives the members that wait their slots, or puts them into attrs.
func (n *Normalizer) settle() {
	l := &n.late
	var placed [maxLate]bool
	for rank := uint8(2); rank <= 3; rank++ {
		for i := range l.n {
			m := &l.list[i]
			if k := &seconds[m.key]; k.rank == rank && (k.beside == 0 || l.seen&(1<<(k.beside-keyOther)) != 0) {
				placed[i] = n.fillSecond(m)
			}
		}
	}
	if l.seen&(1<<(keyShort-keyOther)) != 0 {
		n.readGELFLevel()
	}
	for i := 0; i < l.n && n.ev.fault == ok; i++ {
		if m := &l.list[i]; !placed[i] && !n.takeParts(m) {
			n.ev.fault = n.addAttr(m.name, m.value, false)
		}
	}
	l.n, l.seen = 0, 0
}

// earliest is the first second of the times that a second name may have: numbers
// under such names that are below it are more often something else.
const earliest = 100_000_000 // March 1973

// fillSecond is fill for a second name.
func (n *Normalizer) fillSecond(m *lateMember) bool {
	slot := seconds[m.key].slot
	if n.ev.filled&(1<<slot) != 0 {
		return false
	}
	raw := m.value.Of(n.body.text)
	switch m.key {
	case keyTime2:
		sec, nsec, fits := times.Parse(n.plain(raw))
		return fits && sec >= earliest && n.setTime(sec, nsec)
	case keyInstant:
		sec, nsec, fits := parseInstant(raw)
		return fits && n.setTime(sec, nsec)
	case keyLine: // elsewhere a number, of a line in a file
		if raw[0] != '"' {
			return false
		}
	case keySeverity:
		level, fits := levels.ParseOTel(n.plain(raw))
		return fits && n.setLevel(level)
	case keyPriority:
		level, fits := levels.ParseSyslog(n.plain(raw))
		return fits && n.setLevel(level)
	}
	return n.fill(slot, m.value)
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

// parts are the members of objects of the Elastic Common Schema that have a slot.
var parts = []struct {
	key    key
	object string // its name as a JSON string; "": any of the key's
	name   string
	slot   key
}{
	{keyMsg, `"log"`, `"level"`, keyLevel},
	{keyMsg, `"log"`, `"logger"`, keyLogger},
	{keyService, `"service"`, `"name"`, keyService},
	{keyTrace, "", `"id"`, keyTraceID},
	{keySpan, "", `"id"`, keySpanID},
}

// hasParts reports whether an object under a name, a JSON string, has parts.
func hasParts(k key, object []byte) bool { return slotOf(k, object, nil) != keyOther }

// slotOf returns the slot of a member of an object, or keyOther; of any member, if name
// is nil.
func slotOf(k key, object, name []byte) key {
	for i := range parts {
		p := &parts[i]
		if p.key == k && (p.object == "" || p.object == string(object)) && (name == nil || p.name == string(name)) {
			return p.slot
		}
	}
	return keyOther
}

// takeParts fills the slots that are free from the parts of an object, and puts its
// other members into attrs, as an object. It returns false if it did nothing.
func (n *Normalizer) takeParts(m *lateMember) bool {
	text, object := n.body.text, m.name.Of(n.body.text)
	if text[m.value.Start] != '{' || !hasParts(m.key, object) {
		return false
	}
	taken, others := 0, 0
	for w := jsonwalk.Members(text, m.value.Start); w.Next(); {
		if n.fill(slotOf(m.key, object, w.RawName()), w.Value) {
			taken++
		} else {
			others++
		}
	}
	if taken == 0 || others == 0 {
		return taken > 0
	}
	suffix, fault := n.uniqueSuffix(object, nil)
	if fault == ok && !n.roomFor(len(n.attrs)+m.value.Len()) {
		fault = tooLarge
	}
	if fault == ok {
		n.appendName(object, suffix)
	}
	start := len(n.attrs)
	n.attrs = append(n.attrs, '{')
	for w := jsonwalk.Members(text, m.value.Start); fault == ok && w.Next(); {
		if slot := slotOf(m.key, object, w.RawName()); slot != keyOther && n.ev.slots[slot] == w.Value {
			continue
		}
		n.attrs = append(n.attrs, w.RawName()...)
		n.attrs = append(n.attrs, ':')
		n.attrs, fault = appendValue(n.attrs, w.RawValue(), n.limits.MaxEventBytes, n.limits.MaxDepth-3)
		n.attrs = append(n.attrs, ',')
	}
	n.attrs[len(n.attrs)-1] = '}'
	n.noteNested(start, len(n.attrs))
	n.attrs = append(n.attrs, ',')
	n.ev.fault = fault
	return true
}

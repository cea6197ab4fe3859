package normalize

import (
	"github.com/go-json-experiment/json/jsontext"

	"github.com/rollway/rollway/internal/jsonwalk"
)

// part is a member of an object of the Elastic Common Schema that has a slot.
type part struct {
	name string
	slot key
}

var (
	partsOfLog     = []part{{`"level"`, keyLevel}, {`"logger"`, keyLogger}}
	partsOfService = []part{{`"name"`, keyService}}
	partsOfTrace   = []part{{`"id"`, keyTraceID}}
	partsOfSpan    = []part{{`"id"`, keySpanID}}
)

// partsOf returns what has slots in an object under a name, a JSON string.
func partsOf(k key, name []byte) []part {
	switch {
	case k == keyMsg && string(name) == `"log"`:
		return partsOfLog
	case k == keyService && string(name) == `"service"`:
		return partsOfService
	case k == keyTrace:
		return partsOfTrace
	case k == keySpan:
		return partsOfSpan
	}
	return nil
}

// takeParts fills the slots that are free from the parts of an object, and puts
// its other members into attrs, as an object. It returns false if it did
// nothing.
func (n *Normalizer) takeParts(m *lateMember) bool {
	text := n.body.text
	if len(partsOf(m.key, m.name.Of(text))) == 0 {
		return false
	}
	taken, others := n.fillParts(m)
	if taken == 0 {
		return false
	}
	if others > 0 {
		n.ev.fault = n.addOthers(m)
	}
	return true
}

// fillParts counts the members of an object that have got a slot, and the others.
func (n *Normalizer) fillParts(m *lateMember) (taken, others int) {
	text := n.body.text
	parts := partsOf(m.key, m.name.Of(text))
	for w := jsonwalk.Members(text, m.value.Start); w.Next(); {
		if slot := slotOf(w.Name.Of(text), parts); slot != keyOther && n.fill(slot, w.Value, kindOf(text[w.Value.Start])) {
			taken++
		} else {
			others++
		}
	}
	return taken, others
}

// addOthers puts the members of an object that have got no slot into attrs.
func (n *Normalizer) addOthers(m *lateMember) reason {
	text := n.body.text
	parts := partsOf(m.key, m.name.Of(text))
	name := m.name.Of(text)
	suffix, fault := n.uniqueSuffix(name)
	if fault != ok {
		return fault
	}
	n.appendName(name, suffix)
	start := len(n.attrs)
	n.attrs = append(n.attrs, '{')
	for w := jsonwalk.Members(text, m.value.Start); w.Next(); {
		if slot := slotOf(w.Name.Of(text), parts); slot != keyOther && n.ev.slots[slot] == w.Value {
			continue
		}
		n.attrs = append(n.attrs, w.Name.Of(text)...)
		n.attrs = append(n.attrs, ':')
		n.attrs, fault = appendValue(n.attrs, w.Value.Of(text), kindOf(text[w.Value.Start]), n.limits.MaxEventBytes, n.limits.MaxDepth-3)
		if fault != ok {
			return fault
		}
		n.attrs = append(n.attrs, ',')
	}
	n.attrs[len(n.attrs)-1] = '}'
	n.noteNested(jsontext.KindBeginObject, start, len(n.attrs))
	n.attrs = append(n.attrs, ',')
	return ok
}

// slotOf returns the slot that the parts have for the member, or keyOther.
func slotOf(name []byte, parts []part) key {
	for i := range parts {
		if string(name) == parts[i].name {
			return parts[i].slot
		}
	}
	return keyOther
}

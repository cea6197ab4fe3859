package normalize

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
	var s shape
	if parts := partsOf(m.key, text[m.name.start:m.name.end]); len(parts) == 0 || skipValue(text, m.value.start, 0, &s) != m.value.end {
		return false // not one, or nested too deep to be walked through
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
	parts := partsOf(m.key, text[m.name.start:m.name.end])
	for w := membersOf(text, m.value.start); w.next(); {
		if slot := w.slotIn(parts); slot != keyOther && n.fill(slot, w.value, kindOf(text[w.value.start])) {
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
	parts := partsOf(m.key, text[m.name.start:m.name.end])
	name := text[m.name.start:m.name.end]
	suffix, fault := n.uniqueSuffix(name)
	if fault != ok {
		return fault
	}
	n.appendName(name, suffix)
	n.attrs = append(n.attrs, '{')
	for w := membersOf(text, m.value.start); w.next(); {
		if slot := w.slotIn(parts); slot != keyOther && n.ev.slots[slot] == w.value {
			continue
		}
		n.attrs = append(n.attrs, text[w.name.start:w.name.end]...)
		n.attrs = append(n.attrs, ':')
		n.attrs, fault = appendValue(n.attrs, text[w.value.start:w.value.end], kindOf(text[w.value.start]), n.limits.MaxEventBytes, n.limits.MaxDepth-3)
		if fault != ok {
			return fault
		}
		n.attrs = append(n.attrs, ',')
	}
	n.attrs[len(n.attrs)-1] = '}'
	n.attrs = append(n.attrs, ',')
	return ok
}

// walker goes through the members of an object that skipValue has been through.
type walker struct {
	text        []byte
	at          int // where the next one begins
	name, value span
}

// membersOf begins with the object at text[start].
func membersOf(text []byte, start int) walker {
	return walker{text: text, at: skipSpace(text, start+1)}
}

// next goes to the next member, if there is one.
func (w *walker) next() bool {
	var s shape
	end, at := s.skipName(w.text, w.at)
	if at < 0 {
		return false
	}
	w.name = span{w.at, end}
	if end = skipValue(w.text, at, 0, &s); end < 0 {
		return false
	}
	w.value = span{at, end}
	if w.at = skipSpace(w.text, end); w.at < len(w.text) && w.text[w.at] == ',' {
		w.at = skipSpace(w.text, w.at+1)
	}
	return true
}

// slotIn returns the slot that the parts have for the member, or keyOther.
func (w *walker) slotIn(parts []part) key {
	for i := range parts {
		if string(w.text[w.name.start:w.name.end]) == parts[i].name {
			return parts[i].slot
		}
	}
	return keyOther
}

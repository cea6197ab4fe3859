package normalize

import (
	"bytes"
	"math/bits"
	"unicode/utf8"

	"github.com/rollway/rollway/collector/textlog"
	"github.com/rollway/rollway/internal/jsonline"
	"github.com/rollway/rollway/internal/jsonwalk"
	"github.com/rollway/rollway/internal/levels"
)

// A payload is the message of an event that is an event itself: what a program has written
// as an object of JSON or as logfmt, and something else has sent as a line. It is opened:
// its members are read as if they had been sent as members of the event.
//
// One that has two of time, level and message counts before the event around it, whose
// slots go to attrs under their names if they differ. Any other one is opened if it says
// nothing that the event says, too: it may be something that a program has printed. logfmt
// without two of them is text.
//
// What cannot be opened without a loss stays as it is: an empty object, one in which there
// is half of a surrogate pair, and one with which the event would break a limit.

// maxOpened is how many payloads that are in each other are opened.
const maxOpened = 3

// whole are the slots that tell an event from what a program has printed.
const whole = 1<<keyTime | 1<<keyLevel | 1<<keyMsg

// isWhole reports whether the event has two of them.
func (ev *event) isWhole() bool { return bits.OnesCount16(ev.filled&whole) >= 2 }

// form is how a payload is written.
type form byte

const (
	noForm form = iota
	jsonForm
	logfmtForm
	criForm    // what a container runtime has put before one of these
	parsedForm // by a configuration
)

var cee = []byte("@cee:")

const blanks = " \t\r\n"

// formOf tells by the beginning and the end of a text, or of what is between the quotes of
// a JSON string, whether it may be a payload, and which part of it.
func formOf(text []byte, escaped bool) (form, []byte) {
	text = trimBlanks(text, escaped)
	if bytes.HasPrefix(text, cee) { // of syslog
		text = trimBlanks(text[len(cee):], escaped)
	}
	switch {
	case len(text) == 0:
		return noForm, nil
	case text[0] == '{':
	case textlog.IsLogfmt(text):
		return logfmtForm, text
	case jsonwalk.IsDigit(text[0]) && textlog.CRI(text) > 0:
		if form, _ := formOf(text[textlog.CRI(text):], escaped); form != noForm {
			return criForm, text
		}
		return noForm, nil
	default:
		return noForm, nil
	}
	end := len(text)
	for text[end-1] != '}' {
		switch c := text[end-1]; {
		case jsonwalk.IsSpace(c):
			end--
		case escaped && end > 2 && text[end-2] == '\\' && isBlankEscape(c):
			end -= 2
		default:
			return noForm, nil
		}
	}
	return jsonForm, text[:end]
}

// trimBlanks takes white space off the beginning of a text, and escapes of it.
func trimBlanks(text []byte, escaped bool) []byte {
	for i := 0; ; {
		switch {
		case i < len(text) && jsonwalk.IsSpace(text[i]):
			i++
		case escaped && i+1 < len(text) && text[i] == '\\' && isBlankEscape(text[i+1]):
			i += 2
		default:
			return text[i:]
		}
	}
}

// isBlankEscape reports whether c is white space after a backslash.
func isBlankEscape(c byte) bool { return c == 'n' || c == 'r' || c == 't' }

// attempt is what is needed to take back what was read of a payload.
type attempt struct {
	ev                   event
	attrs, names, nested int
}

// attempt notes what takeBack needs.
func (n *Normalizer) attempt() {
	a := &n.before
	a.ev, a.attrs, a.names, a.nested = n.ev, len(n.attrs), n.names.len(), len(n.known.Nested)
}

func (n *Normalizer) takeBack() {
	a := &n.before
	n.ev, n.attrs, n.known.Nested = a.ev, n.attrs[:a.attrs], n.known.Nested[:a.nested]
	n.late.n, n.late.seen, n.ready = 0, 0, jsonwalk.Span{}
	n.names.truncate(a.names)
}

// value returns the end of the value of a member. Of what looks like JSON in a message that
// is not long it takes the text at once, for open.
func (n *Normalizer) value(c *jsonwalk.Checker, in scope, k key, at int) (end int) {
	text := n.body.text
	if in == topLevel && (k == keyMsg || k >= firstRow && n.keys.row(k).slot == keyMsg) && bytes.HasPrefix(text[at:], escapedObject) && !n.limits.Text.Closed && !n.isOpened() {
		var exact bool
		if n.opened, end, exact = jsonwalk.AppendChecked(n.opened[:0], text[:min(len(text), at+freeScratch/2)], at); exact {
			for jsonwalk.IsSpace(n.opened[len(n.opened)-1]) { // it begins with a brace
				n.opened = n.opened[:len(n.opened)-1]
			}
			if n.opened[len(n.opened)-1] == '}' {
				n.ready = jsonwalk.Span{Start: at, End: end}
			}
			return end
		}
	}
	return c.Value(text, at)
}

// escapedObject is how an object begins that is in a string.
var escapedObject = []byte(`"{\"`)

// openMessage opens the message of an event that was read to its end, and what is in it.
// If it does, body.text is memory of the Normalizer.
func (n *Normalizer) openMessage() {
	for i := 0; i < maxOpened && !n.ev.shut && !n.limits.Text.Closed && n.ev.filled&(1<<keyMsg) != 0; i++ {
		raw := n.ev.slots[keyMsg].Of(n.body.text)
		if raw[0] != '"' || raw[1] >= 'A' && raw[1] <= 'Z' && !textlog.IsLogfmt(raw[1:]) {
			return
		}
		form, part := jsonForm, n.opened
		if n.ready.Len() == 0 || n.ready != n.ev.slots[keyMsg] {
			form, part = formOf(raw[1:len(raw)-1], true)
		}
		if form == noForm || !n.open(form, part) {
			return
		}
	}
}

// open opens a payload, a part of the message.
func (n *Normalizer) open(form form, part []byte) bool {
	if !n.roomFor(len(n.attrs) + n.lineSize() + len(part)) {
		return false
	}
	n.work += uint(len(part))
	n.attempt()
	around, sent, escapes := n.ev, n.body.text, n.body.escapes
	around.filled &^= 1 << keyMsg
	at, end, exact := 0, 0, true
	if form == jsonForm && n.ready.Len() > 0 && n.ready == n.ev.slots[keyMsg] {
		end = len(n.opened)
		n.keepSlots(&around, end)
	} else {
		n.keepSlots(&around, 0)
		at = len(n.opened)
		exact = n.unpack(form, part)
		end = len(n.opened)
	}
	n.ready = jsonwalk.Span{}
	if exact && n.readPayload(at, end, form, &around) && n.lineSize() <= n.limits.MaxEventBytes {
		n.failure.value = n.failure.value[:0] // it is in its slot
		n.gatherError()
		return n.ev.fault == ok
	}
	n.takeBack()
	n.body.text, n.body.escapes = sent, escapes
	return false
}

// addParsed adds an object that a configuration has found in the message, or that is all
// of it, to the event as it was before.
func (n *Normalizer) addParsed(object []byte, all bool) {
	sent, escapes := n.body.text, n.body.escapes
	n.takeBack()
	if n.failure.inMessage { // which is read again
		n.failure.value, n.failure.inMessage = n.failure.value[:0], false
	}
	if !n.roomFor(len(n.attrs) + n.lineSize() + len(object)) {
		return
	}
	around := n.ev
	if all {
		around.filled &^= 1 << keyMsg
	}
	n.keepSlots(&around, 0)
	at := len(n.opened)
	n.opened = append(n.opened, object...)
	if !n.readPayload(at, len(n.opened), parsedForm, &around) || n.lineSize() > n.limits.MaxEventBytes {
		n.takeBack()
		n.body.text, n.body.escapes = sent, escapes
		return
	}
	n.failure.value = n.failure.value[:0]
	n.gatherError()
}

// isOpened reports whether a payload of the event was opened: body.text is n.opened then.
func (n *Normalizer) isOpened() bool {
	return len(n.opened) > 0 && len(n.body.text) > 0 && &n.opened[0] == &n.body.text[0]
}

// keepSlots adds to the first bytes of n.opened the texts of an event's slots, unless they
// are there already.
func (n *Normalizer) keepSlots(ev *event, first int) {
	if n.isOpened() {
		if len(n.failure.value) > 0 {
			n.keepError(ev)
			n.body.text = n.opened
		}
		return
	}
	n.opened = n.opened[:first]
	ev.slots[keyTime], ev.slots[keyLevel] = jsonwalk.Span{}, jsonwalk.Span{}
	for m := ev.filled >> keyMsg << keyMsg; m != 0; m &= m - 1 {
		slot := &ev.slots[bits.TrailingZeros16(m)]
		start := len(n.opened)
		n.opened = append(n.opened, slot.Of(n.body.text)...)
		*slot = jsonwalk.Span{Start: start, End: len(n.opened)}
	}
	if len(n.failure.value) > 0 {
		n.keepError(ev)
	}
}

// keepError makes an error that is not as it was sent the text of its slot.
func (n *Normalizer) keepError(ev *event) {
	start := len(n.opened)
	n.opened = append(n.opened, n.failure.value...)
	ev.slots[keyError] = jsonwalk.Span{Start: start, End: len(n.opened)}
}

// unpack appends a payload, a part of a JSON string, to n.opened as an object.
func (n *Normalizer) unpack(form form, part []byte) (exact bool) {
	switch form {
	case jsonForm:
		n.opened, exact = jsonwalk.AppendExact(n.opened, part)
		return exact
	case criForm:
		at := textlog.CRI(part)
		time, stream := bytes.IndexByte(part, ' '), len("stdout")
		n.opened = append(append(n.opened, `{"time":"`...), part[:time]...)
		n.opened = append(append(n.opened, `","stream":"`...), part[time+1:time+1+stream]...)
		n.opened = append(append(append(n.opened, `","log":"`...), part[at:]...), `"}`...)
		return true
	}
	if n.unquote, exact = jsonwalk.AppendExact(n.unquote[:0], part); exact {
		n.opened, exact = textlog.AppendLogfmt(n.opened, bytes.TrimRight(n.unquote, blanks))
	}
	return exact
}

// readPayload reads the object that is n.opened[at:end].
func (n *Normalizer) readPayload(at, end int, form form, around *event) bool {
	n.ev, n.failure.names[0] = event{start: around.start}, jsonwalk.Span{}
	n.body.text, n.body.escapes = n.opened, bytes.IndexByte(n.opened, '\\') >= 0
	if !n.readObject(at, end) {
		return false
	}
	clash := n.ev.filled & around.filled
	switch {
	case form == parsedForm, n.ev.isWhole():
	case form == logfmtForm || clash != 0:
		return false
	}
	for m := around.filled; m != 0; m &= m - 1 {
		if k := key(bits.TrailingZeros16(m)); clash&(1<<k) != 0 {
			n.displace(k, around)
		} else {
			n.ev.slots[k] = around.slots[k]
		}
	}
	if n.ev.filled&(1<<keyTime) == 0 {
		n.ev.sec, n.ev.nsec = around.sec, around.nsec
	}
	if n.ev.filled&(1<<keyLevel) == 0 {
		n.ev.level = around.level
	}
	n.ev.filled |= around.filled
	return n.ev.fault == ok
}

// readObject reads the members of the object body.text[at:end] as those of the event. An
// empty one is not read.
func (n *Normalizer) readObject(at, end int) bool {
	text := n.body.text
	if first := jsonwalk.SkipSpace(text, at+1); first >= end || text[first] == '}' {
		return false
	}
	n.inner = 1
	read := n.readMembers(at+1, topLevel, 1)
	if n.inner = 0; read != end || n.ev.fault != ok {
		return false
	}
	if n.late.n > 0 {
		n.settle()
	}
	return n.ev.fault == ok
}

// displace puts the value that the event around a payload has for a slot into attrs,
// unless the payload has the same.
func (n *Normalizer) displace(k key, around *event) {
	text := n.opened
	start := len(text)
	text = jsonline.AppendString(text, k.String())
	name := jsonwalk.Span{Start: start, End: len(text)}
	value := around.slots[k]
	switch k {
	case keyTime:
		if n.ev.sec == around.sec && n.ev.nsec == around.nsec {
			return
		}
		text = append(jsonline.AppendUnix(append(text, '"'), around.sec, around.nsec), '"')
	case keyLevel:
		if n.ev.level == around.level {
			return
		}
		text = append(levels.Append(append(text, '"'), around.level), '"')
	default:
		if bytes.Equal(value.Of(text), n.ev.slots[k].Of(text)) {
			return
		}
	}
	if k < keyMsg {
		value = jsonwalk.Span{Start: name.End, End: len(text)}
	}
	n.opened, n.body.text = text, text
	if n.ev.fault == ok {
		n.ev.fault = n.addAttr(name, value, false)
	}
}

// Message is a line as its program has written it. It is the message; but a payload in it
// is opened at once, so that it counts before what follows.
func (b *Builder) Message(line []byte) {
	if !b.opens(line) {
		b.Slot(keyMsg)
		b.String(line)
	}
}

// opens opens a line, if it is a payload.
func (b *Builder) opens(line []byte) bool {
	n := b.n
	form, part := formOf(line, false)
	if form == noForm || form == criForm || n.limits.Text.Closed || n.ev.fault != ok || !utf8.Valid(part) ||
		len(part) > spaced*n.limits.MaxEventBytes || !n.roomFor(len(b.text)+len(part)) {
		return false
	}
	n.work += uint(len(part))
	n.attempt()
	start, is := len(b.text), true
	if form == jsonForm {
		b.text = append(b.text, part...)
	} else {
		b.text, is = textlog.AppendLogfmt(b.text, bytes.TrimRight(part, blanks))
	}
	n.body.text, n.body.escapes = b.text, true // part may have some
	if is && n.readObject(start, len(b.text)) && (form == jsonForm || n.ev.isWhole()) {
		return true
	}
	n.takeBack()
	n.ev.shut = true
	b.text = b.text[:start]
	return false
}

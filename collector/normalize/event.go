package normalize

import (
	"bytes"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/rollway/rollway/internal/jsonline"
	"github.com/rollway/rollway/internal/jsonwalk"
	"github.com/rollway/rollway/internal/levels"
)

// readEvent reads one value, which should be an object, and appends its
// canonical line or rejects it. The error is one of syntax.
func (n *Normalizer) readEvent(dst *Batch) error {
	if kind := n.dec.PeekKind(); kind != jsontext.KindBeginObject {
		v, err := n.dec.ReadValue()
		if err != nil {
			return noEOF(err)
		}
		detail := ""
		if n.describes(dst) {
			detail = fmt.Sprintf("event %d is %s, expected an object", dst.events()-n.body.first, kindName(kind))
		}
		n.add(dst, notObject, n.offset()-len(v), detail, v)
		return nil
	}
	if _, err := n.dec.ReadToken(); err != nil {
		return err
	}
	n.beginEvent(dst, n.offset()-1)
	depth := n.dec.StackDepth()
	if n.ev.fault == ok {
		if err := n.readMembers(topLevel); err != nil {
			return err
		}
	}
	if err := n.skipTo(depth - 1); err != nil {
		return err
	}
	n.endEvent(dst, n.offset())
	return nil
}

// beginEvent begins the event that starts at body.text[start].
func (n *Normalizer) beginEvent(dst *Batch, start int) {
	n.ev = event{start: start}
	n.newEvent()
	if dst.events()-n.body.first >= n.limits.MaxEvents {
		n.ev.fault = tooManyEvents
	}
}

// endEvent appends the canonical line of the event that ends at body.text[end],
// or rejects it.
func (n *Normalizer) endEvent(dst *Batch, end int) {
	ev := &n.ev
	ev.faultAt = ev.start
	if n.body.dirty && ev.fault == ok {
		raw := n.body.text[ev.start:end]
		if !utf8.Valid(raw) {
			ev.fault = invalidUTF8
			at := firstInvalid(raw)
			ev.faultAt, ev.got = ev.start+at, int(raw[at])
		}
	}
	if ev.fault == ok {
		n.appendLine(dst)
	}
	if ev.fault != ok {
		n.add(dst, ev.fault, ev.faultAt, n.explain(dst, ev.fault), n.body.text[ev.start:end])
	}
}

// readMembers reads the members of the object whose '{' was read, and its '}'.
// It stops early at a fault of the event. At the top of an event the known
// keys fill their slots; everything else goes to attrs.
func (n *Normalizer) readMembers(in scope) error {
	for at := n.offset(); ; {
		if !n.nameAt(at) {
			if kind := n.dec.PeekKind(); kind == jsontext.KindEndObject || kind == jsontext.KindInvalid {
				_, err := n.dec.ReadToken()
				return noEOF(err)
			}
		}
		v, err := n.dec.ReadValue()
		if err != nil {
			return noEOF(err)
		}
		at = n.offset()
		name := jsonwalk.Span{Start: at - len(v), End: at}
		key := n.lookupIn(in, v)
		if merges(key) && n.dec.PeekKind() == jsontext.KindBeginObject {
			if _, err := n.dec.ReadToken(); err != nil {
				return noEOF(err)
			}
			if err := n.readMembers(below(key)); err != nil {
				return err
			}
			at = n.offset()
		} else {
			v, err := n.dec.ReadValue()
			if err != nil {
				return noEOF(err)
			}
			at = n.offset()
			value := jsonwalk.Span{Start: at - len(v), End: at}
			kind := kindOf(v[0])
			n.takeMember(key, name, value, kind, scalar(kind) && value.Start == name.End+len(`:`))
		}
		if n.ev.fault != ok {
			return nil
		}
	}
}

// takeMember puts a member where it belongs; compact is that of addAttr.
func (n *Normalizer) takeMember(key key, name, value jsonwalk.Span, kind jsontext.Kind, compact bool) {
	if value.End-value.Start > n.short {
		if n.ev.fault = n.overlong(kind, value.Of(n.body.text)); n.ev.fault != ok {
			return
		}
	}
	if key < numSlots && n.fill(key, value, kind) {
		return
	}
	if key == keyOther || !n.wait(key, name, value, kind) {
		n.ev.fault = n.addAttr(name, value, kind, compact)
	}
}

// nameAt reports whether a string begins where the decoder is, at offset at in
// body.text, or behind the comma there: in an object, a name. False says nothing.
func (n *Normalizer) nameAt(at int) bool {
	text := n.body.text
	return at+1 < len(text) && (text[at] == '"' || text[at] == ',' && text[at+1] == '"')
}

// skipTo reads on until the decoder is depth levels deep.
func (n *Normalizer) skipTo(depth int) error {
	for n.dec.StackDepth() > depth {
		var err error
		switch n.dec.PeekKind() {
		case jsontext.KindEndObject, jsontext.KindEndArray, jsontext.KindInvalid:
			_, err = n.dec.ReadToken()
		default:
			err = n.dec.SkipValue()
		}
		if err != nil {
			return noEOF(err)
		}
	}
	return nil
}

// offset is the end of what was read last, in body.text.
func (n *Normalizer) offset() int { return int(n.dec.InputOffset()) }

// fill puts a value into the slot of its key; false if the slot is taken or
// cannot hold the value.
func (n *Normalizer) fill(key key, value jsonwalk.Span, kind jsontext.Kind) bool {
	ev := &n.ev
	if key >= numSlots || ev.filled&(1<<key) != 0 {
		return false
	}
	raw := value.Of(n.body.text)
	isString := kind == jsontext.KindString
	fits := isString
	switch key {
	case keyTime:
		if ev.sec, ev.nsec, fits = n.times.Parse(n.plain(raw, kind)); !fits {
			return false
		}
	case keyLevel:
		if ev.level, fits = levels.ParseAny(n.plain(raw, kind)); !fits {
			return false
		}
	case keyMsg:
		fits = isString || kind == jsontext.KindNumber || kind == jsontext.KindTrue || kind == jsontext.KindFalse
	case keySource:
		fits = isString || kind == jsontext.KindBeginObject
	case keyError:
		fits = true
	}
	if fits {
		ev.slots[key] = value
		ev.filled |= 1 << key
	}
	return fits
}

// plain returns the text of a string or a number, and nothing for other kinds.
// It is valid until the next call.
func (n *Normalizer) plain(raw []byte, kind jsontext.Kind) []byte {
	switch kind {
	case jsontext.KindNumber:
		return raw
	case jsontext.KindString:
		return n.unquoted(raw)
	}
	return nil
}

// unquoted returns the text of a JSON string, valid until the next call.
func (n *Normalizer) unquoted(raw []byte) []byte {
	if !n.body.escapes || bytes.IndexByte(raw, '\\') < 0 {
		return raw[1 : len(raw)-1]
	}
	n.unquote = jsonwalk.AppendText(n.unquote[:0], raw[1:len(raw)-1])
	return n.unquote
}

// addAttr appends a member to attrs. compact tells that it is already as it
// belongs there: without white space, and not nested too deep.
func (n *Normalizer) addAttr(name, value jsonwalk.Span, kind jsontext.Kind, compact bool) reason {
	text := n.body.text
	raw := name.Of(text)
	suffix, fault := n.uniqueSuffix(raw)
	if fault != ok {
		return fault
	}
	if len(suffix) == 0 && compact && len(n.attrs)+value.End-name.Start <= n.limits.MaxEventBytes {
		n.attrs = append(n.attrs, text[name.Start:value.End]...)
		n.noteNested(kind, len(n.attrs)-value.Len(), len(n.attrs))
		n.attrs = append(n.attrs, ',')
		return ok
	}
	n.appendName(raw, suffix)
	start := len(n.attrs)
	n.attrs, fault = appendValue(n.attrs, value.Of(text), kind, n.limits.MaxEventBytes, n.limits.MaxDepth-2)
	n.noteNested(kind, start, len(n.attrs))
	n.attrs = append(n.attrs, ',')
	return fault
}

// noteNested notes the value attrs[start:end] if it is an object or array.
func (n *Normalizer) noteNested(kind jsontext.Kind, start, end int) {
	if n.enricher != nil && !scalar(kind) {
		n.known.Nested = append(n.known.Nested, jsonwalk.Span{Start: start, End: end})
	}
}

// uniqueSuffix counts the name raw of a member of attrs, and returns what makes
// it the only one there.
func (n *Normalizer) uniqueSuffix(raw []byte) ([]byte, reason) {
	if n.names.len() >= n.limits.MaxFields {
		return nil, tooManyFields
	}
	n.ev.got = len(raw) - len(`""`)
	if n.ev.got > n.limits.MaxKeyBytes {
		return nil, keyTooLong
	}
	suffix := n.names.add(n.unquoted(raw))
	if n.ev.got += len(suffix); n.ev.got > n.limits.MaxKeyBytes {
		return nil, keyTooLong
	}
	return suffix, ok
}

func (n *Normalizer) appendName(raw, suffix []byte) {
	n.attrs = append(n.attrs, raw[:len(raw)-1]...)
	n.attrs = append(n.attrs, suffix...)
	n.attrs = append(n.attrs, `":`...)
}

// appendLine appends the canonical line of the event, or sets its fault.
func (n *Normalizer) appendLine(dst *Batch) {
	ev := &n.ev
	if n.late.n > 0 {
		if n.settle(); ev.fault != ok {
			return
		}
	}
	start := len(dst.Lines)
	limit := start + n.limits.MaxEventBytes
	if ev.filled&(1<<keyTime) == 0 {
		ev.sec, ev.nsec = n.body.received.Unix(), n.body.received.Nanosecond()
	} else {
		n.doubtTime()
	}
	if n.defaults != nil {
		n.fillDefaults()
	}
	nested := len(n.known.Nested) // in attrs
	filled := ev.filled | n.defaulted
	line := append(dst.Lines, `{"time":"`...)
	line = jsonline.AppendUnix(line, ev.sec, ev.nsec)
	line = append(line, `","level":"`...)
	line = levels.Append(line, ev.level)
	line = append(line, '"')
	for key := keyMsg; key < numSlots; key++ {
		if filled&(1<<key) == 0 {
			continue
		}
		line = append(line, slotNames[key]...)
		value := len(line) - start
		if line = n.appendSlot(line, key, limit); ev.fault != ok {
			dst.Lines = line[:start]
			return
		}
		n.known.slots[key] = jsonwalk.Span{Start: value, End: len(line) - start}
	}
	for _, key := range [...]Slot{keySource, keyError} {
		if at := n.known.slots[key]; filled&(1<<key) != 0 {
			n.noteNested(kindOf(line[start+at.Start]), at.Start, at.End)
		}
	}
	if len(n.attrs) > 0 {
		line = append(line, `,"attrs":{`...)
		for i := range n.known.Nested[:nested] {
			n.known.Nested[i].Start += len(line) - start
			n.known.Nested[i].End += len(line) - start
		}
		line = append(line, n.attrs[:len(n.attrs)-1]...)
		line = append(line, '}')
	}
	line = append(line, '}')
	if len(line) > limit {
		ev.fault = tooLarge
		dst.Lines = line[:start]
		return
	}
	if n.enricher != nil {
		if line = n.finish(dst, line, start, filled); line == nil {
			dst.Lines = dst.Lines[:start]
			return
		}
	}
	dst.Lines = append(line, '\n')
	dst.addTime(ev.sec, ev.nsec)
	dst.Records++
	if len(dst.Lines) > dst.free {
		dst.fit()
	}
}

// appendSlot appends the value of a slot, or that of defaults, or sets the event's
// fault. The line may not become longer than limit.
func (n *Normalizer) appendSlot(line []byte, key key, limit int) []byte {
	if n.ev.filled&(1<<key) == 0 {
		return append(line, n.defaults.slots[key]...)
	}
	raw := n.ev.slots[key].Of(n.body.text)
	kind := jsontext.Kind(raw[0])
	if key == keyMsg && kind != jsontext.KindString {
		line = append(line, '"')
		line = append(line, raw...)
		return append(line, '"')
	}
	if size := idSize(key); size > 0 {
		if line, again := appendID(line, n.unquoted(raw), size); again {
			return line
		}
	}
	line, n.ev.fault = appendValue(line, raw, kind, limit, n.limits.MaxDepth-1)
	return line
}

// finish has the enricher go over line[start:] and returns line with what came
// of it, or nil if there is no line to be stored.
func (n *Normalizer) finish(dst *Batch, line []byte, start int, filled uint16) []byte {
	k := &n.known
	k.Level, k.filled, k.names = n.ev.level, filled, &n.names
	out, dropped := n.enricher.Finish(line[start:], k, &n.scratch)
	if dropped != "" {
		dst.drop(dropped)
		n.dropped = true
		return nil
	}
	if &out[0] == &line[start] {
		line = line[:start+len(out)]
	} else {
		line = append(line[:start], out...)
	}
	if len(line)-start > n.limits.MaxEventBytes {
		n.ev.fault = tooLarge
		return nil
	}
	return line
}

// doubtTime marks an event whose time is far from when it was received.
func (n *Normalizer) doubtTime() {
	received, ahead := n.body.received, n.ev.sec-n.body.received.Unix() // neither is far enough from 1970 to overflow
	suspect := ""
	switch {
	case n.limits.MaxFuture >= 0 && ahead > int64(n.limits.MaxFuture/time.Second):
		suspect = "future"
	case n.limits.MaxPast >= 0 && -ahead > int64(n.limits.MaxPast/time.Second):
		suspect = "past"
	default:
		return
	}
	if found, _ := n.names.find(timeSuspect); found >= 0 {
		return
	}
	n.names.add(timeSuspect)
	n.attrs = append(n.attrs, `"time_suspect":"`...)
	n.attrs = append(n.attrs, suspect...)
	n.attrs = append(n.attrs, `","received`...)
	n.attrs = append(n.attrs, n.names.add(receivedName)...)
	n.attrs = append(n.attrs, `":"`...)
	n.attrs = jsonline.AppendTime(n.attrs, received)
	n.attrs = append(n.attrs, `",`...)
}

var timeSuspect, receivedName = []byte("time_suspect"), []byte("received")

func kindName(kind jsontext.Kind) string {
	switch kind {
	case jsontext.KindBeginArray:
		return "an array"
	case jsontext.KindNumber:
		return "a number"
	case jsontext.KindString:
		return "a string"
	case jsontext.KindNull:
		return "null"
	default:
		return "a boolean"
	}
}

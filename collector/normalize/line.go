package normalize

import (
	"log/slog"
	"math/bits"
	"time"

	"github.com/rollway/rollway/internal/jsonline"
	"github.com/rollway/rollway/internal/jsonwalk"
	"github.com/rollway/rollway/internal/levels"
)

// appendLine appends the canonical line of the event, or sets its fault.
func (n *Normalizer) appendLine(dst *Batch) {
	if n.late.n > 0 {
		if n.settle(); n.ev.fault != ok {
			return
		}
	}
	if n.gatherError(); n.ev.fault != ok {
		return
	}
	text, escapes := n.body.text, n.body.escapes
	if n.openMessage(); n.ev.fault != ok {
		n.body.text, n.body.escapes = text, escapes
		return
	}
	n.parsed = n.enricher == nil
	n.writeLine(dst)
	n.body.text, n.body.escapes = text, escapes
}

// writeLine is appendLine for an event that was read whole.
func (n *Normalizer) writeLine(dst *Batch) {
	ev := &n.ev
	if !n.parsed {
		n.attempt()
	}
	n.readText()
	n.readTrace()
	if ev.filled&errorBit != 0 && n.failed() {
		if ev.filled&(1<<keyLevel) == 0 {
			n.setLevel(slog.LevelError)
		}
		n.addFingerprint()
	}
	if ev.filled&(1<<keyTime) == 0 {
		ev.sec, ev.nsec = n.body.received.Unix(), n.body.received.Nanosecond()
	} else {
		n.doubtTime()
	}
	if n.defaults != nil {
		n.fillDefaults()
	}
	filled := (ev.filled | n.defaulted) & (1<<numSlots - 1)
	if ev.filled&(1<<keyService) == 0 {
		if n.nameService(); n.service.Len() > 0 {
			filled |= 1 << keyService
		}
	}
	nested := len(n.known.Nested) // in attrs
	if !dst.fits(n.lineSize()) {
		return
	}
	start := len(dst.Lines)
	limit := start + n.limits.MaxEventBytes
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
		if at := n.known.slots[key]; n.enricher != nil && filled&(1<<key) != 0 && !isScalar(line[start+at.Start:]) {
			n.known.Nested = append(n.known.Nested, at)
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
	if k := &n.known; n.enricher != nil {
		k.Level, k.filled, k.names = ev.level, filled, &n.names
	}
	if !n.parsed {
		n.parsed = true
		if object, all := n.enricher.Parse(line[start:], &n.known, &n.scratch); object != nil {
			n.addParsed(object, all)
			dst.Lines = line[:start]
			n.writeLine(dst)
			return
		}
	}
	if n.enricher != nil {
		if line = n.finish(dst, line, start); line == nil {
			return
		}
	}
	dst.Lines = append(line, '\n')
	dst.addTime(ev.sec, ev.nsec)
	dst.Records++
}

// lineSize is no less than the length of the line of the event.
func (n *Normalizer) lineSize() int {
	const names = 256 // of slots, with time, level, and ids in their longer form
	size := names + len(n.attrs) + n.service.Len() + len(n.failure.value)
	for m := n.ev.filled & (1<<numSlots - 1) >> keyMsg << keyMsg; m != 0; m &= m - 1 {
		size += n.ev.slots[bits.TrailingZeros16(m)].Len()
	}
	for m := n.defaulted &^ n.ev.filled; m != 0; m &= m - 1 {
		size += len(n.defaults.slots[bits.TrailingZeros16(m)])
	}
	return size
}

// appendSlot appends the value of a slot, or that of defaults, or sets the event's
// fault. The line may not become longer than limit.
func (n *Normalizer) appendSlot(line []byte, key key, limit int) []byte {
	switch {
	case n.ev.filled&(1<<key) != 0:
	case key == keyService && n.service.Len() > 0:
		line = append(append(line, '"'), n.service.Of(n.attrs)...)
		return append(line, '"')
	default:
		return append(line, n.defaults.slots[key]...)
	}
	raw := n.ev.slots[key].Of(n.body.text)
	if key == keyError && len(n.failure.value) > 0 {
		raw = n.failure.value
	}
	if key == keyMsg && raw[0] != '"' {
		line = append(line, '"')
		line = append(line, raw...)
		return append(line, '"')
	}
	if size := idSize(key); size > 0 && len(raw) <= maxPlain {
		if i := traceInPath(raw); i > 0 {
			return append(append(line, '"'), raw[i:]...)
		}
		if line, again := appendID(line, n.unquoted(raw), size); again {
			return line
		}
	}
	line, n.ev.fault = appendValue(line, raw, limit, n.limits.MaxDepth-1)
	return line
}

// finish has the enricher go over line[start:] and returns line with what came
// of it, or nil if nothing is to be stored.
func (n *Normalizer) finish(dst *Batch, line []byte, start int) []byte {
	out, dropped := n.enricher.Finish(line[start:], &n.known, &n.scratch)
	if dropped != "" {
		dst.drop(dropped)
		n.dropped = true
		return nil
	}
	switch {
	case len(out) > n.limits.MaxEventBytes:
		n.ev.fault = tooLarge
		return nil
	case &out[0] == &line[start] && start+len(out) < cap(line):
		return line[:start+len(out)]
	case !dst.fits(len(out) + 1): // which may move Lines, to where start is another
		return nil
	}
	return append(dst.Lines, out...)
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

// appendValue appends a valid JSON value without the white space between its
// tokens. dst may not become longer than limit, the value may not nest more
// than depth levels.
func appendValue(dst, v []byte, limit, depth int) ([]byte, reason) {
	start, level, end := 0, 0, len(v)
	if isScalar(v) {
		end = 0
	}
	for i := 0; i < end; i++ {
		switch v[i] {
		case '"':
			after, _ := jsonwalk.SkipString(v, i)
			i = after - 1
		case '{', '[':
			if level++; level > depth {
				return dst, tooDeep
			}
		case '}', ']':
			level--
		case ' ', '\n', '\r', '\t':
			if len(dst)+i-start > limit {
				return dst, tooLarge
			}
			dst = append(dst, v[start:i]...)
			for i+1 < len(v) && jsonwalk.IsSpace(v[i+1]) {
				i++
			}
			start = i + 1
		}
	}
	if len(dst)+len(v)-start > limit {
		return dst, tooLarge
	}
	return append(dst, v[start:]...), ok
}

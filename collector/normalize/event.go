package normalize

import (
	"bytes"
	"fmt"
	"log/slog"
	"slices"
	"unicode/utf8"

	"github.com/rollway/rollway/collector/pool"
	"github.com/rollway/rollway/internal/jsonwalk"
	"github.com/rollway/rollway/internal/levels"
)

// maxNested is how many objects and arrays may be in one another in a body, deeper
// ones included that an event may not have. Package jsontext has the same limit.
const maxNested = 10_000

// readEvent reads the value that begins at body.text[i], which should be an object,
// and appends its canonical line or rejects it. above is how many arrays it is in. It
// returns the end of the value, or -1 at a syntax error.
func (n *Normalizer) readEvent(dst *Batch, i, above int) int {
	text := n.body.text
	if text[i] == '{' {
		if n.body.dirty {
			return n.readDirty(dst, i, above)
		}
		n.beginEvent(dst, i)
		end := n.readMembers(i+1, topLevel, above+1)
		if end >= 0 {
			n.endEvent(dst, end)
		}
		return end
	}
	check := jsonwalk.Checker{MaxDepth: maxNested - above}
	end := check.Value(text, i)
	if end < 0 {
		return -1
	}
	detail := ""
	if n.describes(dst) {
		detail = fmt.Sprintf("event %d is %s, expected an object", dst.Events()-n.body.first, kindName(text[i]))
	}
	n.add(dst, notObject, i, detail, text[i:end])
	return end
}

// readDirty is readEvent for an object in a body that is not UTF-8 somewhere.
func (n *Normalizer) readDirty(dst *Batch, i, above int) int {
	text := n.body.text
	check := jsonwalk.Checker{MaxDepth: maxNested - above}
	end := check.Value(text, i)
	if end < 0 {
		return -1
	}
	n.beginEvent(dst, 0)
	if mended := n.mend(text[i:end]); n.ev.fault == ok {
		n.body.text = mended
		n.readMembers(1, topLevel, above+1)
		if n.ev.fault == ok {
			n.appendLine(dst)
		}
		n.body.text = text
	}
	n.ev.start, n.ev.faultAt = i, i
	n.countEvent(dst, end)
	return end
}

// mend returns a value of the event; or, valid until the next call, a copy in which each byte
// that is not UTF-8 is U+FFFD, as in text. The event is too large if there is no room for it.
func (n *Normalizer) mend(value []byte) []byte {
	switch {
	case n.ev.fault != ok || utf8.Valid(value):
		return value
	case len(value) > spaced*n.limits.MaxEventBytes || !n.roomFor(len("\uFFFD")*len(value)):
		n.ev.fault = tooLarge
		return value
	}
	pool.CheckBytes(value) // U+FFFD would hide what is there
	n.work += uint(len(value))
	n.mended = n.mended[:0]
	for at := firstInvalid(value); at >= 0; at = firstInvalid(value) {
		n.mended = append(append(n.mended, value[:at]...), "\uFFFD"...)
		value = value[at+1:]
	}
	n.mended = append(n.mended, value...)
	return n.mended
}

// kindName names the kind of a value that is no object and begins with c.
func kindName(c byte) string {
	switch c {
	case '[':
		return "an array"
	case '"':
		return "a string"
	case 'n':
		return "null"
	case 't', 'f':
		return "a boolean"
	}
	return "a number"
}

// beginEvent begins the event that starts at body.text[start].
func (n *Normalizer) beginEvent(dst *Batch, start int) {
	n.pace(dst)
	n.ev = event{start: start}
	n.newEvent()
	if dst.overflow || dst.Events()-n.body.first >= n.limits.MaxEvents {
		n.ev.fault = tooManyEvents
	}
}

// endEvent appends the canonical line of the event that ends at body.text[end],
// or rejects it.
func (n *Normalizer) endEvent(dst *Batch, end int) {
	ev := &n.ev
	ev.faultAt = ev.start
	if ev.fault == ok {
		n.appendLine(dst)
	}
	n.countEvent(dst, end)
}

// countEvent counts the event that ends at body.text[end], and rejects it if it must be.
func (n *Normalizer) countEvent(dst *Batch, end int) {
	ev := &n.ev
	if dst.overflow {
		dst.Records++
	} else if ev.fault != ok {
		n.add(dst, ev.fault, ev.faultAt, n.explain(dst, ev.fault), n.body.text[ev.start:end])
	}
}

// A shape has for each place in an object the name that was there last, and its key: most
// events have the names of the one before, so that few are checked and looked up.
type shape [32]struct {
	name [29]byte // as JSON
	size uint8
	in   scope
	key  key
}

// readMembers reads the members of an object, from the first one at body.text[i] on,
// and the closing brace. It returns the end, or -1 at a syntax error.
// At the top of an event the known keys fill their slots; everything else goes to
// attrs. depth counts the objects and arrays that the members are in. After a fault
// of the event only the syntax is checked.
func (n *Normalizer) readMembers(i int, in scope, depth int) int {
	text := n.body.text
	i = jsonwalk.SkipSpace(text, i)
	if i < len(text) && text[i] == '}' {
		return i + 1
	}
	known := &n.shapes[n.inner][min(in, 1)]
	for k := 0; ; k++ {
		c := jsonwalk.Checker{MaxDepth: maxNested - depth}
		member := &known[k%len(known)]
		key, end, at := member.key, i+int(member.size), 0
		if member.size > 0 && member.in == in && end <= len(text) && string(text[i:end]) == string(member.name[:member.size]) {
			at = c.Member(text, end)
		} else if end, at = c.Name(text, i); at >= 0 {
			raw := text[i:end]
			if key = n.lookupIn(in, raw); len(raw) <= len(member.name) {
				member.size, member.in, member.key = uint8(copy(member.name[:], raw)), in, key
			}
		}
		if at < 0 || at == len(text) {
			return -1
		}
		name := jsonwalk.Span{Start: i, End: end}
		if merges(key) && text[at] == '{' {
			raw := name.Of(text)
			i = n.readMembers(at+1, scopeOf(key, raw[1:len(raw)-1]), depth+1)
		} else {
			if at+2 < len(text) && text[at+1] == '{' && text[at+2] == '\\' {
				i = n.value(&c, in, key, at)
			} else {
				i = c.Value(text, at)
			}
			if i >= 0 && n.ev.fault == ok {
				n.takeMember(key, name, jsonwalk.Span{Start: at, End: i}, !c.Spaced && c.Depth <= n.limits.MaxDepth-2)
			}
		}
		if i < 0 {
			return -1
		}
		if i = jsonwalk.SkipSpace(text, i); i >= len(text) {
			return -1
		}
		switch text[i] {
		case '}':
			return i + 1
		case ',':
			i = jsonwalk.SkipSpace(text, i+1)
		default:
			return -1
		}
	}
}

// takeMember puts a member where it belongs; compact is that of addAttr.
func (n *Normalizer) takeMember(key key, name, value jsonwalk.Span, compact bool) {
	if value.Len() > n.short {
		if n.ev.fault = n.overlong(value.Of(n.body.text)); n.ev.fault != ok {
			return
		}
	}
	if key == keyOther || !n.fill(key, value) && !n.wait(key, name, value) {
		n.ev.fault = n.addAttr(name, value, compact)
	}
}

// overlong finds a name or a scalar in a value, at any depth, that is over its limit,
// and notes how long it is.
func (n *Normalizer) overlong(raw []byte) reason {
	size := len(raw)
	if size > 0 && raw[0] == '"' {
		size -= len(`""`)
	}
	switch {
	case size <= n.short || isScalar(raw) && size <= n.limits.MaxValueBytes:
		return ok
	case isScalar(raw):
		n.ev.got = size
		return valueTooLong
	}
	for i := 0; i < len(raw); {
		start, end, limit, fault := i, 0, n.limits.MaxValueBytes, valueTooLong
		switch c := raw[i]; {
		case c == '"':
			end, _ = jsonwalk.SkipString(raw, i)
			start++
			if i = jsonwalk.SkipSpace(raw, end); i < len(raw) && raw[i] == ':' {
				limit, fault = n.limits.MaxKeyBytes, keyTooLong
			}
			end--
		case c == '-' || jsonwalk.IsDigit(c):
			end = jsonwalk.CheckNumber(raw, i)
			i = end
		default:
			i++
			continue
		}
		if end-start > limit {
			n.ev.got = end - start
			return fault
		}
	}
	return ok
}

// fill puts a value into the slot of its key; false if the slot is taken or
// cannot hold the value.
func (n *Normalizer) fill(key key, value jsonwalk.Span) bool {
	ev := &n.ev
	if key >= numSlots || ev.filled&(1<<key) != 0 {
		return false
	}
	raw := value.Of(n.body.text)
	fits := raw[0] == '"'
	switch key {
	case keyTime:
		if ev.sec, ev.nsec, fits = n.times.Parse(n.plain(raw)); !fits {
			return false
		}
	case keyLevel:
		if ev.level, fits = levels.ParseAny(n.plain(raw)); !fits {
			return false
		}
	case keyMsg:
		fits = isScalar(raw) && raw[0] != 'n'
	case keySource:
		fits = fits && string(raw) != `"stdout"` && string(raw) != `"stderr"` || raw[0] == '{' // a stream of Docker's
	case keyError:
		fits = true
	}
	if fits {
		ev.slots[key] = value
		ev.filled |= 1 << key
	}
	return fits
}

// setTime and setLevel fill a slot and return true.
func (n *Normalizer) setTime(sec int64, nsec int) bool {
	n.ev.sec, n.ev.nsec = sec, nsec
	n.ev.filled |= 1 << keyTime
	return true
}

func (n *Normalizer) setLevel(level slog.Level) bool {
	n.ev.level = level
	n.ev.filled |= 1 << keyLevel
	return true
}

// maxPlain is longer than any time, level or id.
const maxPlain = 4 << 10

// plain returns the text of a string or a number, and nothing for other kinds.
// It is valid until the next call.
func (n *Normalizer) plain(raw []byte) []byte {
	switch c := raw[0]; {
	case len(raw) > maxPlain:
	case c == '"':
		return n.unquoted(raw)
	case c == '-' || jsonwalk.IsDigit(c):
		return raw
	}
	return nil
}

// isScalar reports whether a value is no object and no array.
func isScalar(raw []byte) bool { return raw[0] != '{' && raw[0] != '[' }

// unquoted returns the text of a JSON string, valid until the next call.
func (n *Normalizer) unquoted(raw []byte) []byte {
	if !n.body.escapes || bytes.IndexByte(raw, '\\') < 0 {
		return raw[1 : len(raw)-1]
	}
	n.unquote = jsonwalk.AppendText(slices.Grow(n.unquote[:0], len(raw)), raw[1:len(raw)-1])
	return n.unquote
}

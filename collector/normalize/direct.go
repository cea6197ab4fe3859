package normalize

import (
	"github.com/rollway/rollway/internal/jsonline"
	"github.com/rollway/rollway/internal/jsonwalk"
)

// A value of which it is known from its name that it goes to attrs is built
// there, instead of being copied there when it is whole: while it is being built
// the Builder's text and the Normalizer's attrs have changed places.

// begin begins a member of attrs. A fault of its name is the event's.
func (b *Builder) begin(name []byte) {
	n := b.n
	b.text, n.attrs = n.attrs, b.text
	b.direct = true
	start := len(b.text)
	b.text = jsonline.AppendStringBytes(b.text, name)
	if n.ev.fault == ok {
		if b.text, n.ev.fault = n.uniqueName(b.text, start, name); n.ev.fault == ok {
			b.text = append(b.text, ':')
		}
	}
	b.name = jsonwalk.Span{Start: start, End: len(b.text)}
	b.value = len(b.text)
}

// uniqueName gives the name text[start:], which is that of plain as JSON, the
// suffix that makes it the only one of attrs.
func (n *Normalizer) uniqueName(text []byte, start int, plain []byte) ([]byte, reason) {
	if n.names.len() >= n.limits.MaxFields {
		return text, tooManyFields
	}
	n.ev.got = len(text) - start - len(`""`)
	if n.ev.got > n.limits.MaxKeyBytes {
		return text, keyTooLong
	}
	if n.ev.got != len(plain) { // it was escaped, or was not UTF-8
		plain = n.unquoted(text[start:])
	}
	suffix := n.names.add(plain)
	if len(suffix) > 0 {
		if n.ev.got += len(suffix); n.ev.got > n.limits.MaxKeyBytes {
			return text, keyTooLong
		}
		text = append(text[:len(text)-1], suffix...)
		text = append(text, '"')
	}
	return text, ok
}

// compact appends a value without the white space between its tokens.
func (b *Builder) compact(raw []byte) {
	var fault reason
	b.text, fault = appendCompact(b.text, raw, len(b.text)+len(raw), b.mostLevels()-b.level)
	if fault != ok {
		b.fail(fault)
	}
}

// mostLevels is how many levels the value being built may have.
func (b *Builder) mostLevels() int {
	if b.direct {
		return b.n.limits.MaxDepth - 2 // the line and attrs
	}
	return b.n.limits.MaxDepth
}

// finish ends the member that begin began.
func (b *Builder) finish() {
	n := b.n
	if n.ev.fault == ok {
		n.ev.fault = n.overlong(kindOf(b.text[b.value]), b.text[b.value:])
	}
	if n.ev.fault == ok && len(b.text) > n.limits.MaxEventBytes {
		n.ev.fault = tooLarge
	}
	if n.ev.fault == ok {
		n.noteNested(kindOf(b.text[b.value]), b.value, len(b.text))
		b.text = append(b.text, ',')
	} else {
		b.text = b.text[:b.name.Start]
	}
	b.place = nowhere
	b.undirect()
}

// undirect puts text and attrs back where they belong.
func (b *Builder) undirect() {
	if b.direct {
		b.text, b.n.attrs = b.n.attrs, b.text
		b.direct = false
	}
}

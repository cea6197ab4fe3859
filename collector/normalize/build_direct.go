package normalize

import "github.com/rollway/rollway/internal/jsonwalk"

// begin begins a member of attrs. It is built there, instead of being copied there when
// it is whole: until finish, text and the Normalizer's attrs have changed places. A
// fault of its name is the event's.
func (b *Builder) begin(name []byte) {
	n := b.n
	b.text, n.attrs = n.attrs, b.text
	b.direct = true
	start := len(b.text)
	b.quote(name)
	if n.ev.fault == ok {
		var suffix []byte
		if suffix, n.ev.fault = n.uniqueSuffix(b.text[start:], name); len(suffix) > 0 {
			b.text = append(b.text[:len(b.text)-1], suffix...)
			b.text = append(b.text, '"')
		}
		b.text = append(b.text, ':')
	}
	b.name = jsonwalk.Span{Start: start, End: len(b.text)}
	b.value = len(b.text)
}

// finish ends the member that begin began.
func (b *Builder) finish() {
	n := b.n
	if n.ev.fault == ok {
		n.ev.fault = n.overlong(b.text[b.value:])
	}
	if n.ev.fault == ok && len(b.text) > n.limits.MaxEventBytes {
		n.ev.fault = tooLarge
	}
	b.place = nowhere
	b.undirect()
	if n.ev.fault != ok {
		n.attrs = n.attrs[:b.name.Start]
		return
	}
	n.noteNested(b.value, len(n.attrs))
	n.attrs = append(n.attrs, ',')
}

// undirect puts text and attrs back where they belong.
func (b *Builder) undirect() {
	if b.direct {
		b.text, b.n.attrs = b.n.attrs, b.text
		b.direct = false
	}
}

// mostLevels is how many levels the value being built may have.
func (b *Builder) mostLevels() int {
	if b.direct {
		return b.n.limits.MaxDepth - 2 // the line and attrs
	}
	return b.n.limits.MaxDepth
}

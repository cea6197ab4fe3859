package normalize

import (
	"bytes"
	"fmt"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// Object adds the members of raw, one valid JSON object, as if each was given
// by Field. The error is that of raw not being one.
func (b *Builder) Object(raw []byte) error {
	if !utf8.Valid(raw) {
		b.n.ev.got = int(raw[firstInvalid(raw)])
		b.value = len(b.text)
		b.fail(invalidUTF8)
		return nil
	}
	b.src = *bytes.NewBuffer(raw)
	if b.dec == nil {
		b.dec = jsontext.NewDecoder(&b.src, b.n.opts...)
	} else {
		b.dec.Reset(&b.src, b.n.opts...)
	}
	defer func() { // keep nothing of raw
		b.src = bytes.Buffer{}
		b.dec.Reset(&b.src, b.n.opts...)
	}()
	if kind := b.dec.PeekKind(); kind != jsontext.KindBeginObject {
		return fmt.Errorf("found %s, expected an object", kindName(kind))
	}
	b.dec.ReadToken()
	if err := b.members(topLevel); err != nil {
		return err
	}
	if b.n.ev.fault == ok {
		b.n.body.text = b.text
		b.n.settle()
	}
	return nil
}

// members reads the members of the object whose '{' was read, and its '}'.
func (b *Builder) members(in scope) error {
	for b.dec.PeekKind() != jsontext.KindEndObject {
		name, err := b.dec.ReadValue()
		if err != nil {
			return noEOF(err)
		}
		slot := b.n.lookupIn(in, name)
		start := len(b.text)
		b.text = append(b.text, name...)
		if merges(slot) && b.dec.PeekKind() == jsontext.KindBeginObject {
			b.text = b.text[:start]
			b.dec.ReadToken()
			if err := b.members(below(slot)); err != nil {
				return err
			}
			continue
		}
		value, err := b.dec.ReadValue()
		if err != nil {
			return noEOF(err)
		}
		b.aim(byName, start)
		b.slot = slot
		b.JSON(value)
	}
	_, err := b.dec.ReadToken()
	return noEOF(err)
}

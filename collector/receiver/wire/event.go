package wire

import (
	"errors"

	"github.com/rollway/rollway/collector/normalize"
	"github.com/rollway/rollway/internal/jsonwalk"
)

// Object returns the object that text, which is called what, consists of. An error comes
// with one of normalize's reasons.
func Object(text []byte, what string) (object []byte, reason string, err error) {
	if object, err = Value(text); err != nil {
		return nil, normalize.ReasonSyntax, err
	}
	if !IsObject(object) {
		return nil, normalize.ReasonNotObject, errors.New(what + " is not an object")
	}
	return object, "", nil
}

// Lines makes an event of each line of a text that is not blank, with those that only
// continue it. add may add to it and must end it.
func Lines(b *normalize.Builder, text []byte, add func()) {
	for l := b.Lines(text); l.Next(); {
		b.Begin()
		b.Raw(l.Event)
		b.Message(l.Event)
		add()
	}
}

// An Event is a Builder that takes names and values of valid JSON as they are in the
// text.
type Event struct {
	*normalize.Builder
	text []byte // scratch of Text
}

// Scratch is the scratch memory, for package pool.
func (e *Event) Scratch() []byte { return e.text }

// Done ends the use of the Builder.
func (e *Event) Done() {
	e.Builder.Done()
	e.Builder = nil
}

// Text returns the text of a string, valid until the next call of any method.
func (e *Event) Text(raw []byte) (text []byte) {
	text, e.text = jsonwalk.Text(raw, e.text)
	return text
}

// Start begins an event that was sent as raw. If it is one too many, Start ends it and
// returns false.
func (e *Event) Start(raw []byte) bool {
	e.Begin()
	e.Raw(raw)
	if e.Failed() {
		e.End()
		return false
	}
	return true
}

// PutAttr adds an attribute.
func (e *Event) PutAttr(name, value []byte) {
	e.Attr(e.Text(name))
	e.JSON(value)
}

// PutSlot fills a slot from a member of that name.
func (e *Event) PutSlot(s normalize.Slot, name, value []byte) {
	e.SlotNamed(s, e.Text(name))
	e.JSON(value)
}

// PutField adds a member by the table of known keys, an object member by member, as
// those of some are merged into attrs.
func (e *Event) PutField(name, value []byte) {
	e.Field(e.Text(name))
	if IsObject(value) {
		e.PutObject(value, nil)
	} else {
		e.JSON(value)
	}
}

// PutObject adds an object as the value of what was named last, without the members
// that own, unless it is nil, takes.
func (e *Event) PutObject(object []byte, own func(name, value []byte) bool) {
	e.BeginObject()
	for w := Members(object); w.Next() && !e.Failed(); {
		if own == nil || !own(w.RawName(), w.RawValue()) {
			e.Name(e.Text(w.RawName()))
			e.JSON(w.RawValue())
		}
	}
	e.EndObject()
}

// PutRest adds an attribute, an object of the members of another that own does not take,
// if there are any. put, unless it is nil, may add the value of a member itself. name is
// text.
func (e *Event) PutRest(name, object []byte, own, put func(name, value []byte) bool) {
	begun := false
	for w := Members(object); w.Next() && !e.Failed(); {
		if own(w.RawName(), w.RawValue()) {
			continue
		}
		if !begun {
			begun = true
			e.Attr(name)
			e.BeginObject()
		}
		e.Name(e.Text(w.RawName()))
		if put == nil || !put(w.RawName(), w.RawValue()) {
			e.JSON(w.RawValue())
		}
	}
	if begun {
		e.EndObject()
	}
}

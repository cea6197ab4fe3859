package normalize

import (
	"net/netip"

	"github.com/rollway/rollway/internal/jsonline"
)

// Extras are attributes that every event of a body gets from whoever takes it
// in. They come first in attrs, so that a sender's own attribute of the same
// name is the one that gets a suffix. A nil *Extras has none. It must not
// change while it is in use.
type Extras struct {
	names [][]byte
	text  []byte // members, each followed by ','
}

// Add adds one attribute.
func (x *Extras) Add(name, value string) {
	x.names = append(x.names, []byte(name))
	x.text = jsonline.AppendString(x.text, name)
	x.text = append(x.text, ':')
	x.text = jsonline.AppendString(x.text, value)
	x.text = append(x.text, ',')
}

// AddJSON adds one attribute whose value is raw, JSON in its shortest form.
func (x *Extras) AddJSON(name string, raw []byte) {
	x.names = append(x.names, []byte(name))
	x.text = jsonline.AppendString(x.text, name)
	x.text = append(x.text, ':')
	x.text = append(x.text, raw...)
	x.text = append(x.text, ',')
}

// Join adds what y has.
func (x *Extras) Join(y *Extras) {
	x.names = append(x.names, y.names...)
	x.text = append(x.text, y.text...)
}

// AppendTo appends what x has, as members of an object, each followed by ','.
func (x *Extras) AppendTo(dst []byte) []byte { return append(dst, x.text...) }

// Reserve keeps a name for what Enricher.Own or Enricher.Finish appends.
func (x *Extras) Reserve(name []byte) { x.names = append(x.names, name) }

// AddAddr adds one attribute, whose name needs no escape.
func (x *Extras) AddAddr(name []byte, addr netip.Addr) {
	x.names = append(x.names, name)
	x.text = append(x.text, '"')
	x.text = append(x.text, name...)
	x.text = append(x.text, `":"`...)
	x.text = addr.AppendTo(x.text)
	x.text = append(x.text, `",`...)
}

func (x *Extras) reset() { x.names, x.text = x.names[:0], x.text[:0] }

// SetExtras says what the events of the next calls get; nil is nothing.
func (n *Normalizer) SetExtras(x *Extras) { n.extras = x }

// newEvent makes attrs those of an event that has said nothing yet.
func (n *Normalizer) newEvent() {
	n.attrs = n.attrs[:0]
	n.names.reset()
	n.known.Nested = n.known.Nested[:0]
	n.dropped = false
	n.late.n, n.late.seen = 0, 0
	if n.extras != nil {
		n.beginWith(n.extras)
	}
	if n.enricher != nil {
		n.beginWith(&n.fixed)
		n.attrs = n.enricher.Own(n.attrs, n.body.received, &n.scratch)
	}
}

func (n *Normalizer) beginWith(x *Extras) {
	for _, name := range x.names {
		n.names.add(name)
	}
	n.attrs = append(n.attrs, x.text...)
}

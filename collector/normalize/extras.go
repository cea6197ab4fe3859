package normalize

import "github.com/rollway/rollway/internal/jsonline"

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

// SetExtras says what the events of the next calls get; nil is nothing.
func (n *Normalizer) SetExtras(x *Extras) { n.extras = x }

// newEvent makes attrs those of an event that has said nothing yet.
func (n *Normalizer) newEvent() {
	n.attrs = n.attrs[:0]
	n.names.reset()
	if x := n.extras; x != nil {
		for _, name := range x.names {
			n.names.add(name)
		}
		n.attrs = append(n.attrs, x.text...)
	}
}

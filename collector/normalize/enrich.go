package normalize

import (
	"log/slog"
	"net/netip"
	"slices"
	"time"

	"github.com/rollway/rollway/internal/jsonline"
	"github.com/rollway/rollway/internal/jsonwalk"
)

// An Enricher says what events get beside what they came with, and what is
// done to their lines before they are stored. It is immutable and safe for
// concurrent use, and keeps nothing that it is given.
type Enricher interface {
	// Begin adds to x what each event from peer gets; the zero Addr is a peer
	// without an address.
	Begin(x *Extras, peer netip.Addr)
	// Own appends the members of attrs that an event gets for itself alone, each
	// followed by ','. Their names were reserved by Begin.
	Own(attrs []byte, received time.Time, s *Scratch) []byte
	// Defaults are for events that do not have them; nil: none.
	Defaults() *Defaults
	// Parse returns what the configuration finds in the message of an event, whose
	// canonical line is line: an object of what the event has besides, in memory of s,
	// and whether it is all of the message; nil: nothing.
	Parse(line []byte, known *Known, s *Scratch) (object []byte, whole bool)
	// Finish turns the canonical line of an event, without its line end, into
	// the one to be stored. It may change and grow line; what it returns is line
	// or memory of s, good until the next call. known says what is in line, so that
	// Finish need not look for it. If dropped is not empty, it names the rule by
	// which the event is not stored.
	Finish(line []byte, known *Known, s *Scratch) (out []byte, dropped string)
	// Withholds reports whether the text of rejected events must not be kept,
	// because there is something in events that nobody is to see.
	Withholds() bool
}

// Tenant is the attribute that says whose an event is. Where there are tokens, only tokens
// and addresses write it.
const Tenant = "tenant"

// Extras are attributes that every event of a body gets from its receiver. They come
// first in attrs, so that a sender's own attribute of the same name is the one that gets
// a suffix. A nil *Extras has none. It must not change while it is in use.
type Extras struct {
	names [][]byte
	text  []byte // members, each followed by ','
}

// Add adds one attribute.
func (x *Extras) Add(name, value string) { x.AddJSON(name, jsonline.AppendString(nil, value)) }

// AddJSON adds one attribute whose value is raw, JSON in its shortest form.
func (x *Extras) AddJSON(name string, raw []byte) {
	x.names = append(x.names, []byte(name))
	x.text = append(jsonline.AppendString(x.text, name), ':')
	x.text = append(append(x.text, raw...), ',')
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

// Defaults are attributes, a service and a logger for events that have none. It
// must not change while it is in use.
type Defaults struct {
	names [][]byte
	texts [][]byte // members, each followed by ','
	slots [numSlots][]byte
}

// AddJSON adds a default: raw is a JSON value in its shortest form. It returns
// false if the name is that of a slot other than service and logger, or of one
// of these and raw is no string.
func (d *Defaults) AddJSON(name string, raw []byte) bool {
	switch slot := defaultKeys.find([]byte(name)).key; {
	case slot >= keyOther: // second names are for what comes in
		x := new(Extras)
		x.AddJSON(name, raw)
		d.names, d.texts = append(d.names, x.names[0]), append(d.texts, x.text)
	case (slot == keyService || slot == keyLogger) && raw[0] == '"':
		d.slots[slot] = raw
	default:
		return false
	}
	return true
}

// Take takes the default of a name out, and returns its value as JSON; nil: it
// has none.
func (d *Defaults) Take(name string) (raw []byte) {
	if slot := defaultKeys.find([]byte(name)).key; slot < numSlots {
		raw, d.slots[slot] = d.slots[slot], nil
		return raw
	}
	for i := range d.names {
		if string(d.names[i]) == name {
			raw = d.texts[i][len(jsonline.AppendString(nil, name))+1 : len(d.texts[i])-1]
			d.names, d.texts = slices.Delete(d.names, i, i+1), slices.Delete(d.texts, i, i+1)
			return raw
		}
	}
	return nil
}

// Known is what is known of an event when its line has been made.
type Known struct {
	Level slog.Level
	// Nested are the values in the line that are objects or arrays, outside of each
	// other; that of attrs is not one of them.
	Nested []jsonwalk.Span

	filled uint16 // bit per slot
	slots  [numSlots]jsonwalk.Span
	names  *nameSet
}

// Filled has a bit for each slot that the line has a value for: 1<<slot.
func (k *Known) Filled() uint16 { return k.filled }

// Slot returns where in the line the value of a slot is that it has; not of Time and
// Level.
func (k *Known) Slot(slot Slot) jsonwalk.Span { return k.slots[slot] }

// Attrs is the number of attributes that the line has or that are reserved.
func (k *Known) Attrs() int { return k.names.len() }

// Attr returns the name of an attribute, which has no escapes.
func (k *Known) Attr(i int) []byte { return k.names.at(i) }

// Scratch is memory that an Enricher uses from event to event.
type Scratch struct {
	A, B, Text, Path, Template []byte
}

func (s *Scratch) shrink() {
	for _, b := range []*[]byte{&s.A, &s.B, &s.Text, &s.Path, &s.Template} {
		if cap(*b) > keepScratch {
			*b = nil
		}
	}
}

// SetEnricher says what becomes of the events of the next calls, which are from
// peer; a nil e is nothing.
func (n *Normalizer) SetEnricher(e Enricher, peer netip.Addr) {
	n.enricher, n.defaults, n.defaulted = e, nil, 0
	n.fixed.reset()
	if e != nil {
		e.Begin(&n.fixed, peer)
		n.defaults = e.Defaults()
		for slot := range numSlots {
			if n.defaults != nil && n.defaults.slots[slot] != nil {
				n.defaulted |= 1 << slot
			}
		}
	}
}

// fillDefaults gives the event what it lacks.
func (n *Normalizer) fillDefaults() {
	for i, name := range n.defaults.names {
		if found, _ := n.names.find(name); found < 0 {
			n.names.add(name)
			n.attrs = append(n.attrs, n.defaults.texts[i]...)
		}
	}
}

// A Drop is how many events one rule has left out, or how many of a kind were ignored.
type Drop struct {
	Rule   string // or kind
	Events int
}

// drop counts an event that a rule leaves out.
func (b *Batch) drop(rule string) {
	b.DroppedTotal++
	i := 0
	b.Dropped, i = count(b.Dropped, rule)
	b.dropLog = append(b.dropLog, uint16(i))
}

// count adds one to the number of name in list, and returns at which index.
func count(list []Drop, name string) ([]Drop, int) {
	i := 0
	for ; i < len(list) && list[i].Rule != name; i++ {
	}
	if i == len(list) {
		list = append(list, Drop{Rule: name})
	}
	list[i].Events++
	return list, i
}

// undrop takes back what was dropped since the last mark.
func (b *Batch) undrop() {
	for _, i := range b.dropLog {
		b.Dropped[i].Events--
		b.DroppedTotal--
	}
	b.dropLog = b.dropLog[:0]
}

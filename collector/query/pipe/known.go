package pipe

import (
	"math/bits"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/rollway/rollway/collector/columns"
)

// inTable reports whether the values of f in a row of a table are in one of the table's columns.
func (f *Field) inTable() bool { return f.Index < 0 && f.Find != nil }

// known has the groups of rows of tables by numbers, one of each column: no key is written of a row
// whose group is known. A number means a value together with how it is to be read:
//
//	column              number                  how
//	no value            0                       absent
//	one value, or few   its number in names     named
//	times that are cut  when its step begins    of a spelling
//	others              columns.Cells.Ints      of a spelling
//
// While all columns but one have one value each, that one's number is the index of the group in direct.
type known struct {
	regroups bool // a new group may give others other numbers
	table    *Table
	of       uint64 // Table.Round
	useless  bool   // for the table
	columns  []knownColumn
	how      []uint32 // of the rows, a byte for each column

	numbered uint32           // how the numbers are to be read that groups have instead of keys; 0: none has one
	spelling columns.Spelling // of them

	single int                 // the column with several values; -1: there are more of them
	fixed  [2 + maxKnown]int64 // what direct is of: single, how, and the numbers of the other columns
	direct []int32             // groups plus 1 by number plus 1; first comes that of rows without a value

	hashes []uint64 // of the rows
	seen   uint64   // nobody needs it
	places []uint64 // a power of two of them, each with how, the group plus 1, and the numbers
	used   int
	shift  int // of a hash, which leaves the number of a place
}

const (
	maxKnown    = 3       // groups by more columns are looked up by their keys
	maxNames    = 1 << 16 // bytes of names of a column
	maxSpelling = 1 << 10 // bytes
	maxDirect   = 1 << 20 // numbers
	unknown     = -1      // instead of a group

	// How a number is to be read; others are those of spellings.
	absent = 0
	named  = 1
	maxHow = 255
)

// knownColumn is a column by which rows are grouped.
type knownColumn struct {
	*columns.Cells
	how        uint32
	spellings  columns.Set
	names      columns.Set
	size       int     // of names
	entries    []int32 // of the dictionary, their numbers in names plus 1; 0: not known yet
	step       int64   // of times that are cut, in nanoseconds; 0: values
	start, end int64   // of the step that was last
	values     []int32 // memory
	numbers    []int64 // of the rows, or the first one's if all have that
	mask       int     // of an index in numbers
	text       []byte  // memory
}

// begin reads the numbers of rows of a table, and fills groups with those of the rows that are known. It
// returns by how much k has grown.
func (k *known) begin(s *statsStep, t *Table, rows, groups []int32) (grown int) {
	if t != k.table || t.Round != k.of {
		grown = k.use(s, t)
	}
	if k.useless {
		for i := range groups {
			groups[i] = unknown
		}
		return grown
	}
	k.how = slices.Grow(k.how[:0], len(rows))[:len(rows)]
	fixed := uint32(0)
	for i := range k.columns {
		if c := &k.columns[i]; c.Fixed() && len(rows) > 0 {
			var how [1]uint32
			grown += c.read(rows[:1], how[:], 8*i)
			fixed |= how[0]
		}
	}
	for i := range k.how {
		k.how[i] = fixed
	}
	for i := range k.columns {
		if c := &k.columns[i]; !c.Fixed() {
			grown += c.read(rows, k.how, 8*i)
		}
	}
	if k.single >= 0 && len(rows) > 0 {
		k.fix()
		return grown + k.lookUp(groups)
	}
	k.hash()
	for i := range groups {
		groups[i] = k.group(k.find(i, k.hashes[i]))
	}
	return grown
}

// fix forgets direct if that is of other values.
func (k *known) fix() {
	fixed := [2 + maxKnown]int64{int64(k.single)}
	for i := range k.columns {
		c := &k.columns[i]
		if fixed[1] |= int64(c.how) << (8 * i); i != k.single {
			fixed[2+i] = c.number(0)
		}
	}
	if fixed != k.fixed {
		k.fixed, k.direct = fixed, k.direct[:0]
	}
}

// slot is the index in direct of the row at i; more than maxDirect: it has none.
func (k *known) slot(i int) uint64 {
	n := uint64(k.columns[k.single].number(i))
	if n <= maxDirect && k.how[i]>>(8*k.single)&0xff != absent {
		n++
	}
	return n
}

// look returns the group of the row at i, if it is known by now.
func (k *known) look(i int) int32 {
	if k.useless {
		return unknown
	}
	if k.single >= 0 {
		if at := k.slot(i); at < uint64(len(k.direct)) && k.direct[at] > 0 {
			return k.direct[at] - 1
		}
	}
	if k.used == 0 {
		return unknown
	}
	return k.group(k.find(i, k.hashOf(i)))
}

// lookUp fills groups with those of the rows, by direct and then by places.
func (k *known) lookUp(groups []int32) (grown int) {
	c, direct, bit := &k.columns[k.single], k.direct, 8*k.single
	numbers, mask := c.numbers, c.mask
	for i, how := range k.how[:len(groups)] {
		at := uint64(numbers[i&mask])
		if at <= maxDirect && how>>bit&0xff != absent {
			at++
		}
		if groups[i] = unknown; at < uint64(len(direct)) {
			groups[i] = direct[at] - 1
		}
	}
	if k.used == 0 {
		return 0
	}
	for i := range groups {
		if groups[i] != unknown {
			continue
		}
		if groups[i] = k.look(i); groups[i] != unknown {
			more, _ := k.noteDirect(i, groups[i])
			grown += more
		}
	}
	return grown
}

// use is for rows of a table. It returns by how much k and groups have grown.
func (k *known) use(s *statsStep, t *Table) (grown int) {
	k.table, k.of = t, t.Round
	if k.places == nil {
		k.columns = make([]knownColumn, len(s.Groups))
		k.resize(6)
	}
	k.useless, k.single = len(s.Groups) > maxKnown, -1
	several := 0
	for i := range s.Groups {
		g := &s.Groups[i]
		k.regroups = k.regroups || g.Most > 0
		if k.useless = k.useless || !g.inTable(); k.useless {
			continue
		}
		c := &k.columns[i]
		if c.Cells = &t.Cells[g.Cells]; !c.Fixed() || k.single < 0 && i == len(s.Groups)-1 {
			k.single = i
		}
		if !c.Fixed() {
			several++
		}
		switch c.Kind {
		case columns.Texts:
			c.how, k.useless = absent, c.Some()
		case columns.Same, columns.Indexes:
			full := c.size+c.Size() > maxNames
			if k.useless = c.Size() > maxNames || full && k.numbered != 0; full && !k.useless {
				c.names.Reset()
				c.size = 0
				k.clear()
			}
			c.how, c.entries = named, slices.Grow(c.entries[:0], c.Len())[:c.Len()]
			clear(c.entries)
		default:
			k.useless = !c.spell(int64(s.cuts[i].step))
		}
	}
	if several > 1 {
		k.single = -1
	}
	if len(s.Groups) == 1 && s.cuts[0].step == 0 && !k.useless {
		grown += k.useNumbers(s)
	}
	return grown
}

// spell finds how the numbers are to be read; false: there are too many ways.
func (c *knownColumn) spell(step int64) bool {
	c.step = 0
	switch c.text = append(c.text[:0], byte(c.Kind)); c.Kind {
	case columns.Times:
		c.step, c.start, c.end = step, 0, 0
	case columns.Numbers:
		c.text = append(c.text, byte(c.Digits))
	default:
		c.text = append(c.text, c.Spelling...)
	}
	full := named+1+c.spellings.Len() > maxHow
	if len(c.text) > maxSpelling || full {
		return false
	}
	c.how = uint32(named + 1 + c.spellings.Add(c.text))
	return true
}

// read fills c.numbers, and how from a bit on.
func (c *knownColumn) read(rows []int32, how []uint32, bit int) (grown int) {
	values := c.Values(&c.values, rows)
	c.numbers = slices.Grow(c.numbers[:0], len(rows))[:len(rows)]
	if c.mask = -1; c.Fixed() {
		c.mask = 0
	}
	way := c.how << bit
	for i, at := range values {
		if at < 0 {
			c.numbers[i] = 0
			continue
		}
		how[i] |= way
		switch {
		case c.how == named:
			entry := int64(0)
			if c.Kind == columns.Indexes {
				entry = c.Ints[at]
			}
			if c.entries[entry] == 0 {
				grown += c.name(entry, at)
			}
			c.numbers[i] = int64(c.entries[entry])
		case c.step > 0:
			c.numbers[i] = c.cut(c.Ints[at])
		default:
			c.numbers[i] = c.Ints[at]
		}
	}
	return grown
}

// number is that of the row at i.
func (c *knownColumn) number(i int) int64 { return c.numbers[i&c.mask] }

// name gives an entry of the dictionary, which is the value at, its number in names.
func (c *knownColumn) name(entry int64, at int32) (grown int) {
	const nameBytes = 48
	var json []byte
	json, c.text = c.JSON(c.text[:0], int(at))
	n := c.names.Len()
	number := c.names.Add(json)
	c.entries[entry] = int32(number + 1)
	if number < n {
		return 0
	}
	c.size += len(json)
	return nameBytes + len(json)
}

// mix is odd; nobody who writes lines knows it.
var mix = rand.Uint64() | 1

// hash fills hashes. Places are loaded for all of them before one is used, so that the waits for memory
// overlap.
func (k *known) hash() {
	k.hashes = k.hashes[:0]
	width, seen := 1+len(k.columns), uint64(0)
	for i := range k.how {
		hash := k.hashOf(i)
		k.hashes = append(k.hashes, hash)
		seen |= k.places[int(hash>>k.shift)*width]
	}
	k.seen = seen
}

func (k *known) hashOf(i int) uint64 {
	hash := uint64(k.how[i])
	for j := range k.columns {
		hash = mixed(hash, uint64(k.columns[j].number(i)))
	}
	return hash
}

func mixed(hash, n uint64) uint64 { return (bits.RotateLeft64(hash, 29) ^ n) * mix }

// find looks for the row at i. It returns the index of the first word of its place, or of one that is free.
func (k *known) find(i int, hash uint64) int {
	width := 1 + len(k.columns)
	at := int(hash>>k.shift) * width
	for k.places[at] != 0 && !k.is(at, i) {
		if at += width; at == len(k.places) {
			at = 0
		}
	}
	return at
}

// is reports whether the place at a word is that of the row at i.
func (k *known) is(at, i int) bool {
	if k.places[at]>>32 != uint64(k.how[i]) {
		return false
	}
	for j := range k.columns {
		if at++; k.places[at] != uint64(k.columns[j].number(i)) {
			return false
		}
	}
	return true
}

// group returns the group at a place; unknown: there is none.
func (k *known) group(at int) int32 { return int32(uint32(k.places[at])) - 1 }

// note has the row at i in a group. It returns by how much k has grown.
func (k *known) note(i int, group int32) (grown int) {
	if k.useless {
		return 0
	}
	if k.single >= 0 {
		more, ok := k.noteDirect(i, group)
		if grown = more; ok && len(k.columns) == 1 { // it would be noted twice
			return grown
		}
	}
	if n := 2 * k.used * (1 + len(k.columns)); n >= len(k.places) {
		grown += k.resize(64 - k.shift + 1)
	}
	at := k.find(i, k.hashOf(i))
	if k.places[at] != 0 { // by a row before this one
		return grown
	}
	k.used++
	k.places[at] = uint64(k.how[i])<<32 | uint64(group+1)
	for j := range k.columns {
		k.places[at+1+j] = uint64(k.columns[j].number(i))
	}
	return grown
}

// noteDirect is note for direct; false: the row has no place there, or there would be few others.
func (k *known) noteDirect(i int, group int32) (grown int, ok bool) {
	const dense, least = 32, 64
	at, n := k.slot(i), len(k.direct)
	if at > maxDirect || at >= uint64(max(n, least, dense*int(group))) {
		return 0, false
	}
	if at >= uint64(n) {
		before := cap(k.direct)
		k.direct = slices.Grow(k.direct, max(int(at)+1-n, min(n, maxDirect+1-n))) // to be copied less often
		k.direct = k.direct[:cap(k.direct)]
		clear(k.direct[n:])
		if grown = 4 * (cap(k.direct) - before); len(k.columns) == 1 {
			k.move()
		}
	}
	k.direct[at] = group + 1
	return grown, true
}

// move gives direct the groups in places, of one column, as far as it reaches.
func (k *known) move() {
	left := 0
	for at := 0; at < len(k.places); at += 2 {
		if place, n := k.places[at], k.places[at+1]; place == 0 {
		} else if int64(place>>32) == k.fixed[1] && n+1 < uint64(len(k.direct)) && n < maxDirect {
			k.direct[n+1] = int32(uint32(place))
		} else {
			left++
		}
	}
	if left == 0 {
		clear(k.places)
		k.used = 0
	}
}

// resize makes 1<<log places. It returns by how much k has grown.
func (k *known) resize(log int) (grown int) {
	old, width := k.places, 1+len(k.columns)
	k.places, k.shift = make([]uint64, width<<log), 64-log
	grown = 8 * (len(k.places) - len(old))
	for ; len(old) > 0; old = old[width:] {
		if old[0] == 0 {
			continue
		}
		hash := old[0] >> 32
		for _, n := range old[1:width] {
			hash = mixed(hash, n)
		}
		at := int(hash>>k.shift) * width
		for k.places[at] != 0 {
			if at += width; at == len(k.places) {
				at = 0
			}
		}
		copy(k.places[at:], old[:width])
	}
	return grown
}

// clear leaves no group known.
func (k *known) clear() {
	clear(k.places)
	k.used, k.direct = 0, k.direct[:0]
}

// forget is for other groups, and for steps that are longer.
func (k *known) forget() {
	k.clear()
	k.table = nil
}

// reset is forget for a run that is used again, which does not account for what k holds.
func (k *known) reset() {
	const few = 10
	k.forget()
	k.numbered = 0
	if 64-k.shift > few || cap(k.direct) > 1<<few {
		k.places, k.direct = nil, nil
	}
}

// cut returns when the step begins that a time is in. See cut.of.
func (c *knownColumn) cut(at int64) int64 {
	if at < c.start || at >= c.end {
		sec, nsec := at/1e9, at%1e9
		if nsec < 0 {
			sec, nsec = sec-1, nsec+1e9
		}
		if c.step < int64(time.Second) {
			c.start = at - nsec%c.step
		} else {
			c.start = startOf(sec, time.Duration(c.step)) * 1e9
		}
		c.end = c.start + c.step
	}
	return c.start
}

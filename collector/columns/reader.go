package columns

import (
	"bytes"
	"encoding/binary"
	"slices"
)

// A reader reads the head of a column. What does not fit sets bad of the block.
type reader struct {
	b     *Block
	head  []byte
	chunk int
}

func (r *reader) fail() { r.b.bad, r.head = true, nil }

// number reads a number of at most limit.
func (r *reader) number(limit int) int {
	if len(r.head) > 0 && int(r.head[0]) < min(1<<7, limit) { // as most are
		v := int(r.head[0])
		r.head = r.head[1:]
		return v
	}
	v, n := binary.Uvarint(r.head)
	if n <= 0 || v > uint64(limit) {
		r.fail()
		return 0
	}
	r.head = r.head[n:]
	return int(v)
}

func (r *reader) signed() int64 {
	v, n := binary.Varint(r.head)
	if n <= 0 {
		r.fail()
		return 0
	}
	r.head = r.head[n:]
	return v
}

func (r *reader) bytes(n int) []byte {
	if n > len(r.head) {
		r.fail()
		return nil
	}
	out := r.head[:n:n]
	r.head = r.head[n:]
	return out
}

func (r *reader) byte() byte {
	if b := r.bytes(1); b != nil {
		return b[0]
	}
	return 0
}

// stream reads a stream. Its bytes are valid until the next block.
func (r *reader) stream() []byte {
	n := r.number(2*r.b.budget + 1)
	size := n >> 1
	if r.b.budget -= size; r.b.budget < 0 {
		r.fail()
	}
	if n&1 == 0 {
		return r.bytes(size)
	}
	stored := r.number(len(r.b.chunks) - r.chunk)
	if r.b.bad {
		return nil
	}
	packed := r.b.chunks[r.chunk : r.chunk+stored]
	r.chunk += stored
	if stored == size && !r.b.Own {
		return packed
	}
	if r.b.used == len(r.b.streams) {
		r.b.streams = append(r.b.streams, nil)
	}
	out, ok := r.b.streams[r.b.used], false
	if stored != size {
		out, ok = r.b.literals(out, packed, size)
	}
	if !ok {
		var err error
		if out, err = appendStored(out[:0], packed, size); err != nil {
			r.fail()
		}
	}
	r.b.streams[r.b.used] = out
	r.b.used++
	return out
}

// packed is integers as they are stored.
type packed struct {
	planes             [8][]byte // their bytes, the lowest first
	width, n           int
	delta              bool
	least, first, unit int64
}

// packed reads n integers, one or more. It returns nil if they are damaged.
func (r *reader) packed(n int) *packed {
	flags := r.byte()
	p := &packed{width: int(flags & 15), n: n, delta: flags&16 != 0, least: r.signed()}
	if p.delta {
		p.first = r.signed()
		n--
	}
	if p.width > 8 || flags>>5 > 3 || r.b.bad {
		r.fail()
		return nil
	}
	for w := range p.width {
		if p.planes[w] = r.stream(); len(p.planes[w]) != n {
			r.fail()
			return nil
		}
	}
	p.unit = [4]int64{1, 1e3, 1e6, 1e9}[flags>>5]
	return p
}

// at returns integer i, unless they are differences.
func (p *packed) at(i int) (v int64) {
	for w, plane := range p.planes[:p.width] {
		v |= int64(plane[i]) << (8 * w)
	}
	return (v + p.least) * p.unit
}

// ints reads n integers. They are valid until the next block.
func (r *reader) ints(n int) []int64 {
	if n == 0 {
		return []int64{}
	}
	if p := r.packed(n); p != nil {
		return r.b.ints(p)
	}
	return nil
}

// ints returns integers, valid until the next block.
func (b *Block) ints(p *packed) []int64 {
	out := b.integers(p.n)
	if !p.delta {
		join(out, p.planes[:p.width])
		for i := range out {
			out[i] = (out[i] + p.least) * p.unit
		}
		return out
	}
	join(out[1:], p.planes[:p.width])
	next := p.first
	out[0] = next * p.unit
	for i := range out[1:] {
		next += out[i+1] + p.least
		out[i+1] = next * p.unit
	}
	return out
}

// join fills out with the integers whose bytes are in planes, the lowest first.
func join(out []int64, planes [][]byte) {
	n := len(out)
	switch len(planes) {
	case 0:
		clear(out)
	case 1:
		for i, c := range planes[0][:n] {
			out[i] = int64(c)
		}
	default:
		low, high := planes[0][:n], planes[1][:n]
		for i := range out {
			out[i] = int64(low[i]) | int64(high[i])<<8
		}
		for w := 2; w < len(planes); w++ {
			for i, c := range planes[w][:n] {
				out[i] |= int64(c) << (8 * w)
			}
		}
	}
}

// variables returns n columns until the next block.
func (b *Block) variables(n int) []column {
	if n > len(b.spare) {
		b.spare = make([]column, max(n, 2*len(b.holes), 128))
		b.holes = b.spare
	}
	out := b.spare[:n:n]
	clear(out)
	b.spare = b.spare[n:]
	return out
}

// integers returns memory for n integers until the next block.
func (b *Block) integers(n int) []int64 {
	if n > len(b.memory) {
		b.most = make([]int64, max(n, 2*len(b.most), 1<<12)) // what was returned stays
		b.memory = b.most
	}
	out := b.memory[:n:n]
	b.memory = b.memory[n:]
	return out
}

// strings reads n strings.
func (r *reader) strings(n int) (v values) {
	ends := r.ints(n)
	v.text = r.stream()
	v.ends = make([]int, len(ends))
	end := 0
	for i, size := range ends {
		if size < 0 || size > int64(len(v.text)-end) {
			r.fail()
			return values{}
		}
		end += int(size)
		v.ends[i] = end
	}
	if end != len(v.text) {
		r.fail()
	}
	return v
}

// column reads a column of n values. Only with whole may they be texts.
func (r *reader) column(n int, whole bool) (v values) {
	form := r.byte()
	if r.b.values -= n; r.b.values < 0 || form == formTexts && !whole {
		r.fail()
	}
	if n == 0 || r.b.bad {
		return v
	}
	switch form {
	case formConstant:
		v.text = r.bytes(r.number(len(r.head)))
		v.ends = []int{len(v.text)}
	case formStrings:
		v = r.strings(n)
	case formDictionary:
		distinct := r.number(n)
		v = r.strings(distinct)
		v.packed = r.packed(n)
		if p := v.packed; p != nil && (p.delta || p.width != 1 || p.unit != 1 || p.least < 0 || int64(slices.Max(p.planes[0])) >= int64(distinct)-p.least) {
			if r.b.complete(&v); r.outside(v.ints, distinct) {
				r.fail()
			}
		}
	case formDecimal, formDigits:
		if v.digits = int(r.byte()); v.digits > maxDigits {
			r.fail()
		}
		v.packed = r.packed(n)
	case formTimes:
		v.packed = r.packed(n)
	case formHex:
		v.digits = int(r.byte())
		if v.text = r.stream(); v.digits == 0 || v.digits%2 != 0 || len(v.text) != n*v.digits/2 {
			r.fail()
		}
	case formTexts:
		v.texts = r.texts(n)
	default:
		r.fail()
	}
	v.form = form
	if v.packed != nil && v.packed.delta {
		r.b.complete(&v)
	}
	return v
}

// complete joins integers, and counts texts, as is best to read many of them.
func (b *Block) complete(v *values) {
	if v.packed != nil {
		v.ints, v.packed = b.ints(v.packed), nil
	}
	t := v.texts
	if t == nil || b.bad || t.all {
		return
	}
	if t.all = true; t.templates == nil && t.which.width > 0 {
		t.templates = b.ints(t.which)
		t.order()
	}
}

// order counts texts by their templates.
func (t *texts) order() {
	t.rank = t.block.integers(t.n)
	clear(t.counts)
	for i, template := range t.templates {
		t.rank[i] = int64(t.counts[template])
		t.counts[template]++
	}
}

// outside reports whether an index is not below limit.
func (r *reader) outside(indexes []int64, limit int) bool {
	for _, i := range indexes {
		if uint64(i) >= uint64(limit) {
			return true
		}
	}
	return false
}

// texts reads n texts, without their variables.
func (r *reader) texts(n int) *texts {
	kept := r.number(n)
	templates := r.strings(kept)
	t := &texts{block: r.b, n: n, which: r.packed(n), counts: make([]int, kept+1), pieces: make([][][]byte, kept+1), variables: make([][]column, kept+1)}
	if r.b.bad {
		return t
	}
	if p := t.which; p.width == 0 && !p.delta && p.unit == 1 && 0 <= p.least && p.least <= int64(kept) {
		t.counts[p.least] = n
	} else if p.width == 1 && !p.delta && p.unit == 1 && 0 <= p.least && p.least <= int64(kept) {
		var counts [256]int
		for _, c := range p.planes[0] {
			counts[c]++
		}
		for _, n := range counts[copy(t.counts[p.least:], counts[:]):] {
			if n > 0 {
				r.fail()
				return t
			}
		}
	} else {
		if t.templates = r.b.ints(p); r.outside(t.templates, kept+1) {
			r.fail()
			return t
		}
		t.order()
	}
	holes := bytes.Count(templates.text, []byte{hole})
	if holes > len(r.head) { // each column has a byte there, at least
		r.fail()
		return t
	}
	columns, pieces := r.b.variables(1+holes), make([][]byte, 0, kept+holes) // of all templates
	for i, n := range t.counts {
		of := 1
		if i > 0 {
			start := len(pieces)
			pieces = appendPieces(pieces, templates.string(i-1))
			t.pieces[i] = pieces[start:]
			of = len(pieces) - start - 1
		}
		t.variables[i], columns = columns[:of], columns[of:]
		for h := range t.variables[i] {
			c := &t.variables[i][h]
			c.n, c.inside, c.head, c.chunk = n, true, r.head, r.chunk
			if c.form = r.skip(n); r.b.bad {
				return t
			}
		}
	}
	return t
}

// appendPieces appends the pieces of a template between its holes.
func appendPieces(dst [][]byte, template []byte) [][]byte {
	for {
		n := bytes.IndexByte(template, hole)
		if n < 0 {
			return append(dst, template)
		}
		dst, template = append(dst, template[:n:n]), template[n+1:]
	}
}

// skip goes past a column of n values, which are no texts, and returns its form.
func (r *reader) skip(n int) (form byte) {
	if form = r.byte(); n == 0 {
		return form
	}
	switch form {
	case formConstant:
		r.bytes(r.number(len(r.head)))
	case formStrings:
		r.skipStrings(n)
	case formDictionary:
		r.skipStrings(r.number(n))
		r.skipInts(n)
	case formDecimal, formDigits:
		r.byte()
		r.skipInts(n)
	case formTimes:
		r.skipInts(n)
	case formHex:
		r.byte()
		r.skipStream()
	default:
		r.fail()
	}
	return form
}

func (r *reader) skipStrings(n int) {
	r.skipInts(n)
	r.skipStream()
}

func (r *reader) skipInts(n int) {
	if n == 0 {
		return
	}
	flags := r.byte()
	if r.signed(); flags&16 != 0 {
		r.signed()
	}
	for range flags & 15 {
		r.skipStream()
	}
}

func (r *reader) skipStream() {
	if n := r.number(2*r.b.budget + 1); n&1 == 0 {
		r.bytes(n >> 1)
	} else {
		r.chunk += r.number(len(r.b.chunks) - r.chunk)
	}
}

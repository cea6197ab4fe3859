package columns

import (
	"bytes"
	"encoding/binary"
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

// ints reads n integers. They are valid until the next block.
func (r *reader) ints(n int) []int64 {
	if n == 0 {
		return []int64{}
	}
	flags := r.byte()
	width, delta, scale := int(flags&15), flags&16 != 0, int(flags>>5)
	least, first := r.signed(), int64(0)
	if delta {
		first = r.signed()
		n--
	}
	if width > 8 || scale > 3 || r.b.bad {
		r.fail()
		return nil
	}
	var planes [8][]byte
	for w := range width {
		if planes[w] = r.stream(); len(planes[w]) != n {
			r.fail()
			return nil
		}
	}
	unit := [4]int64{1, 1e3, 1e6, 1e9}[scale]
	if !delta {
		out := r.b.integers(n)
		join(out, planes[:width])
		for i := range out {
			out[i] = (out[i] + least) * unit
		}
		return out
	}
	out := r.b.integers(n + 1)
	join(out[1:], planes[:width])
	out[0] = first * unit
	for i := range out[1:] {
		first += out[i+1] + least
		out[i+1] = first * unit
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
		if v.indexes = r.ints(n); r.outside(v.indexes, distinct) {
			r.fail()
		}
	case formDecimal, formDigits:
		if v.digits = int(r.byte()); v.digits > maxDigits {
			r.fail()
		}
		v.ints = r.ints(n)
	case formTimes:
		v.ints = r.ints(n)
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
	return v
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
	t := &texts{block: r.b, templates: r.ints(n), rank: r.b.integers(n), pieces: make([][][]byte, kept+1), variables: make([][]column, kept+1)}
	if r.outside(t.templates, kept+1) || r.b.bad {
		r.fail()
		return t
	}
	t.counts = make([]int, kept+1)
	for i, template := range t.templates {
		t.rank[i] = int64(t.counts[template])
		t.counts[template]++
	}
	holes := bytes.Count(templates.text, []byte{hole})
	if holes > len(r.head) { // each column has a byte there, at least
		r.fail()
		return t
	}
	columns, pieces := make([]column, 1+holes), make([][]byte, 0, kept+holes) // of all templates
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

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
	out, err := appendStored(r.b.streams[r.b.used][:0], packed, size)
	r.b.streams[r.b.used] = out
	r.b.used++
	if err != nil {
		r.fail()
		return nil
	}
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

// texts reads n texts.
func (r *reader) texts(n int) *texts {
	kept := r.number(n)
	templates := r.strings(kept)
	t := &texts{templates: r.ints(n), rank: make([]int, n), pieces: make([][][]byte, kept+1), variables: make([][]values, kept+1)}
	if r.outside(t.templates, kept+1) || r.b.bad {
		r.fail()
		return t
	}
	counts := make([]int, kept+1)
	for i, template := range t.templates {
		t.rank[i] = counts[template]
		counts[template]++
	}
	t.variables[0] = []values{r.column(counts[0], false)}
	for i := 1; i <= kept; i++ {
		t.pieces[i] = bytes.Split(templates.string(i-1), []byte{hole})
		for range t.pieces[i][1:] {
			if t.variables[i] = append(t.variables[i], r.column(counts[i], false)); r.b.bad {
				return t
			}
		}
	}
	return t
}

package pipe

import (
	"maps"
	"math"
	"slices"

	"github.com/cespare/xxhash/v2"
)

func abs(f float64) float64 { return math.Abs(f) }

// finite brings infinities back to the largest numbers; NaN, of two infinities, is 0.
func finite(f float64) float64 {
	if math.IsNaN(f) {
		return 0
	}
	return max(-math.MaxFloat64, min(math.MaxFloat64, f))
}

// maxExact is how many values uniq holds before it estimates, and quantile if memory is short.
const maxExact = 1024

// maxNumbers is how many numbers a quantile holds before it estimates.
const maxNumbers = 8192

// quantile holds numbers, in double precision, up to maxNumbers. Beyond that it holds how
// many are in buckets of equal ratio, as DDSketch does (Masson, Rim and Lee, VLDB 2019): the
// result is within 1 % of a value of the rank asked for. A t-digest is smaller, but bounds
// the error of the rank and not of the value, and depends on the order of merges.
type quantile struct {
	p       float64
	short   bool // of memory: maxExact, not maxNumbers
	n       int64
	full    [][]float64      // pieces of the numbers, which are not copied when there are more
	values  []float64        // the last piece
	buckets map[bucket]int64 // nil: full and values have all
	memory  *[]float64       // to join full and values, of many quantiles
}

// bucket is the ratio's power at the upper end of the bucket.
type bucket struct {
	sign  int8
	power int32
}

// accuracy is the relative error of an estimated quantile.
const accuracy = 0.01

var logRatio = math.Log1p(2 * accuracy / (1 - accuracy))

func bucketOf(f float64) bucket {
	switch {
	case f == 0:
		return bucket{}
	case f < 0:
		return bucket{-1, -int32(math.Ceil(math.Log(-f) / logRatio))}
	}
	return bucket{1, int32(math.Ceil(math.Log(f) / logRatio))}
}

// middle is the value of all in b that is at most accuracy away from each.
func (b bucket) middle() float64 {
	return float64(b.sign) * finite(math.Exp(float64(b.power)*float64(b.sign)*logRatio)) * (1 - accuracy)
}

func (b bucket) compare(c bucket) int {
	if b.sign != c.sign {
		return int(b.sign - c.sign)
	}
	return int(b.power) - int(c.power)
}

// bucketBytes is about what a bucket takes in a map.
const bucketBytes = 40

func (q *quantile) add(v Value) int {
	if _, ok := v.decimal(); !ok {
		return 0
	}
	return q.addFloat(floatOf(v.Text))
}

func (q *quantile) addInt(n int64, digits int) (grown int, ok bool) {
	f, ok := floatOfInt(n, digits)
	if ok {
		grown = q.addFloat(f)
	}
	return grown, ok
}

func (q *quantile) addFloat(f float64) int {
	q.n++
	if q.buckets != nil {
		return q.addBucket(bucketOf(f), 1)
	}
	grown := 0
	if len(q.values) == cap(q.values) {
		grown = q.room()
	}
	q.values = append(q.values, f)
	return grown + q.check()
}

// room makes room for more numbers.
func (q *quantile) room() (grown int) {
	const least, most = 8, 1024
	n := min(max(least, 2*cap(q.values)), most)
	if len(q.values) > 0 {
		q.full = append(q.full, q.values)
	}
	q.values = make([]float64, 0, n)
	return pieceBytes + 8*n
}

const pieceBytes = 24 // of a slice

// held is what the numbers take.
func (q *quantile) held() (n int) {
	for _, piece := range append(q.full, q.values) {
		if cap(piece) > 0 {
			n += pieceBytes + 8*cap(piece)
		}
	}
	return n
}

// check begins to estimate if there are too many values.
func (q *quantile) check() (grown int) {
	if q.buckets == nil && (q.n > maxNumbers || q.short && q.n > maxExact) {
		return q.useBuckets()
	}
	return 0
}

func (q *quantile) addBucket(b bucket, n int64) int {
	before := len(q.buckets)
	q.buckets[b] += n
	return bucketBytes * (len(q.buckets) - before)
}

// useBuckets begins to estimate.
func (q *quantile) useBuckets() (grown int) {
	grown = -q.held()
	q.buckets = make(map[bucket]int64)
	for _, piece := range append(q.full, q.values) {
		for _, f := range piece {
			grown += q.addBucket(bucketOf(f), 1)
		}
	}
	q.full, q.values = nil, nil
	return grown
}

func (q *quantile) merge(other state) (grown int) {
	o := other.(*quantile)
	if o.buckets != nil && q.buckets == nil {
		grown = q.useBuckets()
	}
	const few = 64
	if q.buckets == nil && o.buckets == nil && o.n > few {
		grown += o.held()
		if len(q.values) > 0 {
			q.full = append(q.full, q.values)
		}
		q.full, q.values, q.n = append(q.full, o.full...), o.values, q.n+o.n
		*o = quantile{p: o.p, short: o.short, memory: o.memory}
		return grown + q.check()
	}
	for _, piece := range append(o.full, o.values) {
		for _, f := range piece {
			grown += q.addFloat(f)
		}
	}
	for b, n := range o.buckets {
		q.n += n
		grown += q.addBucket(b, n)
	}
	return grown
}

// spare has q hold less.
func (q *quantile) spare() (grown int) {
	q.short = true
	return q.check()
}

func (q *quantile) estimate() string {
	if q.buckets == nil {
		return ""
	}
	return "within 1 % of the value"
}

func (q *quantile) value(buf []byte) Value {
	if q.n == 0 {
		return Value{}
	}
	rank := max(1, int64(math.Ceil(q.p*float64(q.n)-1e-9))) // from 1; 0.07*100 is above 7
	if q.buckets == nil {
		all := q.values
		if len(q.full) > 0 {
			all = (*q.memory)[:0]
			for _, piece := range append(q.full, q.values) {
				all = append(all, piece...)
			}
			*q.memory = all
		}
		return numberOf(buf, nth(all, int(rank-1)))
	}
	var last bucket
	for _, last = range slices.SortedFunc(maps.Keys(q.buckets), bucket.compare) {
		if rank -= q.buckets[last]; rank <= 0 {
			break
		}
	}
	return numberOf(buf, last.middle())
}

// nth returns the number that would be at index n if list were sorted. It changes the order. As in the
// SELECT of Floyd and Rivest (1975), pivots of long lists are near the number, by a sample: the first
// leaves few, and most comparisons come out alike.
func nth(list []float64, n int) float64 {
	const few, often = 12, 40
	for tries := 0; len(list) > few && tries < often; tries++ { // an order that is made to be bad is sorted
		low, high := 0, len(list)-1
		pivot := pivotOf(list, n)
		for low <= high {
			for list[low] < pivot {
				low++
			}
			for list[high] > pivot {
				high--
			}
			if low <= high {
				list[low], list[high] = list[high], list[low]
				low++
				high--
			}
		}
		switch {
		case n <= high:
			list = list[:high+1]
		case n >= low:
			list, n = list[low:], n-low
		default:
			return pivot
		}
	}
	slices.Sort(list)
	return list[n]
}

// pivotOf returns a number of list that is near the one at index n, on the side where more are.
func pivotOf(list []float64, n int) float64 {
	const size, long = 31, 8 * 31
	if len(list) < long {
		low, high := list[0], list[len(list)-1]
		return max(min(low, high), min(max(low, high), list[(len(list)-1)/2])) // the one in the middle
	}
	var sample [size]float64
	for i := range sample {
		sample[i] = list[i*(len(list)-1)/(size-1)]
	}
	slices.Sort(sample[:])
	at := n * size / len(list)
	if at > size/2 {
		return sample[at-1]
	}
	return sample[at+1]
}

// uniq counts different values. It holds their hashes up to maxExact. Beyond that it is a
// HyperLogLog (Flajolet, Fusy, Gandouet and Meunier, 2007) with 8,192 registers, whose
// standard error is 1.15 %.
type uniq struct {
	noInts
	hashes    map[uint64]struct{}
	registers []uint8 // nil: hashes has all
}

const (
	registerBits = 13
	hashBits     = 64 - registerBits
	hashBytes    = 24 // about, in a map
)

func (u *uniq) add(v Value) int {
	var buf [128]byte
	return u.addHash(xxhash.Sum64(appendKey(buf[:0], v)))
}

func (u *uniq) addHash(h uint64) (grown int) {
	if u.registers != nil {
		u.addRegister(h)
		return 0
	}
	if u.hashes == nil {
		u.hashes = make(map[uint64]struct{})
	}
	before := len(u.hashes)
	u.hashes[h] = struct{}{}
	grown = hashBytes * (len(u.hashes) - before)
	if len(u.hashes) > maxExact {
		grown += u.useRegisters()
	}
	return grown
}

// addRegister notes in the register of h how many zeros its rest begins with.
func (u *uniq) addRegister(h uint64) {
	zeros := 1
	for rest := h << registerBits; zeros <= hashBits && rest>>63 == 0; rest <<= 1 {
		zeros++
	}
	r := &u.registers[h>>hashBits]
	*r = max(*r, uint8(zeros))
}

// useRegisters begins to estimate.
func (u *uniq) useRegisters() (grown int) {
	u.registers = make([]uint8, 1<<registerBits)
	for h := range u.hashes {
		u.addRegister(h)
	}
	grown = len(u.registers) - hashBytes*len(u.hashes)
	u.hashes = nil
	return grown
}

func (u *uniq) merge(other state) (grown int) {
	o := other.(*uniq)
	if o.registers != nil && u.registers == nil {
		grown = u.useRegisters()
	}
	for h := range o.hashes {
		grown += u.addHash(h)
	}
	for i, zeros := range o.registers {
		u.registers[i] = max(u.registers[i], zeros)
	}
	return grown
}

func (u *uniq) spare() int { return 0 }

func (u *uniq) estimate() string {
	if u.registers == nil {
		return ""
	}
	return "standard error 1.15 %"
}

func (u *uniq) value(buf []byte) Value {
	n := float64(len(u.hashes))
	if u.registers != nil {
		n = math.Round(cardinality(u.registers))
	}
	return numberOf(buf, n)
}

// cardinality is the estimate of Ertl ("New cardinality estimation algorithms for
// HyperLogLog sketches", 2017, algorithm 6), which needs no corrections for small numbers.
func cardinality(registers []uint8) float64 {
	var having [hashBits + 2]float64 // registers by their value
	for _, r := range registers {
		having[r]++
	}
	m := float64(len(registers))
	z := m * tau(1-having[hashBits+1]/m)
	for k := hashBits; k > 0; k-- {
		z = (z + having[k]) / 2
	}
	z += m * sigma(having[0]/m)
	return m * m / (2 * math.Ln2 * z)
}

func sigma(x float64) float64 {
	if x == 1 {
		return math.Inf(1)
	}
	y, z := 1.0, x
	for before := -1.0; z != before; {
		before = z
		x *= x
		z += x * y
		y += y
	}
	return z
}

func tau(x float64) float64 {
	if x == 0 || x == 1 {
		return 0
	}
	y, z := 1.0, 1-x
	for before := -1.0; z != before; {
		before = z
		x = math.Sqrt(x)
		y /= 2
		z -= (1 - x) * (1 - x) * y
	}
	return z / 3
}

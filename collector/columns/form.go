package columns

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/bits"
	"slices"

	"github.com/rollway/rollway/internal/jsonline"
	"github.com/rollway/rollway/internal/times"
)

// Forms of a column.
const (
	formConstant = iota
	formStrings
	formDictionary
	formDecimal
	formDigits
	formTimes
	formHex
	formTexts
)

// appendColumn appends the head of a column whose values are places in text. Only with
// whole may it be split into texts.
func (e *Encoder) appendColumn(head []byte, values []span, text []byte, whole bool) []byte {
	if len(values) == 0 {
		return append(head, formStrings)
	}
	e.pause()
	first := text[values[0].start:values[0].end]
	if isConstant(values, text, first) {
		return appendBytes(append(head, formConstant), first)
	}
	if len(first) == len(`""`)+jsonline.TimeLen && first[0] == '"' {
		if e.readTimes(values, text) {
			return e.appendInts(append(head, formTimes), e.ints)
		}
	}
	if form, n, ok := e.readInts(values, text); ok {
		return e.appendInts(append(head, byte(form), byte(n)), e.ints)
	}
	if e.readDistinct(values, text) {
		return e.appendDictionary(head)
	}
	if e.readHex(values, text, len(first)) {
		return e.appendStream(append(head, formHex, byte(len(first))), e.joined, e.pack)
	}
	if whole && len(values) >= minRows && first[0] == '"' {
		if out, ok := e.appendTexts(head, values, text); ok {
			return out
		}
	}
	return e.appendStrings(append(head, formStrings), values, text)
}

func isConstant(values []span, text, first []byte) bool {
	for _, v := range values[1:] {
		if !bytes.Equal(text[v.start:v.end], first) {
			return false
		}
	}
	return true
}

// appendStrings appends the lengths and the bytes of the values.
func (e *Encoder) appendStrings(head []byte, values []span, text []byte) []byte {
	e.ints = e.ints[:0]
	for _, v := range values {
		e.ints = append(e.ints, int64(v.end-v.start))
	}
	head = e.appendInts(head, e.ints)
	e.joined = e.joined[:0]
	for _, v := range values {
		e.joined = append(e.joined, text[v.start:v.end]...)
	}
	return e.appendStream(head, e.joined, e.pack)
}

// readDistinct fills distinct, and ints with the index of each value; false: too many differ.
func (e *Encoder) readDistinct(values []span, text []byte) bool {
	e.distinct.Reset()
	e.ints = e.ints[:0]
	if len(values) < 8 {
		return false
	}
	for i, v := range values {
		e.ints = append(e.ints, int64(e.distinct.Add(text[v.start:v.end])))
		if n := e.distinct.Len(); n > 1<<12 || n > 4+i/4 && n > 48 {
			return false
		}
	}
	return e.distinct.Len() <= len(values)/2
}

func (e *Encoder) appendDictionary(head []byte) []byte {
	e.indexes = append(e.indexes[:0], e.ints...)
	head = binary.AppendUvarint(append(head, formDictionary), uint64(e.distinct.Len()))
	head = e.appendStrings(head, e.distinct.spans(), e.distinct.text)
	return e.appendInts(head, e.indexes)
}

func (s *Set) spans() []span {
	out := make([]span, len(s.ends))
	for i, end := range s.ends {
		if out[i].end = int32(end); i > 0 {
			out[i].start = int32(s.ends[i-1])
		}
	}
	return out
}

// readTimes fills ints with the times that the values are; false: not all are times as
// canonical lines have them.
func (e *Encoder) readTimes(values []span, text []byte) bool {
	e.ints = e.ints[:0]
	var cache times.Cache
	var again [jsonline.TimeLen]byte
	var second []byte // of the time before
	before := int64(0)
	for _, v := range values {
		b := text[v.start:v.end]
		if len(b) != len(`""`)+jsonline.TimeLen || b[0] != '"' || b[len(b)-1] != '"' {
			return false
		}
		b = b[1 : len(b)-1]
		if bytes.Equal(b[:jsonline.SecondLen], second) && b[len(second)] == '.' && b[len(b)-1] == 'Z' {
			nsec, ok := parseDigits(b[len(second)+1 : len(b)-1])
			if !ok {
				return false
			}
			e.ints = append(e.ints, before*1e9+nsec)
			continue
		}
		sec, nsec, ok := cache.Parse(b)
		if !ok || sec < -1<<33 || sec > 1<<33 {
			return false
		}
		if !bytes.Equal(jsonline.AppendUnix(again[:0], sec, nsec), b) {
			return false
		}
		e.ints = append(e.ints, sec*1e9+int64(nsec))
		second, before = b[:jsonline.SecondLen], sec
	}
	return true
}

const maxDigits = 18 // of an integer

// readInts fills ints with the digits of the values. The form is formDecimal with n fraction
// digits, or formDigits with n digits in all.
func (e *Encoder) readInts(values []span, text []byte) (form, n int, ok bool) {
	first := text[values[0].start:values[0].end]
	if len(first) == 0 || first[0] != '-' && first[0]-'0' > 9 {
		return 0, 0, false
	}
	if point := bytes.IndexByte(first, '.'); point >= 0 {
		n = len(first) - point - 1
	}
	e.ints = e.ints[:0]
	for _, v := range values {
		i, ok := parseDecimal(text[v.start:v.end], n)
		if !ok {
			return e.readDigits(values, text, len(first))
		}
		e.ints = append(e.ints, i)
	}
	return formDecimal, n, true
}

func (e *Encoder) readDigits(values []span, text []byte, n int) (int, int, bool) {
	e.ints = e.ints[:0]
	for _, v := range values {
		i, ok := parseDigits(text[v.start:v.end])
		if !ok || int(v.end-v.start) != n {
			return 0, 0, false
		}
		e.ints = append(e.ints, i)
	}
	return formDigits, n, true
}

// parseDecimal reads a number that is written as appendDecimal writes it.
func parseDecimal(b []byte, fraction int) (int64, bool) {
	negative := len(b) > 0 && b[0] == '-'
	if negative {
		b = b[1:]
	}
	whole := b
	i := int64(0)
	if fraction > 0 {
		point := len(b) - fraction - 1
		if point < 1 || b[point] != '.' || len(b)-1 > maxDigits {
			return 0, false
		}
		f, ok := parseDigits(b[point+1:])
		if !ok {
			return 0, false
		}
		whole, i = b[:point], f
	}
	w, ok := parseDigits(whole)
	if !ok || len(whole) > 1 && whole[0] == '0' {
		return 0, false
	}
	for range fraction {
		w *= 10
	}
	if i += w; negative {
		if i == 0 {
			return 0, false
		}
		i = -i
	}
	return i, true
}

func parseDigits(b []byte) (i int64, ok bool) {
	if len(b) == 0 || len(b) > maxDigits {
		return 0, false
	}
	for _, c := range b {
		if c-'0' > 9 {
			return 0, false
		}
		i = 10*i + int64(c-'0')
	}
	return i, true
}

// appendDecimal appends i divided by 10 to the power of fraction.
func appendDecimal(dst []byte, i int64, fraction int) []byte {
	u := uint64(i)
	if i < 0 {
		dst, u = append(dst, '-'), -u
	}
	var digits [20]byte
	at := len(digits)
	for n := 0; u > 0 || n <= fraction; n++ {
		at--
		digits[at] = byte('0' + u%10)
		u /= 10
	}
	dst = append(dst, digits[at:len(digits)-fraction]...)
	if fraction > 0 {
		dst = append(append(dst, '.'), digits[len(digits)-fraction:]...)
	}
	return dst
}

// appendDigits appends the n digits of i.
func appendDigits(dst []byte, i int64, n int) []byte {
	at := len(dst)
	dst = slices.Grow(dst, n)[:at+n]
	for u, out := uint64(i), dst[at:]; n > 0; n-- {
		out[n-1] = byte('0' + u%10)
		u /= 10
	}
	return dst
}

// hexDigits has the value of each hexadecimal digit, and 255 for other bytes.
var hexDigits = func() (d [256]byte) {
	for c := range d {
		switch {
		case '0' <= c && c <= '9':
			d[c] = byte(c - '0')
		case 'a' <= c && c <= 'f':
			d[c] = byte(c - 'a' + 10)
		default:
			d[c] = 255
		}
	}
	return d
}()

// readHex fills joined with the bytes of the values; false: not all are n hexadecimal digits.
func (e *Encoder) readHex(values []span, text []byte, n int) bool {
	if n == 0 || n%2 != 0 || n > math.MaxUint8 {
		return false
	}
	e.joined = e.joined[:0]
	for _, v := range values {
		if int(v.end-v.start) != n {
			return false
		}
		all := byte(0)
		for hex := text[v.start:v.end]; len(hex) >= 2; hex = hex[2:] {
			high, low := hexDigits[hex[0]], hexDigits[hex[1]]
			all |= high | low
			e.joined = append(e.joined, high<<4|low)
		}
		if all > 15 {
			return false
		}
	}
	return true
}

// appendInts appends integers. It may change them.
func (e *Encoder) appendInts(head []byte, ints []int64) []byte {
	if len(ints) == 0 {
		return head
	}
	scale := 0
	for scale < 3 && divisible(ints, 1000) {
		scale++
		for i := range ints {
			ints[i] /= 1000
		}
	}
	least, width := rangeOf(ints)
	delta := false
	if len(ints) > 2 {
		for i := len(ints) - 1; i > 0; i-- {
			ints[i] -= ints[i-1]
		}
		l, w := rangeOf(ints[1:])
		if w < width {
			delta, least, width = true, l, w
		} else {
			for i := 1; i < len(ints); i++ {
				ints[i] += ints[i-1]
			}
		}
	}
	first := int64(0)
	if delta {
		first, ints = ints[0], ints[1:]
	}
	flags := byte(width) | byte(scale)<<5
	if delta {
		flags |= 1 << 4
	}
	head = binary.AppendVarint(append(head, flags), least)
	if delta {
		head = binary.AppendVarint(head, first)
	}
	plane := slices.Grow(e.joined[:0], len(ints))[:len(ints)]
	for w := range width {
		for i, v := range ints {
			plane[i] = byte(uint64(v-least) >> (8 * w))
		}
		head = e.appendStream(head, plane, e.packIntegers)
	}
	e.joined = plane
	return head
}

func divisible(ints []int64, by int64) bool {
	any := false
	for _, v := range ints {
		if v%by != 0 {
			return false
		}
		any = any || v != 0
	}
	return any
}

// rangeOf returns the least integer, and how many bytes the others less it need.
func rangeOf(ints []int64) (least int64, width int) {
	least, most := ints[0], ints[0]
	for _, v := range ints {
		least, most = min(least, v), max(most, v)
	}
	return least, (bits.Len64(uint64(most)-uint64(least)) + 7) / 8
}

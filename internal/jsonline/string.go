// Package jsonline writes parts of the canonical line: one JSON object on one line. Its
// functions take and return the destination slice, allocate only when it must grow, and
// never fail.
package jsonline

import (
	"encoding/binary"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"
	"unsafe"
)

const hexDigits = "0123456789abcdef"

// escapeOf tells what a byte needs inside a JSON string: 0 nothing, 'u' the
// six-byte form, utf8Lead a check of the sequence it starts, anything else the
// letter after the backslash.
var escapeOf = func() (t [256]byte) {
	for i := range 0x20 {
		t[i] = 'u'
	}
	t['"'], t['\\'] = '"', '\\'
	t['\n'], t['\r'], t['\t'], t['\b'], t['\f'] = 'n', 'r', 't', 'b', 'f'
	for i := utf8.RuneSelf; i < 256; i++ {
		t[i] = utf8Lead
	}
	return t
}()

const utf8Lead = 'x'

// AppendString appends s as a quoted JSON string. Control bytes are escaped,
// each byte that is not part of valid UTF-8 becomes U+FFFD; everything else is
// copied as it is.
func AppendString(dst []byte, s string) []byte {
	n := len(dst)
	end := n + len(s) + 2
	if end > cap(dst) {
		dst = slices.Grow(dst, len(s)+2)
	}
	dst = dst[:end]
	dst[n] = '"'
	if len(s) >= 8 && len(s) <= 16 { // copyClean without a call
		to := dst[n+1 : end]
		first, last := load64(s), load64(s[len(s)-8:])
		store64(to, first)
		store64(to[len(s)-8:], last)
		if dirtyBytes(first)|dirtyBytes(last) == 0 {
			to[len(s)] = '"'
			return dst
		}
	} else if copyClean(dst[n+1:end-1], s) {
		dst[end-1] = '"'
		return dst
	}
	return append(appendEscapedSlow(dst[:n+1], s), '"')
}

// AppendKey appends key as a quoted JSON string and a colon, after a comma where
// dst is not empty and does not end in an opening brace: the last byte of a
// complete value is never one.
func AppendKey(dst []byte, key string) []byte { return AppendCheckedKey(dst, key, nil) }

// AppendCheckedKey is AppendKey. It sets odd, if that is not nil, where key is
// not valid UTF-8, so that another key may be written alike.
func AppendCheckedKey(dst []byte, key string, odd *bool) []byte {
	i := len(dst)
	if i+len(key)+4 > cap(dst) {
		dst = slices.Grow(dst, len(key)+4)
	}
	dst = dst[:i+len(key)+4]
	if i > 0 && dst[i-1] != '{' {
		dst[i] = ','
		i++
	}
	dst[i] = '"'
	i++
	if n := len(key); n >= 4 && n <= 16 { // copyClean for most keys, without a call
		to := dst[i : i+n+2]
		var dirty uint64
		if n >= 8 {
			first, last := load64(key), load64(key[n-8:])
			dirty = dirtyBytes(first) | dirtyBytes(last)
			store64(to, first)
			store64(to[n-8:], last)
		} else {
			first, last := load32(key), load32(key[n-4:])
			dirty = dirtyBytes(uint64(first) | uint64(last)<<32)
			store32(to, first)
			store32(to[n-4:], last)
		}
		if dirty == 0 {
			to[n], to[n+1] = '"', ':'
			return dst[:i+n+2]
		}
	} else if copyClean(dst[i:i+n], key) {
		dst[i+n], dst[i+n+1] = '"', ':'
		return dst[:i+n+2]
	}
	return appendOddKey(dst[:i], key, odd)
}

// appendOddKey is AppendCheckedKey after the quote, for a key with escapes.
func appendOddKey(dst []byte, key string, odd *bool) []byte {
	if odd != nil && !utf8.ValidString(key) {
		*odd = true
	}
	return append(appendEscapedSlow(dst, key), '"', ':')
}

// AppendStringBytes is AppendString for a byte slice, which it does not keep.
func AppendStringBytes(dst, s []byte) []byte {
	return AppendString(dst, unsafe.String(unsafe.SliceData(s), len(s)))
}

// AppendEscaped appends s as AppendString does, without the quotes.
func AppendEscaped(dst []byte, s string) []byte {
	n := len(dst)
	if n+len(s) > cap(dst) {
		dst = slices.Grow(dst, len(s))
	}
	dst = dst[:n+len(s)]
	if copyClean(dst[n:], s) {
		return dst
	}
	return appendEscapedSlow(dst[:n], s)
}

// copyClean copies s, which has the length of dst, and reports whether all of
// it needs no escape: printable ASCII except the quote and the backslash. It reads eight
// bytes at a time, with copyLong sixteen; the last ones overlap those before.
func copyClean(dst []byte, s string) bool {
	n := len(s)
	dst = dst[:n]
	switch {
	case hasCopyLong && n >= longCopy:
		return copyLong(unsafe.SliceData(dst), unsafe.StringData(s), n)
	case n >= 8:
		var dirty uint64
		for i := 0; i < n-8; i += 8 {
			w := load64(s[i:])
			dirty |= dirtyBytes(w)
			store64(dst[i:], w)
		}
		w := load64(s[n-8:])
		dirty |= dirtyBytes(w)
		store64(dst[n-8:], w)
		return dirty == 0
	case n >= 4:
		first, last := load32(s), load32(s[n-4:])
		store32(dst, first)
		store32(dst[n-4:], last)
		return dirtyBytes(uint64(first)|uint64(last)<<32) == 0
	}
	for i := range n {
		if escapeOf[s[i]] != 0 {
			return false
		}
		dst[i] = s[i]
	}
	return true
}

// longCopy is from where copyLong is faster; it takes 16 bytes and more.
const longCopy = 24

// dirtyBytes returns 0 if each byte of w needs no escape. A byte below 0x20, a
// quote or a backslash sets its high bit by the borrow of a subtraction, one
// that is not ASCII has it set. (A borrow may set the bit of a clean byte as
// well, but only after a byte that is not.)
func dirtyBytes(w uint64) uint64 {
	const (
		ones  = 0x0101010101010101
		highs = 0x8080808080808080
	)
	return ((w - ones*0x20) | (w ^ ones*'"' - ones) | (w ^ ones*'\\' - ones) | w) & highs
}

func load64(s string) uint64 {
	_ = s[7]
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
		uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
}

func load32(s string) uint32 {
	_ = s[3]
	return uint32(s[0]) | uint32(s[1])<<8 | uint32(s[2])<<16 | uint32(s[3])<<24
}

func store64(b []byte, w uint64) { binary.LittleEndian.PutUint64(b, w) }
func store32(b []byte, w uint32) { binary.LittleEndian.PutUint32(b, w) }

func appendEscapedSlow(dst []byte, s string) []byte {
	start := 0
	for i := 0; i < len(s); {
		e := escapeOf[s[i]]
		if e == 0 {
			i++
			continue
		}
		if e == utf8Lead {
			r, size := utf8.DecodeRuneInString(s[i:])
			if r != utf8.RuneError || size > 1 {
				i += size
				continue
			}
			dst = append(dst, s[start:i]...)
			dst = append(dst, "\uFFFD"...)
			i++
			start = i
			continue
		}
		dst = append(dst, s[start:i]...)
		if e == 'u' {
			dst = append(dst, '\\', 'u', '0', '0', hexDigits[s[i]>>4], hexDigits[s[i]&0xF])
		} else {
			dst = append(dst, '\\', e)
		}
		i++
		start = i
	}
	return append(dst, s[start:]...)
}

// AppendLossNotice appends the canonical line that announces a gap in a
// stream: count lines were dropped for reason.
//
//	{"time":"…","level":"WARN","msg":"rollway: 812 lines dropped","attrs":{"reason":"buffer full","dropped":812}}
func AppendLossNotice(dst []byte, t time.Time, count uint64, reason string) []byte {
	noun := " lines dropped"
	if count == 1 {
		noun = " line dropped"
	}
	dst = append(dst, `{"time":"`...)
	dst = AppendTime(dst, t)
	dst = append(dst, `","level":"WARN","msg":"rollway: `...)
	dst = strconv.AppendUint(dst, count, 10)
	dst = append(dst, noun...)
	dst = append(dst, `","attrs":{"reason":`...)
	dst = AppendString(dst, reason)
	dst = append(dst, `,"dropped":`...)
	dst = strconv.AppendUint(dst, count, 10)
	return append(dst, "}}\n"...)
}

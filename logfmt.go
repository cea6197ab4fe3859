package rollway

import (
	"log/slog"
	"time"
	"unicode/utf8"

	"github.com/rollway/rollway/internal/jsonline"
)

// appendLogfmt appends the logfmt line for r.
func (f *format) appendLogfmt(dst []byte, cache *secondCache, st, ctx *state, r *record, attrs []slog.Attr) []byte {
	if r.hasTime {
		dst = append(dst, "time="...)
		if f.time == RFC3339Nano && f.location == nil {
			dst = cache.append(dst, r.sec, r.nsec)
		} else {
			dst = f.appendTextTime(dst, r.time())
		}
		dst = append(dst, ' ')
	}
	dst = append(dst, "level="...)
	dst = jsonline.AppendLevel(dst, r.level)
	dst = append(dst, " msg="...)
	dst = appendLogfmtWord(dst, r.msg)
	if name := st.slots[slotLogger]; name != "" {
		dst = append(dst, " logger="...)
		dst = appendLogfmtWord(dst, name)
	}
	dst = f.appendTextRest(dst, st, ctx, r, attrs)
	if r.stack != "" {
		dst = f.appendTextKey(dst, "", "stack")
		dst = appendLogfmtWord(dst, r.stack)
	}
	return append(dst, '\n')
}

// appendTextTime appends a time as a word.
func (f *format) appendTextTime(dst []byte, t time.Time) []byte {
	switch f.time {
	case UnixSeconds, UnixMilli, UnixNano:
		return f.appendTimeValue(dst, t)
	}
	return appendLogfmtWord(dst, string(f.appendLayoutTime(nil, t)))
}

// appendLogfmtKey appends a key; what cannot stand in one becomes _.
func appendLogfmtKey(dst []byte, key string) []byte {
	for _, r := range key {
		if r == ' ' || r == '=' || r == '"' || needsEscape(r) {
			r = '_'
		}
		dst = utf8.AppendRune(dst, r)
	}
	return dst
}

// appendLogfmtWord appends s, as a JSON string if it is empty or holds a
// space, a quote, an equals sign or anything that is not printable.
func appendLogfmtWord(dst []byte, s string) []byte {
	if s == "" {
		return append(dst, `""`...)
	}
	for _, r := range s {
		if r == ' ' || r == '"' || r == '=' || r == '\\' || needsEscape(r) {
			return appendPrintable(dst, s)
		}
	}
	return append(dst, s...)
}

// appendPrintable appends s as a JSON string in which nothing is left that is
// not printable.
func appendPrintable(dst []byte, s string) []byte {
	dst = append(dst, '"')
	for _, r := range s {
		switch {
		case r == utf8.RuneError:
			dst = append(dst, "\uFFFD"...)
		case r >= utf8.RuneSelf && needsEscape(r) || r == 0x7f:
			dst = appendUnicodeEscape(dst, r)
		case r < utf8.RuneSelf:
			dst = jsonline.AppendEscaped(dst, string(byte(r)))
		default:
			dst = utf8.AppendRune(dst, r)
		}
	}
	return append(dst, '"')
}

// appendUnicodeEscape appends \uXXXX, twice for what lies beyond 16 bits.
func appendUnicodeEscape(dst []byte, r rune) []byte {
	if r > 0xFFFF {
		r -= 0x10000
		dst = appendUnicodeEscape(dst, 0xD800+r>>10)
		r = 0xDC00 + r&0x3FF
	}
	const digits = "0123456789abcdef"
	return append(dst, '\\', 'u', digits[r>>12&0xF], digits[r>>8&0xF], digits[r>>4&0xF], digits[r&0xF])
}

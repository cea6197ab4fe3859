package encode

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"strconv"
	"unicode/utf8"

	"github.com/rollway/rollway/internal/jsonline"
)

// JSON that comes from elsewhere: a json.RawMessage, or what a MarshalJSON
// method returns. encoding/json passes on some that others do not read.

// maxRawDepth bounds arrays and objects in one another: readers have bounds of
// their own, jq 1.6 at 256.
const maxRawDepth = 200

// AppendRawJSON appends raw if it is valid JSON, else a string that begins with
// !ERROR. nil is null.
func AppendRawJSON(dst []byte, raw json.RawMessage) []byte {
	if raw == nil {
		return append(dst, "null"...)
	}
	if !json.Valid(raw) {
		// Not the bytes: redaction could not look through them.
		dst = append(dst, `"!ERROR: not JSON, `...)
		return append(strconv.AppendInt(dst, int64(len(raw)), 10), ` bytes"`...)
	}
	return appendCompact(dst, raw)
}

// appendCompact appends valid JSON so that every reader takes it: without white
// space; with U+FFFD for a byte that is not UTF-8 and for half a surrogate pair;
// a number that is beyond a float64 as a string. What is too deep becomes a
// string that says so.
func appendCompact(dst []byte, raw []byte) []byte {
	mark := len(dst)
	depth := 0
	for i := 0; i < len(raw); {
		switch c := raw[i]; c {
		case ' ', '\t', '\r', '\n':
			i++
		case '"':
			var n int
			dst, n = appendCompactString(dst, raw[i:])
			i += n
		case '{', '[':
			if depth++; depth > maxRawDepth {
				return append(dst[:mark], `"!ERROR: JSON too deep"`...)
			}
			dst = append(dst, c)
			i++
		case '}', ']':
			depth--
			dst = append(dst, c)
			i++
		case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
			n := 1
			for i+n < len(raw) && isNumberByte(raw[i+n]) {
				n++
			}
			dst = appendCompactNumber(dst, raw[i:i+n])
			i += n
		default: // a comma, a colon, a letter of true, false or null
			dst = append(dst, c)
			i++
		}
	}
	return dst
}

func isNumberByte(c byte) bool {
	return '0' <= c && c <= '9' || c == '.' || c == 'e' || c == 'E' || c == '+' || c == '-'
}

// appendCompactNumber appends a number; one of a length that a float64 may not
// hold is tried.
func appendCompactNumber(dst, number []byte) []byte {
	const harmless = 300 // digits without an exponent
	exponent := false
	for _, c := range number {
		exponent = exponent || c == 'e' || c == 'E'
	}
	if exponent || len(number) > harmless {
		if _, err := strconv.ParseFloat(bytesAsString(number), 64); err != nil {
			return append(append(append(dst, '"'), number...), '"')
		}
	}
	return append(dst, number...)
}

// appendCompactString appends the string that raw begins with and returns its
// length.
func appendCompactString(dst, raw []byte) ([]byte, int) {
	start, i := 0, 1
	for raw[i] != '"' {
		switch c := raw[i]; {
		case c == '\\' && raw[i+1] == 'u':
			if n := surrogates(raw[i:]); n > 0 {
				i += n
				continue
			}
			dst = append(append(dst, raw[start:i]...), `\ufffd`...)
			i += len(`\u0000`)
			start = i
		case c == '\\':
			i += 2
		case c < utf8.RuneSelf:
			i++
		default:
			r, size := utf8.DecodeRune(raw[i:])
			if r == utf8.RuneError && size == 1 {
				dst = append(append(dst, raw[start:i]...), "\uFFFD"...)
				start = i + 1
			}
			i += size
		}
	}
	i++
	return append(dst, raw[start:i]...), i
}

// surrogates returns the length of the escape that raw begins with, of both
// where two make a pair, or 0 where it is half of one.
func surrogates(raw []byte) int {
	const escape = len(`\u0000`)
	high, _ := strconv.ParseUint(bytesAsString(raw[2:escape]), 16, 16) // cannot fail in valid JSON
	switch {
	case high < 0xD800 || high > 0xDFFF:
		return escape
	case high > 0xDBFF || len(raw) < 2*escape || raw[escape] != '\\' || raw[escape+1] != 'u':
		return 0
	}
	low, _ := strconv.ParseUint(bytesAsString(raw[escape+2:2*escape]), 16, 16)
	if low < 0xDC00 || low > 0xDFFF {
		return 0
	}
	return 2 * escape
}

// appendBytes appends a []byte as a JSON value.
func (f *Format) appendBytes(dst, b []byte) []byte {
	switch {
	case b == nil:
		return append(dst, "null"...)
	case f.Bytes == BytesText:
		return jsonline.AppendStringBytes(dst, b)
	}
	dst = append(dst, '"')
	if f.Bytes == BytesHex {
		dst = hex.AppendEncode(dst, b)
	} else {
		dst = base64.StdEncoding.AppendEncode(dst, b)
	}
	return append(dst, '"')
}

// validUTF8 returns s with U+FFFD in the place of each byte that is not part of
// valid UTF-8, as a JSON string has it.
func validUTF8(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	return string([]rune(s))
}

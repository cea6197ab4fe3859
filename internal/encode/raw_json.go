package encode

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"strconv"
	"unicode/utf8"

	"github.com/rollway/rollway/internal/jsonline"
	"github.com/rollway/rollway/internal/jsonwalk"
)

// Raw JSON is a json.RawMessage or the result of a MarshalJSON method. encoding/json
// accepts some that other readers do not.

// maxRawDepth bounds nested arrays and objects: readers have bounds too, jq 1.6 256.
const maxRawDepth = 200

// AppendRawJSON appends raw if it is valid JSON, else a string that begins with
// !ERROR. nil is null.
func AppendRawJSON(dst []byte, raw json.RawMessage) []byte {
	if raw == nil {
		return append(dst, "null"...)
	}
	c := jsonwalk.Checker{MaxDepth: 10_000}
	end := c.Value(raw, jsonwalk.SkipSpace(raw, 0))
	switch {
	case end < 0 || jsonwalk.SkipSpace(raw, end) != len(raw):
		// Not the bytes: redaction could not search them.
		dst = append(dst, `"!ERROR: not JSON, `...)
		return append(strconv.AppendInt(dst, int64(len(raw)), 10), ` bytes"`...)
	case c.Depth > maxRawDepth:
		return append(dst, `"!ERROR: JSON too deep"`...)
	}
	return appendCompact(dst, raw)
}

// appendCompact appends valid JSON in a form that every reader accepts: without
// white space; with U+FFFD for a byte that is not UTF-8 and for half a surrogate
// pair; with a number beyond a float64 as a string.
func appendCompact(dst, raw []byte) []byte {
	for i := 0; i < len(raw); {
		end := i + 1
		switch c := raw[i]; {
		case jsonwalk.IsSpace(c):
		case c == '"':
			end = jsonwalk.CheckString(raw, i)
			dst = appendCompactString(dst, raw[i:end])
		case c == '-' || jsonwalk.IsDigit(c):
			end = jsonwalk.CheckNumber(raw, i)
			dst = appendCompactNumber(dst, raw[i:end])
		default: // a bracket, a comma, a colon, a letter of true, false or null
			dst = append(dst, c)
		}
		i = end
	}
	return dst
}

// appendCompactNumber appends a number. It parses one so long that a float64 may not
// hold it.
func appendCompactNumber(dst, number []byte) []byte {
	const harmless = 300 // digits without an exponent
	if len(number) > harmless || bytes.ContainsAny(number, "eE") {
		if _, err := strconv.ParseFloat(bytesAsString(number), 64); err != nil {
			return append(append(append(dst, '"'), number...), '"')
		}
	}
	return append(dst, number...)
}

// appendCompactString appends a string, which has its quotes.
func appendCompactString(dst, raw []byte) []byte {
	start := 0
	for i := 0; i < len(raw); {
		switch c := raw[i]; {
		case c == '\\':
			r, n := jsonwalk.Escape(raw[i:])
			if r == utf8.RuneError {
				dst = append(append(dst, raw[start:i]...), `\ufffd`...)
				start = i + n
			}
			i += n
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
	return append(dst, raw[start:]...)
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

// validUTF8 returns s with U+FFFD for each byte that is not part of valid UTF-8, as in
// a JSON string.
func validUTF8(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	return string([]rune(s))
}

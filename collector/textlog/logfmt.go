package textlog

import (
	"bytes"

	"github.com/rollway/rollway/internal/jsonwalk"
	"github.com/rollway/rollway/internal/times"
)

// AppendLogfmt appends the pairs of a line of logfmt as members of a JSON object, and
// reports whether the line is one: pairs name=value with blanks between them, two of them
// or more, and nothing else. A name is letters, digits and the signs _ - . / @ and begins
// with a letter, _ or @. A value is in quotes, with the escapes of JSON or Go, or has
// neither quotes nor blanks. Without quotes true, false and numbers that have no exponent
// are of JSON; all else is text. t, as Grafana and log15 write the time, becomes ts. The
// line is valid UTF-8.
func AppendLogfmt(dst, line []byte) (object []byte, is bool) {
	object = append(dst, '{')
	pairs := 0
	for at := skipBlanks(line, 0); at < len(line); at = skipBlanks(line, at) {
		end := logfmtName(line, at)
		if end < 0 {
			return object[:len(dst)], false
		}
		name := line[at:end]
		end++
		if string(name) == "t" && times.IsCalendar(bytes.TrimLeft(line[end:], `"`)) {
			name = nameTime
		}
		object = append(append(append(object, '"'), name...), `":`...)
		if object, at = appendLogfmtValue(object, line, end); at < 0 || at < len(line) && line[at] != ' ' && line[at] != '\t' {
			return object[:len(dst)], false
		}
		object = append(object, ',')
		pairs++
	}
	if pairs < 2 {
		return object[:len(dst)], false
	}
	object[len(object)-1] = '}'
	return object, true
}

var nameTime = []byte("ts")

// maxName is how long a name in logfmt may be.
const maxName = 128

// IsLogfmt reports whether a line may be logfmt: it begins with a name and an equals sign.
func IsLogfmt(line []byte) bool {
	end := bytes.IndexByte(line[:min(len(line), maxName)], '=')
	return end > 0 && logfmtName(line[:end+1], 0) > 0
}

// logfmtName returns where the name at an offset ends, at an equals sign; or -1.
func logfmtName(line []byte, at int) (end int) {
	for end = at; end < len(line) && end < at+maxName; end++ {
		switch c := line[end]; {
		case isLetter(c), c == '_', c == '@':
		case end > at && (jsonwalk.IsDigit(c) || c == '.' || c == '-' || c == '/'):
		case end > at && c == '=':
			return end
		default:
			return -1
		}
	}
	return -1
}

// appendLogfmtValue appends the value at an offset as JSON, and returns where it ends; -1:
// it is not whole.
func appendLogfmtValue(dst, line []byte, at int) (value []byte, end int) {
	if at < len(line) && line[at] == '"' {
		return appendQuoted(dst, line, at+1)
	}
	for end = at; end < len(line) && line[end] > ' '; end++ {
		if line[end] == '"' {
			return dst, -1
		}
	}
	bare := line[at:end]
	if isJSON(bare) {
		return append(dst, bare...), end
	}
	dst = append(dst, '"')
	for _, c := range bare {
		if c == '\\' {
			dst = append(dst, '\\')
		}
		dst = append(dst, c)
	}
	return append(dst, '"'), end
}

// isJSON reports whether a value without quotes is true, false or a number of JSON.
func isJSON(bare []byte) bool {
	if len(bare) == 0 || bare[0] != '-' && !jsonwalk.IsDigit(bare[0]) {
		return string(bare) == "true" || string(bare) == "false"
	}
	return jsonwalk.CheckNumber(bare, 0) == len(bare) && bytes.IndexByte(bare, 'e') < 0 && bytes.IndexByte(bare, 'E') < 0
}

// appendQuoted appends what is in quotes from an offset on as a JSON string.
func appendQuoted(dst, line []byte, at int) (value []byte, end int) {
	const hex = "0123456789abcdef"
	start := len(dst)
	dst = append(dst, '"')
	for ; at < len(line); at++ {
		c := line[at]
		switch {
		case c == '"':
			dst = append(dst, '"')
			if jsonwalk.CheckString(dst, start) != len(dst) { // of an escape
				return dst, -1
			}
			return dst, at + 1
		case c < ' ':
			dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		case c == '\\' && at+1 < len(line):
			if at++; line[at] == 'x' && at+1 < len(line) && line[at+1]-'0' < 8 { // of Go; from 128 on it is no text
				dst = append(dst, `\u00`...)
			} else if i := bytes.IndexByte([]byte(`av'`), line[at]); i >= 0 {
				dst = append(dst, [...]string{`\u0007`, `\u000b`, `'`}[i]...)
			} else {
				dst = append(dst, '\\', line[at])
			}
		default:
			dst = append(dst, c)
		}
	}
	return dst, -1
}

// Package template finds what messages of one kind have in common: it replaces what varies,
// such as numbers and identifiers, by placeholders.
package template

import (
	"bytes"
	"net/netip"
)

// Limits of a template.
const (
	MaxBytes  = 4096 // of a template
	MaxWords  = 200  // a message with more is cut to KeptWords
	KeptWords = 102

	maxToken = 256 // bytes; what is longer is data
	minHex   = 8   // characters of a hexadecimal identifier
	minID    = 16  // characters of an identifier of letters and digits
)

const cutMark = " …"

// Append appends the template of text to dst. It may be called concurrently.
//
//   - The result depends on text alone, not on other messages.
//   - No ASCII digit is left. The placeholders are <num>, <hex>, <id>, <uuid>, <ip>, <time>,
//     <long> for a run of more than 256 bytes without a break, and "<str>" for what is in
//     double quotes.
//   - It has at most MaxBytes bytes and MaxWords words. What is cut ends with "…".
//   - The template of a template is the same template.
func Append(dst, text []byte) []byte {
	start, words, inWord := len(dst), 0, false
	kept := start // where KeptWords words end
	for at := 0; at < len(text); {
		before := len(dst)
		at, dst = appendNext(dst, text, at)
		if len(dst)-start > MaxBytes-len(cutMark) {
			return appendCut(dst[:before], start)
		}
		space := isSpace(dst[before])
		if !space && !inWord {
			words++
		}
		inWord = !space
		switch {
		case words > MaxWords:
			return appendCut(dst[:kept], start)
		case words <= KeptWords && inWord:
			kept = len(dst)
		}
	}
	return dst
}

func appendCut(dst []byte, start int) []byte {
	return append(dst[:start+len(bytes.TrimRight(dst[start:], " \t\r\n"))], cutMark...)
}

// appendNext appends the template of what begins at text[at], and returns where it ends.
func appendNext(dst, text []byte, at int) (int, []byte) {
	if text[at] == '"' {
		if n := bytes.IndexByte(text[at+1:], '"'); n > 0 {
			return at + n + 2, append(dst, `"<str>"`...)
		}
	}
	end, digits := at, false
	for end < len(text) && isToken(text[end]) {
		digits = digits || isDigit(text[end])
		end++
	}
	switch {
	case end == at:
		return at + 1, append(dst, text[at])
	case end-at > maxToken:
		return end, append(dst, "<long>"...)
	case digits:
		return end, appendToken(dst, text[at:end])
	}
	return end, append(dst, text[at:end]...)
}

// appendToken appends the template of a token that has a digit.
func appendToken(dst, token []byte) []byte {
	whole := bytes.TrimRight(token, ".:-+")
	if name := kindOf(whole); name != "" {
		return append(append(dst, name...), token[len(whole):]...)
	}
	for at := 0; at < len(token); {
		end := at
		for end < len(token) && isAlphanumeric(token[end]) {
			end++
		}
		if end == at {
			if sign := at == 0 && (token[0] == '-' || token[0] == '+') && len(token) > 1 && isDigit(token[1]); !sign {
				dst = append(dst, token[at])
			}
			at++
			continue
		}
		if name := idOf(token[at:end]); name != "" {
			dst, at = append(dst, name...), end
			continue
		}
		at, dst = appendNumbers(dst, token, at, end)
	}
	return dst
}

// appendNumbers appends token[at:end] with placeholders for its numbers. The last
// number may have a point and go on past end. It returns where it stopped reading.
func appendNumbers(dst, token []byte, at, end int) (int, []byte) {
	for at < end {
		if !isDigit(token[at]) {
			dst = append(dst, token[at])
			at++
			continue
		}
		for at < len(token) && (isDigit(token[at]) || token[at] == '.' && at+1 < len(token) && isDigit(token[at+1])) {
			at++
		}
		dst = append(dst, "<num>"...)
	}
	return at, dst
}

// kindOf returns the placeholder for a whole token, or "".
func kindOf(token []byte) string {
	switch {
	case matches(token, "hhhhhhhh-hhhh-hhhh-hhhh-hhhhhhhhhhhh") && len(token) == 36:
		return "<uuid>"
	case matches(token, "dddd-dd-dd"), matches(token, "dd:dd:dd"):
		return "<time>"
	case bytes.Count(token, []byte(".")) < 3 && bytes.Count(token, []byte(":")) < 2:
		return ""
	}
	var err error
	if bytes.Count(token, []byte(":")) == 1 {
		_, err = netip.ParseAddrPort(string(token))
	} else {
		_, err = netip.ParseAddr(string(token))
	}
	if err == nil {
		return "<ip>"
	}
	return ""
}

// idOf returns the placeholder for letters and digits that are an identifier, or "".
func idOf(part []byte) string {
	digits, letters, hex := 0, 0, 0
	for _, c := range part {
		switch {
		case isDigit(c):
			digits++
		case isHex(c):
			hex++
		default:
			letters++
		}
	}
	switch {
	case digits > 0 && hex > 0 && letters == 0 && len(part) >= minHex,
		len(part) > 2 && part[0] == '0' && part[1] == 'x' && letters == 1:
		return "<hex>"
	case digits > 0 && hex+letters > 0 && len(part) >= minID:
		return "<id>"
	}
	return ""
}

// matches reports whether text begins with shape, in which d is a digit, h a hexadecimal one.
func matches(text []byte, shape string) bool {
	if len(text) < len(shape) {
		return false
	}
	for i := range len(shape) {
		switch c := text[i]; shape[i] {
		case 'd':
			if !isDigit(c) {
				return false
			}
		case 'h':
			if !isDigit(c) && !isHex(c) {
				return false
			}
		default:
			if c != shape[i] {
				return false
			}
		}
	}
	return true
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// isHex reports whether c is one of the letters among hexadecimal digits.
func isHex(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'f' }

func isAlphanumeric(c byte) bool { return isDigit(c) || 'a' <= c|0x20 && c|0x20 <= 'z' }

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

func isToken(c byte) bool {
	return isAlphanumeric(c) || c >= 0x80 || c == '_' || c == '.' || c == ':' || c == '-' || c == '+'
}

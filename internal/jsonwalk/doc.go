// Package jsonwalk finds values, members and texts in JSON without decoding it
// and without allocating.
//
// Positions are indexes into the text. The end of a value is the index of the
// first byte after it; an end of -1 means that there is no value.
//
// There are two ways through a text:
//
//   - A [Checker] is for text from elsewhere. It accepts exactly the JSON of RFC
//     8259, except that it does not look at UTF-8: bytes in strings that are not
//     valid UTF-8 pass.
//   - [SkipString], [SkipValue], [Members] and [Elements] are for text that is known
//     to be valid JSON: canonical lines, or what a Checker or a decoder has read. On
//     other text their results are not defined, but they return, do not panic and do
//     not go beyond the end of the text.
//
// Both take white space between tokens.
package jsonwalk

// A Span is the place of a value or a name in a text.
type Span struct{ Start, End int }

// Of returns the part of the text at the span.
func (s Span) Of(text []byte) []byte { return text[s.Start:s.End] }

// Len returns the length of the span in bytes.
func (s Span) Len() int { return s.End - s.Start }

// SkipSpace returns the index of the first byte from b[i] on that is not white
// space.
func SkipSpace(b []byte, i int) int {
	for i < len(b) && IsSpace(b[i]) {
		i++
	}
	return i
}

// IsSpace reports whether c is white space between tokens.
func IsSpace(c byte) bool { return c <= ' ' && (c == ' ' || c == '\n' || c == '\r' || c == '\t') }

// IsDigit reports whether c is a decimal digit.
func IsDigit(c byte) bool { return c-'0' <= 9 }

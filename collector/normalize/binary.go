package normalize

import "unicode/utf8"

// textControls has a bit for each control character that text may have: backspace, tab, line
// feed, form feed, carriage return and escape.
const textControls = 1<<'\b' | 1<<'\t' | 1<<'\n' | 1<<'\f' | 1<<'\r' | 1<<0x1b

// odd returns how many bytes of b are not UTF-8, and a bit for each of its control characters
// that no text has.
func odd(b []byte) (invalid int, controls uint32) {
	for i := 0; i < len(b); {
		if c := b[i]; c < utf8.RuneSelf {
			if c < ' ' {
				controls |= 1 << c
			}
			i++
			continue
		}
		r, size := utf8.DecodeRune(b[i:])
		if r == utf8.RuneError && size == 1 {
			invalid++
		}
		i += size
	}
	return invalid, controls &^ textControls
}

// IsText reports whether bytes that may be anything are text: UTF-8, or such as has a few
// bytes of an older encoding, up to a quarter, and no control characters that text has not.
func IsText(b []byte) bool {
	if utf8.Valid(b) {
		return true
	}
	invalid, controls := odd(b)
	return 4*invalid <= len(b) && controls == 0
}

// IsBinary reports whether what should be text is not: it is not UTF-8, and has NUL or two
// different control characters that text has not. Text of any encoding passes.
func IsBinary(b []byte) bool {
	if utf8.Valid(b) {
		return false
	}
	_, controls := odd(b)
	return controls&1 != 0 || controls&(controls-1) != 0
}

package jsonwalk

import (
	"encoding/binary"
	"math/bits"
)

// A Checker finds the ends of values and checks that they are valid. It notes
// what it has seen on its way. It is for one goroutine at a time.
type Checker struct {
	MaxDepth int // objects and arrays in one another that are followed; deeper ones are not accepted

	Depth  int  // the deepest nesting seen
	Spaced bool // white space was seen between tokens
}

// Valid reports whether text is one JSON value, which may have white space around
// it and nests at most maxDepth objects and arrays.
func Valid(text []byte, maxDepth int) bool {
	c := Checker{MaxDepth: maxDepth}
	end := c.Value(text, SkipSpace(text, 0))
	return end >= 0 && SkipSpace(text, end) == len(text)
}

// Value returns the end of the value that begins at b[i].
func (c *Checker) Value(b []byte, i int) (end int) {
	if i < len(b) && (b[i] == '{' || b[i] == '[') {
		return c.nested(b, i)
	}
	return checkScalar(b, i)
}

func checkScalar(b []byte, i int) (end int) {
	if i >= len(b) {
		return -1
	}
	switch b[i] {
	case '"':
		return CheckString(b, i)
	case 't':
		return checkWord(b, i, "true")
	case 'f':
		return checkWord(b, i, "false")
	case 'n':
		return checkWord(b, i, "null")
	}
	return CheckNumber(b, i)
}

// closing is how far a closing bracket is from the opening one.
const closing = '}' - '{'

// nested is Value for an object or array. It calls itself for none of those in it, as
// thousands of brackets would take a stack of megabytes.
func (c *Checker) nested(b []byte, i int) (end int) {
	var few [32]byte
	outer, in := few[:0], byte(0) // opening brackets: around the innermost, and that
	for {
		if i >= len(b) {
			return -1
		}
		if b[i] == '{' || b[i] == '[' {
			if len(outer) == c.MaxDepth {
				return -1
			}
			outer, in = append(outer, in), b[i]
			c.Depth = max(c.Depth, len(outer))
			if i = c.Space(b, i+1); i >= len(b) || b[i] != in+closing {
				if in == '{' {
					_, i = c.Name(b, i)
				}
				if i < 0 {
					return -1
				}
				continue
			}
			i++
			in, outer = outer[len(outer)-1], outer[:len(outer)-1]
		} else if i = checkScalar(b, i); i < 0 {
			return -1
		}
		for { // after a value
			if len(outer) == 0 {
				return i
			}
			if i = c.Space(b, i); i >= len(b) {
				return -1
			}
			if b[i] == ',' {
				break
			}
			if b[i] != in+closing {
				return -1
			}
			i++
			in, outer = outer[len(outer)-1], outer[:len(outer)-1]
		}
		if i = c.Space(b, i+1); in == '{' {
			if _, i = c.Name(b, i); i < 0 {
				return -1
			}
		}
	}
}

// Name returns the end of the name of a member that begins at b[i], and where the
// member's value begins.
func (c *Checker) Name(b []byte, i int) (end, value int) {
	if i >= len(b) || b[i] != '"' {
		return -1, -1
	}
	if end = CheckString(b, i); end < 0 {
		return -1, -1
	}
	return end, c.Member(b, end)
}

// Member returns where the value of a member begins whose name ends at b[i].
func (c *Checker) Member(b []byte, i int) (value int) {
	if i = c.Space(b, i); i >= len(b) || b[i] != ':' {
		return -1
	}
	return c.Space(b, i+1)
}

// Space is SkipSpace, and notes what it skips.
func (c *Checker) Space(b []byte, i int) int {
	if i >= len(b) || b[i] > ' ' {
		return i
	}
	end := SkipSpace(b, i)
	c.Spaced = c.Spaced || end > i
	return end
}

// CheckString returns the end of the string whose first quote is b[i].
func CheckString(b []byte, i int) (end int) {
	for i++; ; {
		for i+8 <= len(b) {
			w := binary.LittleEndian.Uint64(b[i:])
			// A borrow may mark bytes after the first one that is marked, none before.
			if marks := quotesAndSlashes(w) | (w-ones*' ')&^w&highs; marks != 0 {
				i += bits.TrailingZeros64(marks) / 8
				break
			}
			i += 8
		}
		for i < len(b) && b[i] != '"' && b[i] != '\\' && b[i] >= ' ' {
			i++
		}
		switch {
		case i >= len(b) || b[i] < ' ':
			return -1
		case b[i] == '"':
			return i + 1
		}
		if i = checkEscape(b, i); i < 0 {
			return -1
		}
		var done bool
		if i, done = checkDense(b, i); done {
			return i
		}
	}
}

const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

// quotesAndSlashes returns a word whose lowest set bit is in the first byte of w
// that is a quote or a backslash; 0 if there is none.
func quotesAndSlashes(w uint64) uint64 {
	quote, slash := w^ones*'"', w^ones*'\\'
	return ((quote-ones)&^quote | (slash-ones)&^slash) & highs
}

// checkEscape returns the end of the escape that begins at b[i].
func checkEscape(b []byte, i int) int {
	if i+1 >= len(b) {
		return -1
	}
	switch b[i+1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return i + 2
	case 'u':
		if _, ok := Hex4(b[i+2:]); ok {
			return i + len(`\u0000`)
		}
	}
	return -1
}

func checkWord(b []byte, i int, word string) int {
	if end := i + len(word); end <= len(b) && string(b[i:end]) == word {
		return end
	}
	return -1
}

// CheckNumber returns the end of the number that begins at b[i]. The caller looks
// at what follows it.
func CheckNumber(b []byte, i int) (end int) {
	if b[i] == '-' {
		i++
	}
	if i < len(b) && b[i] == '0' {
		i++
	} else if i = checkDigits(b, i); i < 0 {
		return -1
	}
	if i < len(b) && b[i] == '.' {
		if i = checkDigits(b, i+1); i < 0 {
			return -1
		}
	}
	if i < len(b) && b[i]|0x20 == 'e' {
		i++
		if i < len(b) && (b[i] == '+' || b[i] == '-') {
			i++
		}
		i = checkDigits(b, i)
	}
	return i
}

// checkDigits returns the end of one or more digits.
func checkDigits(b []byte, i int) int {
	start := i
	for i < len(b) && IsDigit(b[i]) {
		i++
	}
	if i == start {
		return -1
	}
	return i
}

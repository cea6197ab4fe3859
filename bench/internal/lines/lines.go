// Package lines makes lines that say whose they are and which, so that every
// one of them can be found again.
package lines

import (
	"bytes"
	"fmt"
	"strconv"
)

// head is what each line begins with: the producer and the sequence number.
const head = "00 000000000"

// Append appends a line of size bytes, its newline included. Producers count
// to 99, sequence numbers to 999,999,999.
func Append(dst []byte, size, producer, sequence int) []byte {
	begin := len(dst)
	dst = fmt.Appendf(dst, "%02d %09d ", producer, sequence)
	for len(dst) < begin+size-1 {
		dst = append(dst, 'x')
	}
	return append(dst, '\n')
}

// Renumber changes the sequence number of a line that Append made.
func Renumber(line []byte, sequence int) {
	for i := len(head) - 1; i >= len("00 "); i-- {
		line[i] = byte('0' + sequence%10)
		sequence /= 10
	}
}

// Parser returns a function that reads lines of size bytes. ok is false for
// what Append has not made.
func Parser(size int) func(line []byte) (producer, sequence int, ok bool) {
	pad := Append(nil, size, 0, 0)[len(head):]
	return func(line []byte) (producer, sequence int, ok bool) {
		if len(line) != size || line[2] != ' ' || !bytes.Equal(line[len(head):], pad) {
			return 0, 0, false
		}
		producer, err := strconv.Atoi(string(line[:2]))
		if err != nil || producer < 0 {
			return 0, 0, false
		}
		sequence, err = strconv.Atoi(string(line[3:len(head)]))
		return producer, sequence, err == nil && sequence >= 0
	}
}

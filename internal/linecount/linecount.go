// Package linecount counts lines.
package linecount

import "bytes"

var newline = []byte{'\n'}

// Of returns the number of lines in p; an unterminated last one counts.
func Of(p []byte) uint64 {
	n := bytes.Count(p, newline)
	if len(p) > 0 && p[len(p)-1] != '\n' {
		n++
	}
	return uint64(n)
}

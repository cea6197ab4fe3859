package columns

import (
	"bytes"

	"github.com/rollway/rollway/internal/jsonwalk"
)

const (
	maxDepth  = 8
	maxHoles  = 256  // of a shape
	maxShapes = 1000 // of a block
	hole      = 0
)

// wholeLine is the shape of a line that is not split: one hole, its line end included.
var wholeLine = []byte{hole}

// A span is a place in the lines of a block.
type span struct{ start, end int32 }

// A splitter splits a line into its shape and values.
type splitter struct {
	shape  []byte
	values []span
}

// split splits lines[start:end], which is one line with its end.
func (s *splitter) split(lines []byte, start, end int) {
	if !s.object(lines[:end], start) {
		s.shape = append(s.shape[:0], wholeLine...)
		s.values = append(s.values[:0], span{int32(start), int32(end)})
	}
}

// object splits the line from i on to the end of b; false: it is not a plain object.
func (s *splitter) object(b []byte, i int) bool {
	s.shape, s.values = s.shape[:0], s.values[:0]
	depth, copied := 0, i
	if i >= len(b) || b[i] != '{' {
		return false
	}
	for i++; ; i++ { // at the quote of a key
		if i >= len(b) || b[i] != '"' {
			return false
		}
		n := bytes.IndexByte(b[i+1:], '"')
		if n < 0 || i+n+4 >= len(b) {
			return false
		}
		key := b[i+1 : i+1+n]
		if i += n + 2; b[i] != ':' || bytes.IndexByte(key, '\\') >= 0 || bytes.IndexByte(key, hole) >= 0 {
			return false
		}
		if i++; b[i] == '{' && b[i+1] == '"' {
			if depth++; depth > maxDepth {
				return false
			}
			continue
		}
		end := valueEnd(b, i)
		if end <= i || end >= len(b) || len(s.values) == maxHoles {
			return false
		}
		s.shape = append(append(s.shape, b[copied:i]...), hole)
		s.values = append(s.values, span{int32(i), int32(end)})
		for copied, i = end, end; i < len(b) && b[i] == '}'; i++ {
			depth--
		}
		if depth < 0 {
			s.shape = append(s.shape, b[copied:]...)
			return depth == -1 && i == len(b)-1 && b[i] == '\n'
		}
		if i >= len(b) || b[i] != ',' {
			return false
		}
	}
}

// A trie knows the lines that a splitter has split: each node has the text after a value, up to the next
// one or to the end of the line. The first node is the root.
type trie []node

type node struct {
	text  []byte
	shape int // of the line that ends here; -1: a value follows
	next  int // node after that value; 0: there is none
	other int // node that may be here instead; 0: there is none
}

const (
	maxNodes  = 4 << 10
	maxOthers = 8
)

// add adds a shape, whose pieces are between its holes; if there are too many, a part of it at most.
func (t *trie) add(pieces [][]byte, shape int) {
	for at, i := 0, 0; i < len(pieces); i++ {
		others, link := 0, &(*t)[at].next
		for *link > 0 && !bytes.Equal((*t)[*link].text, pieces[i]) {
			link = &(*t)[*link].other
			others++
		}
		if at = *link; at == 0 {
			if others == maxOthers || len(*t) == maxNodes {
				return
			}
			at = len(*t)
			*link = at
			*t = append(*t, node{text: pieces[i], shape: -1})
		}
		if i == len(pieces)-1 {
			(*t)[at].shape = shape
		}
	}
}

// find appends the values of the line from b[i] on to the end of b, and returns its shape; -1: it is
// not known. The result is that of a splitter.
func (t trie) find(values []span, b []byte, i int) ([]span, int) {
	for at := t[0].next; at > 0; {
		n := &t[at]
		value := i + len(n.text)
		if !bytes.HasPrefix(b[i:], n.text) || value+1 < len(b) && b[value] == '{' && b[value+1] == '"' {
			at = n.other
			continue
		}
		if n.shape >= 0 {
			return values, n.shape
		}
		if value == len(b) {
			break
		}
		if i = valueEnd(b, value); i <= value || i >= len(b) {
			break
		}
		values = append(values, span{int32(value), int32(i)})
		at = n.next
	}
	return values, -1
}

// valueEnd returns the end of the JSON value at b[i]; -1: there is none.
func valueEnd(b []byte, i int) int {
	switch b[i] {
	case '"':
		end, _ := jsonwalk.SkipString(b, i)
		return end
	case '{', '[':
		return jsonwalk.SkipValue(b, i)
	}
	for end := i; end < min(len(b), i+64); end++ {
		if b[end] == ',' || b[end] == '}' {
			return end
		}
	}
	return -1
}

// A path is the keys that lead to a value, each ended by a byte 00, as they are in the line.
// The path of a whole line is empty.

// appendPaths appends the path of each hole of a shape; false: one occurs twice, or they are more
// than a shape may have, or than limit bytes.
func appendPaths(dst []string, shape []byte, limit int) ([]string, bool) {
	if bytes.Equal(shape, wholeLine) {
		return append(dst, ""), true
	}
	var path []byte
	var lengths []int // of path before each open object
	seen := make(map[string]bool)
	for i := 0; i < len(shape); i++ {
		switch shape[i] {
		case '{':
			if lengths = append(lengths, len(path)); len(lengths) > maxDepth+1 {
				return dst, false
			}
		case '}':
			if len(lengths) == 0 {
				return dst, false
			}
			path = path[:lengths[len(lengths)-1]]
			lengths = lengths[:len(lengths)-1]
		case '"':
			n := bytes.IndexByte(shape[i+1:], '"')
			if n < 0 || len(lengths) == 0 {
				return dst, false
			}
			path = append(append(path[:lengths[len(lengths)-1]], shape[i+1:i+1+n]...), hole)
			i += n + 1
		case hole:
			p := string(path)
			if limit -= len(p); seen[p] || limit < 0 || len(seen) == maxHoles {
				return dst, false
			}
			seen[p] = true
			dst = append(dst, p)
		}
	}
	return dst, true
}

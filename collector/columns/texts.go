package columns

import (
	"encoding/binary"
	"slices"
)

const (
	maxVariables = 64 // of a text
	maxTemplates = 1 << 12
	maxUnit      = 4 // less 1: letters of a unit after digits
	minTexts     = 4 // of a template; others are stored whole
)

// A cutter cuts texts into templates and variables.
type cutter struct {
	template  []byte
	templates Set
	which     []int // of each text, its template
	from      []int // of each text, its first variable
	variables []span
	indexes   []int64
	rows      []int  // texts in the order of their templates
	column    []span // of those of one template
}

// kinds of bytes: 1 = digit, 2 = letter
var kinds = func() (k [256]byte) {
	for c := range k {
		switch {
		case '0' <= c && c <= '9':
			k[c] = 1
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z':
			k[c] = 2
		}
	}
	return k
}()

// cut cuts text[v.start:v.end] into a template and variables, which it appends to c.variables.
// A variable is a run of letters and digits that has digits, as an identifier, or only the
// digits of a run as user17 or 45ms.
func (c *cutter) cut(text []byte, v span) bool {
	c.template = c.template[:0]
	n, copied, stop := len(c.variables), int(v.start), int(v.end)
	for i := copied; i < stop; {
		if kinds[text[i]] == 0 {
			if text[i] == hole {
				return false
			}
			i++
			continue
		}
		end, first, last, digits := stop, -1, -1, 0
		for n, b := range text[i:stop] {
			if kinds[b] == 1 {
				if last = i + n; first < 0 {
					first = last
				}
				digits++
			} else if kinds[b] == 0 {
				end = i + n
				break
			}
		}
		if first < 0 {
			i = end
			continue
		}
		if digits != last+1-first || first > i && last+1 < end || end-last > maxUnit {
			first, last = i, end-1
		}
		c.template = append(append(c.template, text[copied:first]...), hole)
		c.variables = append(c.variables, span{int32(first), int32(last + 1)})
		if len(c.variables)-n > maxVariables {
			return false
		}
		i, copied = end, last+1
	}
	c.template = append(c.template, text[copied:stop]...)
	return true
}

// appendTexts appends the values in form 7; false: that would not pay.
func (e *Encoder) appendTexts(head []byte, values []span, text []byte) ([]byte, bool) {
	c := &e.texts
	c.templates.Reset()
	c.which, c.from, c.variables = c.which[:0], c.from[:0], c.variables[:0]
	for i, v := range values {
		if i%pauseRows == 0 {
			e.pause()
		}
		n := len(c.variables)
		c.from = append(c.from, n)
		if c.templates.Len() == maxTemplates || !c.cut(text, v) {
			c.variables = c.variables[:n]
			c.which = append(c.which, -1)
			continue
		}
		c.which = append(c.which, c.templates.Add(c.template))
		if i == 255 && c.templates.Len() > 200 {
			return head, false
		}
	}
	counts := make([]int, c.templates.Len())
	for _, t := range c.which {
		if t >= 0 {
			counts[t]++
		}
	}
	numbers := make([]int64, len(counts)) // plus 1; 0: its texts are stored whole
	kept, covered := 0, 0
	var templates []span
	for t, place := range c.templates.spans() {
		if counts[t] >= minTexts {
			kept++
			numbers[t] = int64(kept)
			covered += counts[t]
			templates = append(templates, place)
		}
	}
	if covered < len(values)/2 {
		return head, false
	}
	c.indexes, c.rows = c.indexes[:0], slices.Grow(c.rows[:0], len(values))[:len(values)]
	ends := make([]int, kept+1) // in rows
	for _, t := range c.which {
		index := int64(0)
		if t >= 0 {
			index = numbers[t]
		}
		c.indexes = append(c.indexes, index)
		ends[index]++
	}
	begin := 0
	for i, n := range ends {
		ends[i], begin = begin, begin+n
	}
	for row, i := range c.indexes {
		c.rows[ends[i]] = row
		ends[i]++
	}
	head = binary.AppendUvarint(append(head, formTexts), uint64(kept))
	head = e.appendStrings(head, templates, c.templates.text)
	head = e.appendInts(head, c.indexes)
	c.column = c.column[:0]
	for _, row := range c.rows[:ends[0]] {
		c.column = append(c.column, values[row])
	}
	head = e.appendColumn(head, c.column, text, false)
	for i := range kept {
		in := c.rows[ends[i]:ends[i+1]]
		for hole := range c.holes(in[0]) {
			c.column = c.column[:0]
			for _, row := range in {
				c.column = append(c.column, c.variables[c.from[row]+hole])
			}
			head = e.appendColumn(head, c.column, text, false)
		}
	}
	return head, true
}

// holes returns how many variables a text has.
func (c *cutter) holes(row int) int {
	if row+1 < len(c.from) {
		return c.from[row+1] - c.from[row]
	}
	return len(c.variables) - c.from[row]
}

package columns

import "encoding/binary"

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
	n, copied := len(c.variables), v.start
	for i := v.start; i < v.end; {
		if kinds[text[i]] == 0 {
			if text[i] == hole {
				return false
			}
			i++
			continue
		}
		end, first, last, digits := i, -1, -1, 0
		for ; end < v.end && kinds[text[end]] != 0; end++ {
			if kinds[text[end]] == 1 {
				if first < 0 {
					first = end
				}
				last = end
				digits++
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
		c.variables = append(c.variables, span{first, last + 1})
		if len(c.variables)-n > maxVariables {
			return false
		}
		i, copied = end, last+1
	}
	c.template = append(c.template, text[copied:v.end]...)
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
	indexes := make([]int64, len(values))
	rows := make([][]int, kept+1)
	for i, t := range c.which {
		if t >= 0 {
			indexes[i] = numbers[t]
		}
		rows[indexes[i]] = append(rows[indexes[i]], i)
	}
	head = binary.AppendUvarint(append(head, formTexts), uint64(kept))
	head = e.appendStrings(head, templates, c.templates.text)
	head = e.appendInts(head, indexes)
	var column []span
	for _, row := range rows[0] {
		column = append(column, values[row])
	}
	head = e.appendColumn(head, column, text, false)
	for _, in := range rows[1:] {
		for hole := range c.holes(in[0]) {
			column = column[:0]
			for _, row := range in {
				column = append(column, c.variables[c.from[row]+hole])
			}
			head = e.appendColumn(head, column, text, false)
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

package columns

import "bytes"

// findTexts returns which texts match, of those that are asked about; nil: all. It joins the pieces and
// variables of a text only if they may have one of m.Any.
func (b *Block) findTexts(t *texts, m *Matcher, asked Rows) Rows {
	out := newRows(t.n)
	may := make([]func(rank int) bool, len(t.pieces)) // of each template, which of its texts; nil: none
	for template, n := range t.counts {
		if n > 0 {
			may[template] = b.mayHave(t, int64(template), m.Any)
		}
	}
	var text []byte
	look := func(i int, template int64, rank int) {
		if asked != nil && !asked.Has(i) || !may[template](rank) {
			return
		}
		if text = t.join(text[:0], template, rank); m.has(text) && m.matches(text) {
			out.add(i)
		}
	}
	for i, template := range t.templates {
		if may[template] != nil {
			look(i, template, int(t.rank[i]))
		}
	}
	for template := range may {
		if t.templates != nil || may[template] == nil {
			continue
		}
		plane, at := t.which.planes[0], 0
		for rank := range t.counts[template] {
			if plane == nil { // all have that template
				look(rank, int64(template), rank)
				continue
			}
			at += bytes.IndexByte(plane[at:], byte(int64(template)-t.which.least)) + 1
			look(at-1, int64(template), rank)
		}
	}
	return out
}

// mayHave returns which of the texts of a template may have one of the strings; nil: none. It reads the
// variables alone that may have one.
func (b *Block) mayHave(t *texts, template int64, any [][]byte) func(rank int) bool {
	variables, pieces := t.variables[template], t.pieces[template]
	if template == 0 {
		v := t.variable(0, 0)
		if v == nil {
			return nil
		}
		hits := b.find(v, variables[0].n, &Matcher{Any: any})
		return func(rank int) bool { return hits.Has(v.index(rank)) }
	}
	hits := make([]Rows, len(variables)) // of each hole; nil: none
	found := false
	for _, s := range any {
		if inPieces(pieces, s) {
			return func(int) bool { return true }
		}
		for h := range variables {
			form := variables[h].form
			if leading(s, isDigits(pieces, h)) < len(s) || form == formHex && !isHex(s) || (form == formDecimal || form == formDigits) && leading(s, true) < len(s) {
				continue
			}
			v := t.variable(template, h)
			if v == nil {
				return nil
			}
			in := b.find(v, variables[h].n, &Matcher{Any: [][]byte{s}})
			if hits[h] == nil {
				hits[h] = in
			} else {
				hits[h].Add(in)
			}
			found = found || in.Len() > 0
		}
	}
	if !found {
		return nil
	}
	return func(rank int) bool {
		for h := range variables {
			if hits[h] != nil && hits[h].Has(variables[h].index(rank)) {
				return true
			}
		}
		return false
	}
}

// inPieces reports whether a text of these pieces may have s, other than inside of one
// variable.
func inPieces(pieces [][]byte, s []byte) bool {
	for p := range pieces {
		for at, piece := 0, pieces[p]; ; at++ {
			n := bytes.IndexByte(piece[at:], s[0])
			if n < 0 {
				break
			}
			if at += n; follows(pieces[p:], at, s) {
				return true
			}
		}
		if p+1 == len(pieces) {
			break
		}
		if n := leading(s, isDigits(pieces, p)); 0 < n && n < len(s) && follows(pieces[p+1:], 0, s[n:]) {
			return true
		}
	}
	return false
}

// follows reports whether s may be at byte at of the first piece, and in what follows it. A
// variable takes all letters and digits that it can: none of those come after it.
func follows(pieces [][]byte, at int, s []byte) bool {
	for p := 0; ; p++ {
		piece := pieces[p][at:]
		if n := min(len(piece), len(s)); !bytes.Equal(piece[:n], s[:n]) {
			return false
		} else if s = s[n:]; len(s) == 0 {
			return true
		}
		if p+1 == len(pieces) {
			return false
		}
		n := leading(s, isDigits(pieces, p))
		if n == 0 {
			return false
		}
		if s, at = s[n:], 0; len(s) == 0 {
			return true
		}
	}
}

// isDigits reports whether the variable after piece p has digits alone: a letter is next to
// it. Others have letters and digits; see cutter.cut.
func isDigits(pieces [][]byte, p int) bool {
	before, after := pieces[p], pieces[p+1]
	return len(before) > 0 && kinds[before[len(before)-1]] != 0 || len(after) > 0 && kinds[after[0]] != 0
}

// leading returns how many of the first bytes of s are digits, or letters and digits.
func leading(s []byte, digits bool) int {
	for i, c := range s {
		if kinds[c] == 0 || digits && kinds[c] != 1 {
			return i
		}
	}
	return len(s)
}

func isHex(s []byte) bool {
	for _, c := range s {
		if c-'0' > 9 && c-'a' > 5 {
			return false
		}
	}
	return true
}

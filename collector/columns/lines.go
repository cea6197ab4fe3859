package columns

import (
	"bytes"
	"slices"
)

// AppendLines appends the lines of a block, which have size bytes, to dst. The error is
// ErrDamaged.
func (b *Block) AppendLines(dst, block []byte, size int) ([]byte, error) {
	if len(block) > 0 && block[0] == formLines {
		return AppendFrame(dst, block[1:], size)
	}
	if err := b.Open(block, size); err != nil {
		return dst, err
	}
	return b.AppendRows(dst, nil, nil)
}

// AppendRows appends the lines of the block that was opened, and an empty line for each line
// that is not in rows. Without rows it appends all lines. Of each line it leaves out values
// for whose path keep returns false, with their keys, and objects that become empty;
// it reads no column of such values alone, and none that no wanted line has. Without keep it leaves out nothing. The error is
// ErrDamaged.
func (b *Block) AppendRows(dst []byte, rows Rows, keep func(path string) bool) ([]byte, error) {
	const often = 1024
	start := len(dst)
	shapes := b.shapes
	if keep != nil {
		shapes = b.narrow(keep)
	} else if rows == nil {
		dst = slices.Grow(dst, min(b.size, 1<<20)) // what a damaged header says may be any
	}
	if !b.readFor(shapes, rows) {
		return dst, ErrDamaged
	}
	passed := make([]int, len(shapes)) // of each shape, lines that are not wanted and not in next yet
	var waiting []int64                // shapes that have some
	for row, of := range b.rows {
		if row%often == often-1 {
			b.pause()
		}
		if rows != nil && !rows.Has(row) {
			if passed[of]++; passed[of] == 1 {
				waiting = append(waiting, of)
			}
			dst = append(dst, '\n')
			continue
		}
		for _, i := range waiting {
			b.pass(&shapes[i], &passed[i])
		}
		waiting = waiting[:0]
		s := &shapes[of]
		for i, h := range s.holes {
			c := &b.columns[h]
			if c.next >= c.n {
				return dst[:start], ErrDamaged
			}
			dst = c.append(append(dst, s.pieces[i]...), c.next)
			c.next++
		}
		if dst = append(dst, s.pieces[len(s.holes)]...); b.bad || len(dst)-start > b.size {
			return dst[:start], ErrDamaged
		}
	}
	if rows == nil && keep == nil && len(dst)-start != b.size {
		return dst[:start], ErrDamaged
	}
	return dst, nil
}

// readFor reads the columns that the rows need, or all rows if there are none, and goes to their
// first values; false: they are damaged.
func (b *Block) readFor(shapes []shape, rows Rows) bool {
	done, read := make([]bool, len(shapes)), b.read
	if rows != nil && 32*rows.Len() <= len(b.rows) {
		read = b.readSome
	}
	for row, of := range b.rows {
		if done[of] || rows != nil && !rows.Has(row) {
			continue
		}
		done[of] = true
		for _, h := range shapes[of].holes {
			if !read(&b.columns[h]) {
				return false
			}
		}
	}
	for i := range b.columns {
		b.columns[i].next = 0
	}
	return true
}

// pass goes past the values of n lines of a shape, and clears n.
func (b *Block) pass(s *shape, n *int) {
	for _, h := range s.holes {
		b.columns[h].next += *n
	}
	*n = 0
}

// narrow returns the shapes of the block with the holes alone that keep wants.
func (b *Block) narrow(keep func(path string) bool) []shape {
	kept := make([]bool, len(b.paths))
	for i, path := range b.paths {
		kept[i] = path == "" || keep(path)
	}
	out := make([]shape, len(b.shapes))
	for i := range b.shapes {
		if s := &b.shapes[i]; len(s.holes) > 0 && b.paths[s.holes[0]] != "" {
			out[i] = s.narrow(kept)
		} else {
			out[i] = *s
		}
	}
	return out
}

// narrow returns the shape with the holes whose columns are kept, and the keys and braces
// around them.
func (s *shape) narrow(kept []bool) (out shape) {
	type object struct {
		key     []byte // with its colon and brace
		written bool
		members bool // some are written
	}
	open := []object{{key: []byte{'{'}}}
	text := bytes.Join(s.pieces, []byte{hole})
	var piece []byte
	write := func(open []object) {
		for i := range open {
			o := &open[i]
			if o.written {
				continue
			}
			if i > 0 && open[i-1].members {
				piece = append(piece, ',')
			}
			piece = append(piece, o.key...)
			if o.written = true; i > 0 {
				open[i-1].members = true
			}
		}
	}
	for at, h := 1, 0; at < len(text); at++ {
		switch top := &open[len(open)-1]; text[at] {
		case '"':
			end := at + bytes.IndexByte(text[at+1:], '"') + 3 // after the colon
			if end <= at+2 || end >= len(text) {
				return *s
			}
			key := text[at:end]
			if at = end; text[at] == '{' {
				open = append(open, object{key: text[at-len(key) : at+1]})
				break
			}
			if text[at] != hole {
				return *s
			}
			if column := s.holes[h]; kept[column] {
				write(open)
				if top.members {
					piece = append(piece, ',')
				}
				top.members = true
				out.pieces, piece = append(out.pieces, append(piece, key...)), nil
				out.holes = append(out.holes, column)
			}
			h++
		case '}':
			if open = open[:len(open)-1]; len(open) == 0 {
				write([]object{{key: []byte{'{'}, written: top.written}})
				out.pieces = append(out.pieces, append(append(piece, '}'), text[at+1:]...))
				return out
			}
			if top.written {
				piece = append(piece, '}')
			}
		case ',':
		default:
			return *s
		}
	}
	return *s
}

package query

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"

	"github.com/rollway/rollway/collector/columns"
	"github.com/rollway/rollway/collector/query/pipe"
)

// tables are the blocks of columns of one frame, for pipes that need nothing but fields of lines
// and take them from there. A line that is known to match, and all of whose fields are in columns,
// comes as a reference to its row. The others come as lines: those that may match, those that are
// stored whole, and those with a field that is an object, or in another column than most have it.
//
//	lines  │ {…"status":500,…}   │ {…"status":"\u0035…"}    │ {…"status":200,…}
//	come   │ reference to a row  │ {"attrs":{"status":…}}   │ empty: it does not match
//
// A lens fills them while a frame is read. They are used until the next is.
type tables struct {
	list  []*rowTable
	used  int
	begin bool // the next block is of another frame
	round uint64
	batch batch
}

// rowTable is a block with references to rows.
type rowTable struct {
	pipe.Table
	block   columns.Block
	rows    columns.Rows
	average int // bytes of a line
}

// A batch is rows of one table, to which lines refer that come next.
type batch struct {
	table *rowTable
	rows  []int32
	lines int // that end with the last reference; others do not match
	bytes int // of them
}

// maxTables is how many blocks of a frame are tables. More it has of many tenants, with few lines each.
const maxTables = 64

// next returns the table for the next block; nil: it gets none.
func (t *tables) next() *rowTable {
	if t.begin {
		t.begin, t.used = false, 0
	}
	if t.used == maxTables {
		return nil
	}
	if t.used == len(t.list) {
		t.list = append(t.list, &rowTable{block: columns.Block{Own: true}})
	}
	return t.list[t.used]
}

// A reference is a byte that no canonical line begins with, the numbers of a table and of its row,
// seven bits a byte, each with the highest bit, and the end of the line.
const (
	referenceMark = 0x01
	referenceLen  = 8
	emptyRef      = referenceMark | 0x80808080_8080<<8 | '\n'<<56
	maxReferences = 1 << 28 // rows of a table
	low7          = 1<<7 - 1
	rowOfRef      = low7<<24 | low7<<32 | low7<<40 | low7<<48
)

// reference returns a reference, as a number whose lowest byte is the first.
func reference(table, row int) uint64 {
	t, r := uint64(table), uint64(row)
	return emptyRef | t>>7&low7<<8 | t&low7<<16 | r>>21&low7<<24 | r>>14&low7<<32 | r>>7&low7<<40 | r&low7<<48
}

func rowOf(r uint64) int {
	return int(r>>24&low7<<21 | r>>32&low7<<14 | r>>40&low7<<7 | r>>48&low7)
}

// find returns the row that lines begin with a reference to; nil: they begin with none.
func (t *tables) find(lines []byte) (table *rowTable, row int) {
	if len(lines) < referenceLen {
		return nil, 0
	}
	r := binary.LittleEndian.Uint64(lines)
	if r&emptyRef != emptyRef || r&0xff != referenceMark || r>>56 != '\n' {
		return nil, 0
	}
	number := int(r>>8&low7<<7 | r>>16&low7)
	if number >= t.used {
		return nil, 0
	}
	if table, row = t.list[number], rowOf(r); row >= table.block.Len() || !table.rows.Has(row) {
		return nil, 0
	}
	return table, row
}

// references returns the references that lines begin with, and those after empty lines; nil: none. They
// are in at most most lines, and of about size bytes as lines, but one at least.
func (t *tables) references(lines []byte, most uint64, size int) *batch {
	if t == nil || lines[0] != referenceMark {
		return nil
	}
	table, row := t.find(lines)
	if table == nil {
		return nil
	}
	b := &t.batch
	*b = batch{table: table, rows: append(b.rows[:0], int32(row)), lines: 1, bytes: referenceLen}
	like := binary.LittleEndian.Uint64(lines) &^ rowOfRef
	size -= table.average
	for at, n := referenceLen, 1; at < len(lines) && uint64(n) < most && size > 0; n++ {
		if lines[at] == '\n' {
			at++
			size--
			continue
		}
		if len(lines)-at < referenceLen {
			break
		}
		r := binary.LittleEndian.Uint64(lines[at:])
		if row = rowOf(r); r&^rowOfRef != like || row >= table.block.Len() || !table.rows.Has(row) {
			break
		}
		at += referenceLen
		size -= table.average
		b.rows = append(b.rows, int32(row))
		b.lines, b.bytes = n+1, at
	}
	return b
}

// tabulate makes the block a table with references to those of rows for which that does; nil are
// all. It returns those, nil if there are none.
func (l *lens) tabulate(t *rowTable, rows columns.Rows, size int) (columns.Rows, error) {
	const few = 8 // lines take less
	if rows != nil && rows.Len() < few || t.block.Len() > maxReferences {
		return nil, nil
	}
	sure, err := l.sure()
	if err != nil || sure == nil {
		return nil, err
	}
	if rows != nil {
		sure.Intersect(rows)
	}
	if err := l.fill(t, sure); err != nil || sure.Len() == 0 {
		return nil, err
	}
	l.tables.round++
	t.rows, t.Round, t.average = sure, l.tables.round, size/t.block.Len()
	return sure, nil
}

// sure returns the rows that match; nil: it is known of none.
func (l *lens) sure() (columns.Rows, error) {
	out := l.block.Rows()
	if root := l.query.root; root != nil {
		l.exact = true
		var err error
		out, err = l.rows(root, true)
		l.exact = false
		if err != nil || out == nil {
			return nil, err
		}
	}
	out.Invert(l.block)
	return out, nil
}

// fill reads the columns of l.fields into t, and removes rows that have values elsewhere.
func (l *lens) fill(t *rowTable, rows columns.Rows) error {
	b := &t.block
	holes := make([][]int, b.Shapes())
	for shape := range holes {
		if b.Lines(shape) > 0 {
			holes[shape] = l.holes(shape)
		}
	}
	best := make([]int, len(l.fields))
	for i := range best {
		best[i] = bestColumn(b, holes, i)
	}
	plain, all := make([]bool, len(holes)), true
	for shape := range plain {
		plain[shape] = holes[shape] != nil
		for i, hole := range holes[shape] {
			if hole >= 0 && b.Column(shape, hole) != best[i] {
				plain[shape] = false
			}
		}
		all = all && (plain[shape] || b.Lines(shape) == 0)
	}
	if !all {
		rows.Intersect(b.Of(plain))
	}
	if err := l.leaveObjects(rows); err != nil {
		return err
	}
	t.Cells = slices.Grow(t.Cells[:0], len(best))[:len(best)]
	for i, column := range best {
		if t.Cells[i].Reset(); column < 0 || rows.Len() == 0 {
			continue
		}
		if err := b.Cells(column, &t.Cells[i]); err != nil {
			return err
		}
	}
	if l.query.tenant != nil {
		l.leaveOthers(&t.Cells[len(best)-1], rows)
	}
	return nil
}

// holes returns the hole of a shape in which the value of each field is, -1 if there is none; nil:
// lines are stored whole, or one of the values is an object.
func (l *lens) holes(shape int) (holes []int) {
	const most = 1000 // shapes that are remembered
	line, ok := l.block.AppendShape(l.shape[:0], shape)
	l.shape = line
	if !ok {
		return nil
	}
	if known, ok := l.shapes[string(line)]; ok {
		return known
	}
	holes = make([]int, len(l.fields))
	for i, f := range l.fields {
		raw := f.find(line)
		n, err := strconv.Atoi(string(raw))
		switch {
		case raw == nil:
			n = -1
		case err != nil:
			holes = nil
		}
		if holes == nil {
			break
		}
		holes[i] = n
	}
	if l.shapes == nil || len(l.shapes) == most {
		l.shapes = make(map[string][]int)
	}
	l.shapes[string(line)] = holes
	return holes
}

// bestColumn returns the column that has the values of a field in most lines; -1: there is none.
func bestColumn(b *columns.Block, holes [][]int, field int) int {
	lines, best := make(map[int]int), -1
	for shape := range holes {
		if holes[shape] == nil || holes[shape][field] < 0 {
			continue
		}
		c := b.Column(shape, holes[shape][field])
		if lines[c] += b.Lines(shape); best < 0 || lines[c] > lines[best] {
			best = c
		}
	}
	return best
}

// leaveObjects removes rows in which a field may be inside of a value.
func (l *lens) leaveObjects(rows columns.Rows) error {
	object := &columns.Matcher{Any: [][]byte{{'{'}}, Match: func(value []byte) bool { return bytes.HasPrefix(value, []byte{'{'}) }}
	found := l.block.Rows()
	err := l.block.Find(found, func(path string) *columns.Matcher {
		above := func(f field) bool { return f.place(dotted(path)) == aboveField }
		if path == "" || !slices.ContainsFunc(l.fields, above) {
			return nil
		}
		return object
	})
	rows.Remove(found)
	return err
}

// leaveOthers removes rows unless they are known to be of the query's tenant.
func (l *lens) leaveOthers(tenants *columns.Cells, rows columns.Rows) {
	const absent = `{}`
	line := []byte(absent)
	owned, buf := l.query.owns(line), []byte(nil)
	last := absent // what owned is about
	rows.Keep(func(row int) bool {
		l.pause(row)
		json := []byte(absent)
		if at := tenants.At(row); at >= 0 {
			json, buf = tenants.JSON(buf[:0], at)
		}
		if string(json) != last {
			last = string(json)
			line = fmt.Appendf(line[:0], `{"attrs":{"tenant":%s}}`, json)
			owned = l.query.owns(line)
		}
		return owned
	})
}

// pause rests now and then while rows are looked at.
func (l *lens) pause(row int) {
	const often = 1 << 13
	if row%often == often-1 {
		_ = l.f.rest() // what comes out then is not wanted
	}
}

// appendTable appends references to the rows refs of a table, and lines of the rest of rows; nil are all.
func (l *lens) appendTable(dst []byte, rows, refs columns.Rows) ([]byte, error) {
	b, number := l.block, l.tables.used
	l.tables.used++
	rest := b.Rows()
	if rows == nil {
		rest.Invert(b)
	} else {
		rest.Add(rows)
	}
	rest.Remove(refs)
	var lines []byte
	if rest.Len() > 0 {
		var err error
		if l.lines, err = b.AppendRows(l.lines[:0], rest, l.keep); err != nil {
			return dst, err
		}
		lines = l.lines
	}
	for row := range b.Len() {
		l.pause(row)
		n := 0
		if len(lines) > 0 {
			if n = bytes.IndexByte(lines, '\n') + 1; n == 0 {
				n = len(lines)
			}
		}
		switch {
		case refs.Has(row):
			dst = binary.LittleEndian.AppendUint64(dst, reference(number, row))
		case n == 0:
			dst = append(dst, '\n')
		default:
			dst = append(dst, lines[:n]...)
		}
		lines = lines[n:]
	}
	if len(lines) > 0 {
		return dst, columns.ErrDamaged
	}
	return dst, nil
}

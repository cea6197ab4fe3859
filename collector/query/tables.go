package query

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/rollway/rollway/collector/columns"
	"github.com/rollway/rollway/collector/query/pipe"
	"github.com/rollway/rollway/internal/jsonline"
)

// tables are the blocks of columns of one frame, for pipes that need nothing but fields of lines
// and take them from there. A line that is known to match, and all of whose fields are in columns,
// comes as a reference to its row, and so does one that does not match. The others come as lines: those
// that may match, those that are stored whole, and those with a field that is an object, or in another
// column than most have it.
//
//	lines  │ {…"status":500,…}   │ {…"status":"\u0035…"}    │ {…"status":200,…}
//	come   │ reference to row 0  │ {"attrs":{"status":…}}   │ reference to row 2
//	rows   │ 0                   │                          │
//
// A lens fills them while a frame is read. They are used until the next is.
type tables struct {
	list  []*rowTable
	used  int
	begin bool // the next block is of another frame
	round uint64
	batch batch
	steps []time.Duration // see pipe.Pipeline.Steps; nil: rows take as long as lines
}

// rowTable is a block with references to rows.
type rowTable struct {
	pipe.Table
	block   columns.Block
	rows    columns.Rows // that match
	refs    []byte       // references to rows, from 0 on
	average int          // bytes of a line that take as long as a row
}

// A batch is rows of one table, to which lines refer that come next.
type batch struct {
	table *rowTable
	rows  []int32 // that match
	lines int     // that end with the last of rows, if there are any; others do not match
}

// maxTableBytes is how much memory tables keep from frame to frame.
const maxTableBytes = 8 << 20

// maxTables is how many blocks of a frame are tables. More it has of many tenants, with few lines each.
const maxTables = 64

// next returns the table for the next block; nil: it gets none.
func (t *tables) next() *rowTable {
	if t.begin {
		if t.begin, t.used = false, 0; t.held() > maxTableBytes {
			t.list = nil
		}
	}
	if t.used == maxTables {
		return nil
	}
	if t.used == len(t.list) {
		t.list = append(t.list, &rowTable{block: columns.Block{Own: true}})
	}
	return t.list[t.used]
}

func (t *tables) held() (n int) {
	for _, table := range t.list {
		n += table.block.Held() + cap(table.refs)
	}
	return n
}

// A reference is a byte that no canonical line begins with, the numbers of a table and of its row,
// seven bits a byte, each with the highest bit, and the end of the line.
const (
	referenceMark = 0x01
	referenceLen  = 8
	emptyRef      = referenceMark | 0x80808080_8080<<8 | '\n'<<56
	maxReferences = 1 << 28 // rows of a table
	low7          = 1<<7 - 1
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
	if table, row = t.list[number], rowOf(r); row >= table.block.Len() {
		return nil, 0
	}
	return table, row
}

// references returns the references to rows that follow each other which lines begin with; nil: none.
// There are at most most, and of about size bytes as lines, but one at least.
func (t *tables) references(lines []byte, most uint64, size int) *batch {
	if t == nil || lines[0] != referenceMark {
		return nil
	}
	table, row := t.find(lines)
	if table == nil {
		return nil
	}
	next := table.refs[referenceLen*row : referenceLen*table.block.Len()]
	next = next[:min(len(next), len(lines), referenceLen*max(1, 1+(size-1)/table.average))]
	n := int(min(uint64(len(next)/referenceLen), most))
	if next = next[:n*referenceLen]; !bytes.HasPrefix(lines, next) {
		for n = 1; bytes.Equal(lines[n*referenceLen:][:referenceLen], next[n*referenceLen:][:referenceLen]); n++ {
		}
	}
	b := &t.batch
	*b = batch{table: table, rows: table.rows.AppendTo(b.rows[:0], row, row+n), lines: n}
	if last := len(b.rows) - 1; last >= 0 {
		b.lines = int(b.rows[last]) + 1 - row
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
	t.rows, t.Round, t.average = sure, l.tables.round, max(1, size/t.block.Len())
	if l.tables.steps != nil { // nothing is read of a row but its fields
		const fieldBytes = 16
		t.average = min(t.average, fieldBytes*(1+len(l.fields)))
	}
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
		if err := l.cells(b, i, column, &t.Cells[i]); err != nil {
			return err
		}
	}
	if l.query.tenant != nil {
		l.leaveOthers(&t.Cells[len(best)-1], rows)
	}
	return nil
}

// cells reads a column with the values of a field. Of times in one step, it is enough when that begins.
func (l *lens) cells(b *columns.Block, field, column int, to *columns.Cells) error {
	if field < len(l.tables.steps) {
		if step := l.tables.steps[field]; step > 0 {
			if start, ok := pipe.StepOf(b.Times.First, b.Times.Last, step); ok {
				text := append(jsonline.AppendUnix([]byte{'"'}, start, 0), '"')
				if ok, err := b.Timed(column, text, to); ok || err != nil {
					return err
				}
			}
		}
	}
	return b.Cells(column, to)
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
func (l *lens) appendTable(dst []byte, t *rowTable, rows, refs columns.Rows) ([]byte, error) {
	b, number := l.block, l.tables.used
	l.tables.used++
	rest := b.Rows()
	if rows == nil {
		rest.Invert(b)
	} else {
		rest.Add(rows)
	}
	rest.Remove(refs)
	for row := len(t.refs) / referenceLen; row < b.Len(); row++ {
		t.refs = binary.LittleEndian.AppendUint64(t.refs, reference(number, row))
	}
	all, next := t.refs[:referenceLen*b.Len()], 0
	if rest.Len() == 0 {
		return append(dst, all...), nil
	}
	var err error
	if l.lines, err = b.AppendRows(l.lines[:0], rest, l.keep); err != nil {
		return dst, err
	}
	l.rest = rest.AppendTo(l.rest[:0], 0, b.Len())
	lines := l.lines // of rows that are not in rest they are empty
	for i, row := range l.rest {
		l.pause(i)
		skip := int(row) - next
		n := bytes.IndexByte(lines[min(skip, len(lines)):], '\n') + 1
		if n == 0 {
			return dst, columns.ErrDamaged
		}
		dst = append(append(dst, all[referenceLen*next:referenceLen*int(row)]...), lines[skip:skip+n]...)
		lines, next = lines[skip+n:], int(row)+1
	}
	if len(lines) != b.Len()-next {
		return dst, columns.ErrDamaged
	}
	return append(dst, all[referenceLen*next:]...), nil
}

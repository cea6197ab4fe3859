package pipe

import (
	"reflect"
	"slices"
	"strconv"

	"github.com/rollway/rollway/collector/columns"
)

// states are those of one function of stats, by group.
type states interface {
	grow()                                                       // adds that of a new group
	size() int                                                   // about what it takes without what others return
	add(group int, v Value) (grown int)                          // v is not Absent, unless the function counts rows
	addCells(c *columns.Cells, rows, groups []int32, r *Row) int // adds the values that rows have
	merge(groups []int32, others states, from int) int           // merges others, which begin at from, into those of groups
	move(others states, other int)                               // grows by one of others, which are not used any more
	swap(others states)                                          // exchanges all with others
	value(group int, buf []byte) Value
	estimate(group int) string
	spare() (grown int) // has each hold less
	reset()             // leaves no group
}

// counts are of values, or of rows.
type counts []int64

func (c *counts) size() int                     { return 12 } // they grow by half
func (c *counts) add(group int, _ Value) int    { (*c)[group]++; return 0 }
func (c *counts) move(others states, other int) { *c = append(*c, (*others.(*counts))[other]) }
func (c *counts) swap(others states)            { o := others.(*counts); *c, *o = *o, *c }
func (c *counts) value(group int, buf []byte) Value {
	return Value{Number, strconv.AppendInt(buf, (*c)[group], 10)}
}
func (c *counts) estimate(int) string { return "" }
func (c *counts) spare() int          { return 0 }
func (c *counts) reset()              { *c = (*c)[:0] }

func (c *counts) grow() {
	if len(*c) == cap(*c) {
		*c = slices.Grow(*c, len(*c)/2+1)
	}
	*c = append(*c, 0)
}

// addRows adds a row to each of groups.
func (c *counts) addRows(groups []int32) {
	for _, group := range groups {
		(*c)[group]++
	}
}

func (c *counts) merge(groups []int32, others states, from int) int {
	into := *c
	for i, n := range (*others.(*counts))[from:][:len(groups)] {
		into[groups[i]] += n
	}
	return 0
}

func (c *counts) addCells(cells *columns.Cells, rows, groups []int32, _ *Row) int {
	for i, row := range rows {
		if cells.At(int(row)) >= 0 {
			(*c)[groups[i]]++
		}
	}
	return 0
}

// list has states that are more than a number.
type list[T any, S statePointer[T]] struct {
	all   []T
	begin func(*T) // makes one ready, which may have memory of another
}

type statePointer[T any] interface {
	*T
	state
}

func newList[T any, S statePointer[T]](begin func(*T)) states { return &list[T, S]{begin: begin} }

func (l *list[T, S]) grow() {
	if n := len(l.all); n < cap(l.all) {
		l.all = l.all[:n+1]
	} else {
		l.all = append(l.all, *new(T))
	}
	l.begin(&l.all[len(l.all)-1])
}

func (l *list[T, S]) size() int                         { return int(reflect.TypeFor[T]().Size()) }
func (l *list[T, S]) at(group int) S                    { return &l.all[group] }
func (l *list[T, S]) add(group int, v Value) int        { return l.at(group).add(v) }
func (l *list[T, S]) value(group int, buf []byte) Value { return l.at(group).value(buf) }
func (l *list[T, S]) estimate(group int) string         { return l.at(group).estimate() }
func (l *list[T, S]) reset()                            { l.all = l.all[:0] }

func (l *list[T, S]) merge(groups []int32, others states, from int) (grown int) {
	o := others.(*list[T, S])
	for i, group := range groups {
		grown += l.at(int(group)).merge(o.at(from + i))
	}
	return grown
}

func (l *list[T, S]) move(others states, other int) {
	l.all = append(l.all, others.(*list[T, S]).all[other])
}

func (l *list[T, S]) swap(others states) {
	o := others.(*list[T, S])
	l.all, o.all = o.all, l.all
}

func (l *list[T, S]) spare() (grown int) {
	for i := range l.all {
		grown += l.at(i).spare()
	}
	return grown
}

func (l *list[T, S]) addCells(c *columns.Cells, rows, groups []int32, r *Row) (grown int) {
	for i, row := range rows {
		at := c.At(int(row))
		if at < 0 {
			continue
		}
		s := l.at(int(groups[i]))
		if c.Kind == columns.Numbers {
			if more, ok := s.addInt(c.Ints[at], c.Digits); ok {
				grown += more
				continue
			}
		}
		r.text = r.text[:0]
		grown += s.add(r.table.value(c, at, r))
	}
	return grown
}

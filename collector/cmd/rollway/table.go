package main

import (
	"bytes"
	"cmp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/rollway/rollway/internal/encode"
)

// lineColumns are the columns of lines, in CSV and in tables.
var lineColumns = []string{"time", "level", "service", "logger", "msg", "trace_id", "span_id", "source", "error", "attrs"}

// A cell is a value in a row.
type cell struct {
	text   string
	number float64
	isNum  bool
}

// cells returns the members of a JSON object by columns. Strings are decoded, other values
// are as they are written. What is no JSON object is the column msg, or the first.
func cells(columns []string, line []byte) []cell {
	row := make([]cell, len(columns))
	d := jsontext.NewDecoder(bytes.NewReader(line), jsontext.AllowDuplicateNames(true))
	err := error(nil)
	if d.PeekKind() == '{' {
		err = members(d, func(name string) error {
			if d.PeekKind() == '"' {
				token, err := d.ReadToken()
				if i := slices.Index(columns, name); i >= 0 && err == nil {
					row[i] = cell{text: token.String()}
				}
				return err
			}
			value, err := d.ReadValue()
			if i := slices.Index(columns, name); i >= 0 && err == nil {
				number, notNumber := strconv.ParseFloat(string(value), 64)
				row[i] = cell{string(value), number, notNumber == nil}
			}
			return err
		})
	}
	if err != nil || d.InputOffset() == 0 {
		clear(row)
		row[max(0, slices.Index(columns, "msg"))].text = string(bytes.TrimRight(line, "\r\n"))
	}
	return row
}

// A table shows rows in columns that are as wide as their cells, and bars for one column
// of numbers. Without bars the widths are those of the first rows. It is not safe for
// concurrent use.
type table struct {
	*renderer
	columns []string
	width   int // of the terminal; 0: unknown
	bars    barsWanted
	hold    bool // show nothing until the end, or maxHeld rows

	rows   [][]cell // not shown yet
	shown  bool     // the head is
	widths []int
	right  []bool // numbers
	bar    int    // column of the bars; -1: none
	scale  float64
}

type barsWanted int

const (
	noBars barsWanted = iota
	barsIfFit
	barsAlways
)

// maxHeld is how many rows a table waits for.
const maxHeld = 10_000

const (
	minColumn, minBar = 8, 10 // columns of text that a column, and the bars, do not go below
	maxBar            = 60
	noWidth           = 80 // of what is no terminal, for bars
)

// add takes a row.
func (t *table) add(line []byte) {
	row := cells(t.columns, line)
	for i := range row {
		row[i].text = string(t.appendCell(nil, row[i].text))
	}
	if t.rows = append(t.rows, row); t.hold && len(t.rows) >= maxHeld {
		t.hold = false
	}
}

// appendCell appends a text for people: times are local.
func (t *table) appendCell(dst []byte, text string) []byte {
	const canonical = len("2026-05-28T12:40:00.000000000Z")
	if len(text) == canonical && text[10] == 'T' && text[canonical-1] == 'Z' {
		return bytes.TrimSuffix(t.appendTime(dst, text), []byte(".000"))
	}
	return appendPlain(dst, text)
}

// flush appends the rows that may be shown.
func (t *table) flush(dst []byte) []byte {
	if t.hold || len(t.rows) == 0 {
		return dst
	}
	if !t.shown {
		t.layOut()
		dst = t.appendRow(dst, t.head(), true)
		t.shown = true
	}
	for _, row := range t.rows {
		dst = t.appendRow(dst, row, false)
	}
	t.rows = t.rows[:0]
	return dst
}

func (t *table) head() []cell {
	head := make([]cell, len(t.columns))
	for i, name := range t.columns {
		head[i].text = string(appendPlain(nil, name))
	}
	return head
}

// layOut finds the widths, by the rows that are there.
func (t *table) layOut() {
	t.widths, t.right = make([]int, len(t.columns)), make([]bool, len(t.columns))
	for i := range t.columns {
		t.right[i] = slices.ContainsFunc(t.rows, func(row []cell) bool { return row[i].isNum })
		for _, row := range t.rows {
			t.widths[i] = max(t.widths[i], utf8.RuneCountInString(row[i].text))
			t.right[i] = t.right[i] && (row[i].isNum || row[i].text == "")
		}
	}
	t.bar = t.barColumn()
	const gap = 2
	all := 0
	for i, cell := range t.head() {
		if t.widths[i] > 0 || !isLine(t.columns) { // a line's field that none has is left out
			t.widths[i] = max(t.widths[i], utf8.RuneCountInString(cell.text))
			all += t.widths[i] + gap
		}
	}
	room := t.width
	if t.bar >= 0 {
		switch fit := cmp.Or(t.width, noWidth) - minBar; {
		case t.bars == barsIfFit && all > fit:
			t.bar = -1
		case t.width > 0:
			room = max(1, fit)
		}
	}
	for room > 0 && all-gap > room {
		widest := 0
		for i, w := range t.widths {
			if w > t.widths[widest] && !t.right[i] || t.right[widest] {
				widest = i
			}
		}
		less := min(t.widths[widest]-minColumn, all-gap-room)
		if less <= 0 || t.right[widest] {
			break
		}
		// Not below the next one at once, so that they shrink together.
		t.widths[widest] -= max(1, less/4)
		all -= max(1, less/4)
	}
	if t.bar < 0 {
		return
	}
	longest := min(maxBar, max(minBar, cmp.Or(t.width, noWidth)-all-1))
	for _, row := range t.rows {
		if n := max(row[t.bar].number, -row[t.bar].number); n > 0 {
			t.scale = max(t.scale, n)
		}
	}
	if t.scale > 0 {
		t.scale = float64(longest) / t.scale
	}
}

// barColumn returns the column that gets bars: the only one of numbers, or the first after
// what groups rows.
func (t *table) barColumn() int {
	var numbers []int
	timed := false
	for i, name := range t.columns {
		if t.right[i] && (i > 0 || len(t.columns) == 1) {
			numbers = append(numbers, i)
		}
		timed = timed || name == "time"
	}
	switch {
	case t.bars == noBars || len(numbers) == 0:
		return -1
	case t.bars == barsIfFit && (len(t.rows) < 2 || len(numbers) > 1 && !timed):
		return -1
	}
	if i := slices.Index(t.columns, "count"); slices.Contains(numbers, i) {
		return i
	}
	return numbers[0]
}

func isLine(columns []string) bool {
	return len(columns) == len(lineColumns) && &columns[0] == &lineColumns[0]
}

func (t *table) appendRow(dst []byte, row []cell, head bool) []byte {
	start := len(dst)
	for i, c := range row {
		if t.widths[i] == 0 {
			continue
		}
		if len(dst) > start {
			dst = append(dst, "  "...)
		}
		n := utf8.RuneCountInString(c.text)
		if n > t.widths[i] && t.width > 0 {
			c.text, n = string([]rune(c.text)[:t.widths[i]-1])+"…", t.widths[i]
		}
		blanks := strings.Repeat(" ", max(0, t.widths[i]-n))
		if t.right[i] {
			dst = append(dst, blanks...)
		}
		if head {
			dst = t.paint(dst, encode.ColorFaint, []byte(c.text))
		} else {
			dst = append(dst, c.text...)
		}
		if !t.right[i] {
			dst = append(dst, blanks...)
		}
	}
	if t.bar >= 0 && !head {
		dst = t.appendBar(append(dst, "  "...), row[t.bar].number*t.scale)
	}
	return append(bytes.TrimRight(dst, " "), '\n')
}

// appendBar appends a bar of n columns, in eighths; below 0 it is light.
func (t *table) appendBar(dst []byte, n float64) []byte {
	if n < 0 {
		return t.paint(dst, encode.ColorCyan, []byte(strings.Repeat("░", int(min(-n, maxBar)+0.5))))
	}
	eighths := int(min(n, maxBar)*8 + 0.5)
	bar := strings.Repeat("█", eighths/8)
	if rest := eighths % 8; rest > 0 {
		bar += string('█' + rune(8-rest))
	} else if eighths == 0 && n > 0 {
		bar = "▏"
	}
	return t.paint(dst, encode.ColorCyan, []byte(bar))
}

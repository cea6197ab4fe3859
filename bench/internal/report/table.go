// Package report makes the tables of the documents from measured results: rows
// and columns, number formats, verdicts, and the place between two markers.
package report

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Table is a Markdown table: the first column is text, the others numbers.
type Table struct {
	head []string
	rows [][]string
}

// NewTable returns a table with these columns.
func NewTable(head ...string) *Table { return &Table{head: head} }

// Row adds a row of as many cells as there are columns.
func (t *Table) Row(cells ...string) {
	if len(cells) != len(t.head) {
		panic(fmt.Sprintf("a row of %d cells in a table of %d columns", len(cells), len(t.head)))
	}
	t.rows = append(t.rows, cells)
}

// Append adds the rows of another table with as many columns.
func (t *Table) Append(o *Table) { t.rows = append(t.rows, o.rows...) }

// Column is one column of a table whose rows are made from values of type R.
type Column[R any] struct {
	Head string
	Cell func(R) string
}

// Of returns a table with a row for each value.
func Of[R any](rows []R, columns ...Column[R]) *Table {
	t := &Table{}
	for _, c := range columns {
		t.head = append(t.head, c.Head)
	}
	for _, r := range rows {
		var cells []string
		for _, c := range columns {
			cells = append(cells, c.Cell(r))
		}
		t.Row(cells...)
	}
	return t
}

// Grid returns a table with a cell for each pair of a row and a column.
func Grid(corner string, rows, columns []string, cell func(row, column string) string) *Table {
	all := []Column[string]{{corner, func(row string) string { return row }}}
	for _, c := range columns {
		all = append(all, Column[string]{c, func(row string) string { return cell(row, c) }})
	}
	return Of(rows, all...)
}

// String is the table in Markdown.
func (t *Table) String() string {
	var b strings.Builder
	line := func(cells []string) { b.WriteString("| " + strings.Join(cells, " | ") + " |\n") }
	line(t.head)
	b.WriteString("|---|" + strings.Repeat("--:|", len(t.head)-1) + "\n")
	for _, row := range t.rows {
		line(row)
	}
	return b.String()
}

// Titled is the table under a bold title.
func (t *Table) Titled(format string, args ...any) string {
	return "\n" + fmt.Sprintf(format, args...) + "\n\n" + t.String()
}

// Targets is a table of figures compared with what they should be.
type Targets struct{ *Table }

// NewTargets returns one whose second column is named here.
func NewTargets(here string) Targets { return Targets{NewTable("figure", here, "target", "reached")} }

// Add adds a figure.
func (t Targets) Add(name, here, target string, reached bool) {
	t.Row(name, here, target, Verdict(reached))
}

// Verdict is the last cell of a target.
func Verdict(reached bool) string {
	if reached {
		return "yes"
	}
	return "**no**"
}

// Replace puts text between the lines <!-- NAME:begin --> and <!-- NAME:end -->
// of a file. It reports whether the file changed.
func Replace(path, name, text string) (changed bool, err error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return false, err
	}
	beginMark, endMark := "<!-- "+name+":begin -->\n", "<!-- "+name+":end -->\n"
	before, rest, ok := strings.Cut(string(data), beginMark)
	_, after, ok2 := strings.Cut(rest, endMark)
	if !ok || !ok2 {
		return false, fmt.Errorf("%s has no lines %q and %q in this order", path, strings.TrimSpace(beginMark), strings.TrimSpace(endMark))
	}
	replaced := before + beginMark + text + endMark + after
	if replaced == string(data) {
		return false, nil
	}
	return true, os.WriteFile(path, []byte(replaced), 0o644)
}

// A Report is what results make of a document: the text between its markers,
// and pictures by their path from the document's folder.
type Report struct {
	Text     string
	Pictures map[string]string
}

// Write puts the report into the document.
func (r Report) Write(document, name string) error {
	for path, picture := range r.Pictures {
		if err := os.WriteFile(filepath.Join(filepath.Dir(document), path), []byte(picture), 0o644); err != nil {
			return err
		}
	}
	changed, err := Replace(document, name, r.Text)
	if changed {
		fmt.Printf("%s: tables of %s written\n", document, name)
	}
	return err
}

// missing is a figure that a table needs and the results do not have.
type missing string

// Miss ends the table that is being made; Make returns the error.
func Miss(format string, args ...any) { panic(missing(fmt.Sprintf(format, args...))) }

// Make calls f and returns a figure that it misses as an error.
func Make[T any](f func() T) (made T, err error) {
	defer func() {
		switch what := recover().(type) {
		case nil:
		case missing:
			err = fmt.Errorf("no samples of %s: measure again", string(what))
		default:
			panic(what)
		}
	}()
	return f(), nil
}

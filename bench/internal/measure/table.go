package measure

import (
	"fmt"
	"os"
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

// Circumstances says in one paragraph where and how results came to be.
func (r *Results) Circumstances() string {
	noisy, all := 0, len(r.Samples)
	for _, s := range r.Samples {
		if s.OthersPct > noisyPct {
			noisy++
		}
	}
	return fmt.Sprintf("%s, commit %s, %s on %s with GOMAXPROCS=%d (%s, %s, %d cores); %d interleaved rounds; in %d of %d samples other processes used more than %d %% of a core.\n",
		r.Date, r.Commit, r.Go, r.Machine.Arch, r.Machine.GOMAXPROCS, r.Machine.CPU, r.Machine.System, r.Machine.Cores, r.Rounds, noisy, all, noisyPct)
}

// Replace puts text between the lines <!-- NAME:begin --> and <!-- NAME:end -->
// of a file. It returns whether the file changed.
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

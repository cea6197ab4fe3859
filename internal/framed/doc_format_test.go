package framed

import (
	"os"
	"strings"
	"testing"
)

// docs/FORMAT.md has the tables of format.go, line by line.
func TestFormatTables(t *testing.T) {
	src, err := os.ReadFile("format.go")
	if err != nil {
		t.Fatal(err)
	}
	doc, err := os.ReadFile("../../docs/FORMAT.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(doc), "\n## Framed segment\n")
	n := 0
	for line := range strings.Lines(string(src)) {
		rest, ok := strings.CutPrefix(strings.TrimRight(line, "\n"), "//\t")
		if !ok || strings.TrimSpace(rest) == "" {
			continue
		}
		n++
		if !strings.Contains(section, "\n"+rest+"\n") {
			t.Errorf("docs/FORMAT.md does not have the line %q", rest)
		}
	}
	if n < 25 {
		t.Errorf("%d lines of tables in format.go", n)
	}
}

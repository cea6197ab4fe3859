package slabfile

import (
	"os"
	"strings"
	"testing"
)

// docs/FORMAT.md has the tables of layout.go.
func TestFormatTables(t *testing.T) {
	src, err := os.ReadFile("layout.go")
	if err != nil {
		t.Fatal(err)
	}
	doc, err := os.ReadFile("../../docs/FORMAT.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, found := strings.Cut(string(src), "//\tHeader")
	table, _, _ = strings.Cut(table, "\nconst")
	table = strings.ReplaceAll(strings.ReplaceAll(table, "\n//\t", "\n"), "\n//\n", "\n\n")
	if !found || !strings.Contains(string(doc), "\nHeader"+table) {
		t.Errorf("docs/FORMAT.md does not have\nHeader%s", table)
	}
}

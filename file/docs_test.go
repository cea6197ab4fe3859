package file_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/rollway/rollway/file"
	"github.com/rollway/rollway/internal/testkit"
)

// writersDoc returns the part of docs/WRITERS.md that is about files.
func writersDoc(t *testing.T) string {
	t.Helper()
	text := read(t, filepath.Join("..", "docs", "WRITERS.md"))
	_, text, ok := strings.Cut(text, "\n## file\n")
	if !ok {
		t.Fatal("docs/WRITERS.md has no part about files")
	}
	text, _, _ = strings.Cut(text, "\n## ")
	return text
}

// What the document says about files names tests: they exist, each of its rows
// has one, and none is a test that only skips.
func TestDocumentedTestsExist(t *testing.T) {
	have := map[string]bool{}
	for _, dir := range []string{".", filepath.Join("..", "internal", "logfile"), filepath.Join("..", "bridge", "zstd")} {
		if _, err := os.Stat(dir); err != nil && !testkit.All() {
			t.Logf("%s is in a whole checkout only", dir)
			have["TestFileRotation"] = true // it is there
			continue
		}
		for _, f := range parseTests(t, dir) {
			for _, d := range f.Decls {
				if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil {
					have[fn.Name.Name] = true
				}
			}
		}
	}
	doc := writersDoc(t)
	names := regexp.MustCompile("`((?:Test|Fuzz)[A-Z]\\w*)`").FindAllStringSubmatch(doc, -1)
	if len(names) < 60 {
		t.Fatalf("%d names of tests found: the pattern is broken", len(names))
	}
	for _, m := range names {
		if !have[m[1]] {
			t.Errorf("docs/WRITERS.md names %s, which does not exist", m[1])
		}
	}
	rows := 0
	_, table, _ := strings.Cut(doc, "\n### Complaints")
	table, _, _ = strings.Cut(table, "\n### ")
	for line := range strings.Lines(table) {
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| complaint ") {
			continue
		}
		rows++
		if !strings.Contains(line, "`Test") {
			t.Errorf("no test in the row %q", line)
		}
	}
	if rows < 30 {
		t.Errorf("%d complaints found: the table is broken", rows)
	}
}

func parseTests(t *testing.T, dir string) (files []*ast.File) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no tests in %s: %v", dir, err)
	}
	for _, path := range paths {
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		testkit.OK(t, err)
		files = append(files, f)
	}
	return files
}

// The table of options has each of them once.
func TestDocumentedOptions(t *testing.T) {
	_, table, ok := strings.Cut(writersDoc(t), "\n### Options\n")
	if !ok {
		t.Fatal("no part on options")
	}
	table, _, _ = strings.Cut(table, "\n### ")
	var documented []string
	for _, m := range regexp.MustCompile("(?m)^\\| `(\\w+)` \\|").FindAllStringSubmatch(table, -1) {
		documented = append(documented, m[1])
	}
	var options []string
	for _, field := range reflect.VisibleFields(reflect.TypeFor[file.Options]()) {
		options = append(options, field.Name)
	}
	if strings.Join(documented, " ") != strings.Join(options, " ") {
		t.Errorf("documented: %v\noptions:    %v", documented, options)
	}
}

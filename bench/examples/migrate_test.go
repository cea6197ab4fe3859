package examples

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const page = "../../docs/MIGRATE.md"

// cell is the code of a table's cell, or a piece of code in the text above a table.
type cell struct {
	line int
	code []string
}

// cells returns the code of each guide of the page by its heading; that of the text before
// them is with slog's.
func cells(t *testing.T, text string) map[string][]cell {
	guides := map[string][]cell{}
	guide, inTable := "slog", false
	for i, line := range strings.Split(text, "\n") {
		if heading, ok := strings.CutPrefix(line, "## "); ok {
			guide = heading
		}
		columns := strings.Split(strings.TrimSuffix(strings.TrimPrefix(line, "| "), " |"), " | ")
		switch {
		case !strings.HasPrefix(line, "|"):
			inTable = false
			for _, code := range inCode.FindAllStringSubmatch(line, -1) {
				if isCall.MatchString(code[1]) {
					guides[guide] = append(guides[guide], cell{i + 1, code[1:]})
				}
			}
		case strings.HasPrefix(line, "|---"):
			inTable = line == "|---|---|" // not that of prices
		case inTable && len(columns) != 2:
			t.Errorf("docs/MIGRATE.md:%d: a row has an old and a new call", i+1)
		case inTable:
			for _, column := range columns {
				c := cell{i + 1, nil}
				for _, code := range inCode.FindAllStringSubmatch(column, -1) {
					if !isName.MatchString(code[1]) { // a method that is spoken of
						c.code = append(c.code, code[1])
					}
				}
				if len(c.code) == 0 {
					t.Errorf("docs/MIGRATE.md:%d: no code in %q", i+1, column)
				}
				guides[guide] = append(guides[guide], c)
			}
		}
	}
	return guides
}

var (
	inCode = regexp.MustCompile("`([^`]+)`")
	isCall = regexp.MustCompile(`^(defer )?\w+\.\w+[({]`)
	isName = regexp.MustCompile(`^(\w+|e\.GetCtx\(\))$`)
)

// function returns a function with the cell's code, in which nothing is unused.
func (c cell) function() string {
	var b strings.Builder
	b.WriteString("_ = func() {\n")
	for _, code := range c.code {
		expr, err := parser.ParseExpr(code)
		if _, call := expr.(*ast.CallExpr); err == nil && !call {
			code = "_ = " + code
		}
		fmt.Fprintf(&b, "//line MIGRATE.md:%d\n%s\n", c.line, code)
		if name, _, declares := strings.Cut(code, " := "); declares && !strings.HasPrefix(code, "if ") {
			fmt.Fprintf(&b, "_ = %s\n", name)
		}
	}
	b.WriteString("}\n")
	return b.String()
}

// TestMigrate compiles the code of docs/MIGRATE.md: every cell of the tables, and calls and
// values in the text.
func TestMigrate(t *testing.T) {
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	given, err := os.ReadFile("given_test.go")
	if err != nil {
		t.Fatal(err)
	}
	program := strings.Replace(string(given), "package examples", "package main", 1) + "\nfunc main() {}\n"
	for guide, cells := range cells(t, string(text)) {
		var b strings.Builder
		for _, c := range cells {
			b.WriteString(c.function())
		}
		if len(cells) < 25 || !strings.Contains(program, "// CELLS "+guide+"\n") {
			t.Errorf("the guide %q has %d cells", guide, len(cells))
		}
		program = strings.Replace(program, "// CELLS "+guide+"\n", b.String(), 1)
	}
	if out, err := compile(t, program); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	// A cell that does not compile is found, with its line.
	bad := strings.Replace(program, `log.Info(ctx, "charged", slog.String("customer", id))`, `log.Inform(ctx, "charged")`, 1)
	if out, err := compile(t, bad); err == nil || !regexp.MustCompile(`MIGRATE\.md:\d+: log\.Inform undefined`).Match(out) {
		t.Errorf("a wrong cell: %v\n%s", err, out)
	}
}

func compile(t *testing.T, program string) ([]byte, error) {
	path := filepath.Join(t.TempDir(), "main.go")
	if err := os.WriteFile(path, []byte(program), 0o644); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("go", "build", "-gcflags=-e", "-o", os.DevNull, path).CombinedOutput()
	return bytes.TrimSpace(out), err
}

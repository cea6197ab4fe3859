package apidoc

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rollway/rollway/internal/testkit"
)

// Every function and type that docs/TOUR.md links to is declared in the linked file.
func TestTour(t *testing.T) {
	const docs = "../../docs"
	page, err := os.ReadFile(filepath.Join(docs, "TOUR.md"))
	if err != nil {
		testkit.Missing(t, "a whole checkout: "+err.Error())
	}
	links := regexp.MustCompile("\\[`([\\w.]+)`\\]\\(([^)]+\\.go)\\)").FindAllStringSubmatch(string(page), -1)
	if len(links) < 20 {
		t.Fatalf("%d links to Go files", len(links))
	}
	declared := map[string]map[string]bool{}
	for _, link := range links {
		name, file := link[1], link[2]
		if declared[file] == nil {
			declared[file] = declarations(t, filepath.Join(docs, file))
		}
		if !declared[file][name] {
			t.Errorf("%s does not declare %s", file, name)
		}
	}
	for _, link := range regexp.MustCompile(`\]\(([^)]+\.go)\)`).FindAllStringSubmatch(string(page), -1) {
		if declared[link[1]] == nil {
			t.Errorf("the link to %s names no declaration", link[1])
		}
	}
}

// declarations returns the names of the functions, methods (Type.Method) and types that
// a file declares.
func declarations(t *testing.T, path string) map[string]bool {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Error(err)
		return map[string]bool{}
	}
	names := map[string]bool{}
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			names[receiver(d)+d.Name.Name] = true
		case *ast.GenDecl:
			for _, s := range d.Specs {
				if s, is := s.(*ast.TypeSpec); is {
					names[s.Name.Name] = true
				}
			}
		}
	}
	return names
}

// receiver returns the type of a method's receiver and a dot, or "" for a function.
func receiver(d *ast.FuncDecl) string {
	if d.Recv == nil {
		return ""
	}
	name := d.Recv.List[0].Type
	if star, is := name.(*ast.StarExpr); is {
		name = star.X
	}
	if ident, is := name.(*ast.Ident); is {
		return ident.Name + "."
	}
	return strings.Repeat("?", 3) + "." // a generic receiver, which the page does not name
}

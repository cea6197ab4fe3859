package imports

import (
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rollway/rollway/internal/testkit"
)

const (
	module = "github.com/rollway/rollway"
	root   = "../.."
)

// TestTable fails on an import that has no row and on a row that no import
// needs any more.
func TestTable(t *testing.T) {
	allowed := map[[2]string]bool{}
	for _, e := range table {
		key := [2]string{e.from, e.to}
		if allowed[key] {
			t.Errorf("two rows for %s -> %s", e.from, e.to)
		}
		if e.why == "" {
			t.Errorf("%s -> %s has no reason", e.from, e.to)
		}
		allowed[key] = true
	}
	used := map[[2]string]bool{}
	for _, imp := range imports(t, false) {
		key := [2]string{imp.from, imp.to}
		if isOwn(imp.to) && composes(imp.from) || inModule(imp.from, "bench") {
			continue
		}
		if !isOwn(imp.to) { // the row of another module is for all its packages
			for _, e := range table {
				if e.from == imp.from && inModule(imp.to, e.to) {
					key[1] = e.to
				}
			}
		}
		if !allowed[key] && !used[key] {
			t.Errorf("%s: %s imports %s, which is not in the table; if it should be, add\n\t{%q, %q, %q},", imp.file, imp.from, imp.to, imp.from, imp.to, "REASON")
		}
		used[key] = true
	}
	for _, e := range table {
		if !used[[2]string{e.from, e.to}] {
			t.Errorf("the table allows %s -> %s, which nothing needs", e.from, e.to)
		}
	}
}

// TestStagesDoNotImportEachOther keeps the table itself honest.
func TestStagesDoNotImportEachOther(t *testing.T) {
	for _, e := range table {
		fromStage, toStage := slices.Contains(stages, e.from), slices.Contains(stages, e.to)
		switch {
		case fromStage && (toStage || e.to == "."):
			t.Errorf("stage %s imports %s", e.from, e.to)
		case e.from == "." && toStage:
			t.Errorf("package rollway imports stage %s", e.to)
		}
	}
}

// TestLibraryDependsOnTheStandardLibrary: a program that imports the library
// must get nothing but it and golang.org/x/sys, its tests included.
func TestLibraryDependsOnTheStandardLibrary(t *testing.T) {
	nested := nestedModules(t)
	inNested := func(pkg string) bool {
		return slices.ContainsFunc(nested, func(dir string) bool { return inModule(pkg, dir) })
	}
	for _, withTests := range []bool{false, true} {
		for _, imp := range imports(t, withTests) {
			if inNested(imp.from) || isOwn(imp.to) && !inNested(imp.to) || inModule(imp.to, "golang.org/x/sys") {
				continue
			}
			t.Errorf("%s: the library's module imports %s", imp.file, imp.to)
		}
	}
}

// TestGoWorkListsEveryModule: what builds, tests and releases the modules goes
// by go.work.
func TestGoWorkListsEveryModule(t *testing.T) {
	work, err := os.ReadFile(filepath.Join(root, "go.work"))
	if err != nil {
		testkit.Missing(t, "go.work, which is in a whole checkout only: "+err.Error())
	}
	for _, dir := range nestedModules(t) {
		if !strings.Contains(string(work), "\t./"+dir+"\n") {
			t.Errorf("go.work has no line ./%s", dir)
		}
	}
}

// nestedModules lists the folders of the modules below the library's.
func nestedModules(t *testing.T) []string {
	t.Helper()
	var dirs []string
	for _, pattern := range []string{"*/go.mod", "*/*/go.mod"} {
		files, err := fs.Glob(os.DirFS(root), pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			dirs = append(dirs, path.Dir(file))
		}
	}
	return dirs
}

// TestComposersExist fails on a composer that is gone.
func TestComposersExist(t *testing.T) {
	for _, dir := range slices.Sorted(maps.Keys(composers)) {
		if _, err := os.Stat(filepath.Join(root, dir)); err != nil {
			t.Errorf("composer %s: %v", dir, err)
		}
	}
}

type imported struct{ file, from, to string }

// imports lists every import of something other than the standard library, of
// test files or of the others, under any build constraint.
func imports(t *testing.T, tests bool) []imported {
	t.Helper()
	if _, err := os.Stat(filepath.Join(root, "collector", "go.mod")); err != nil {
		testkit.Missing(t, "a whole checkout: "+err.Error())
	}
	var found []imported
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && file != root && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || d.Name() == "data"):
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") != tests:
			return nil
		}
		rel, err := filepath.Rel(root, file)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, spec := range parsed.Imports {
			to, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			if first, _, _ := strings.Cut(to, "/"); strings.Contains(first, ".") {
				found = append(found, imported{rel, path.Dir(rel), short(to)})
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(found) == 0 && !tests {
		t.Fatal("no import found: the walk is broken")
	}
	return found
}

// short names a package of this repository by its folder.
func short(importPath string) string {
	if importPath == module {
		return "."
	}
	return strings.TrimPrefix(importPath, module+"/")
}

// isOwn reports whether a shortened path is of this repository.
func isOwn(to string) bool {
	first, _, _ := strings.Cut(to, "/")
	return to == "." || !strings.Contains(first, ".")
}

func inModule(pkg, dir string) bool { return pkg == dir || strings.HasPrefix(pkg, dir+"/") }

// composes reports whether from is a composer: exactly the folders named, and
// all folders below those that hold programs only.
func composes(from string) bool {
	if composers[from] != "" {
		return true
	}
	return inModule(from, "examples") || inModule(from, "bench") || inModule(from, "scripts")
}

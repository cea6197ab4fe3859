package apidoc

import (
	"bytes"
	"flag"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rollway/rollway/internal/testkit"
)

var update = flag.Bool("update", false, "write the golden files anew")

const root = "../.."

// modules are the folders of the modules that other programs import. The
// collector's is a program.
var modules = []string{".", "bridge", "bridge/logruslog", "bridge/zaplog"}

// TestGolden compares what go doc says of each public package with its golden
// file. After an intended change:
//
//	go test ./internal/apidoc -update
func TestGolden(t *testing.T) {
	var names []string
	for _, module := range modules {
		if _, err := os.Stat(filepath.Join(root, module, "go.mod")); err != nil {
			testkit.Missing(t, "a whole checkout: "+err.Error())
		}
		for _, pkg := range packages(t, module) {
			name := goldenName(path.Join(module, pkg))
			names = append(names, name)
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				compare(t, filepath.Join("testdata", name), doc(t, module, pkg))
			})
		}
	}
	if len(names) < 10 {
		t.Errorf("only %d public packages found: %v", len(names), names)
	}
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if !slices.Contains(names, filepath.Base(file)) {
			t.Errorf("%s is of a package that is gone: remove it", file)
		}
	}
}

func goldenName(pkg string) string {
	if pkg == "." {
		return "rollway.txt"
	}
	return strings.ReplaceAll(pkg, "/", "_") + ".txt"
}

// packages returns the module's packages that others may import, as paths below
// its folder.
func packages(t *testing.T, module string) (pkgs []string) {
	t.Helper()
	const prefix = "github.com/rollway/rollway"
	for _, pkg := range strings.Fields(run(t, module, "list", "-f", "{{if ne .Name \"main\"}}{{.ImportPath}}{{end}}", "./...")) {
		pkg = strings.TrimPrefix(strings.TrimPrefix(pkg, path.Join(prefix, module)), "/")
		if dirs := strings.Split(pkg, "/"); dirs[0] != "examples" && !slices.Contains(dirs, "internal") {
			pkgs = append(pkgs, path.Clean(pkg))
		}
	}
	return pkgs
}

func doc(t *testing.T, module, pkg string) string {
	t.Helper()
	return run(t, module, "doc", "-all", "./"+pkg)
}

func run(t *testing.T, module string, args ...string) string {
	t.Helper()
	var stderr bytes.Buffer
	cmd := exec.Command("go", args...)
	cmd.Dir, cmd.Stderr = filepath.Join(root, module), &stderr
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOOS=linux", "GOARCH=amd64")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, stderr.String())
	}
	return string(out)
}

func compare(t *testing.T, golden, got string) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(golden), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(golden, []byte(got), 0o666); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatalf("%v; go test ./internal/apidoc -update writes it", err)
	}
	gotLines, wantLines := strings.Split(got, "\n"), strings.Split(string(want), "\n")
	for i := range max(len(gotLines), len(wantLines)) {
		if i >= len(gotLines) || i >= len(wantLines) || gotLines[i] != wantLines[i] {
			t.Fatalf("%s:%d: go doc says\n\t%s\nthe golden file has\n\t%s\nIf that is intended: go test ./internal/apidoc -update",
				golden, i+1, lineAt(gotLines, i), lineAt(wantLines, i))
		}
	}
}

func lineAt(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return "(nothing)"
}

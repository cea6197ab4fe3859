package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rollway/rollway/collector/config"
)

// root is the root of the repository.
var root = filepath.Join("..", "..", "..")

// docs/REFERENCE.md is made from the tables of the code, and the -update flag makes it anew.
func TestReference(t *testing.T) {
	var b strings.Builder
	b.WriteString("# Reference\n\nEvery [command and flag](#commands), [environment variable](#environment), [exit status](#exit-statuses),\n" +
		"[setting](#settings) and [metric](#metrics). A test makes this page from the code: change it there,\nand run `go test ./cmd/rollway -run TestReference -update` in the folder `collector`.\n")
	b.WriteString("\n## Commands\n\n`rollway help COMMAND` has examples and describes what each does; `rollway help -o json` prints\nthe tables below for programs.\n\n")
	columns(&b, "command", "what it does")
	for _, cmd := range commands() {
		row(&b, fmt.Sprintf("[%s](#rollway-%[1]s)", cmd.name), cmd.summary)
	}
	for _, cmd := range commands() {
		d := cmd.described()
		fmt.Fprintf(&b, "\n### rollway %s\n\n`%s`\n\n", d.Name, d.Usage)
		columns(&b, "flag", "takes", "what it does")
		for _, f := range d.Flags {
			usage := f.Usage
			if f.Default != "" && f.Value != "" {
				usage += " (default " + f.Default + ")"
			}
			row(&b, "`-"+f.Name+"`", cmp.Or(strings.Join(f.Words, ", "), f.Value), usage)
		}
	}
	b.WriteString("\n## Environment\n\nOf `rollway`:\n\n")
	columns(&b, "variable", "what it is")
	for _, v := range variables {
		row(&b, "`"+v.name+"`", v.means)
	}
	b.WriteString("\nOf a service that logs by the package `production`:\n\n")
	columns(&b, "variable", "key in the file", "what it is")
	for _, v := range productionVariables(t) {
		row(&b, v[0], v[1], v[2])
	}
	b.WriteString("\n## Exit statuses\n\nOf every command:\n\n")
	columns(&b, "status", "meaning")
	for _, e := range exitCodes {
		row(&b, strconv.Itoa(e.code), e.means)
	}
	b.WriteString("\nA service that logs by the library ends with 1 after `Logger.Fatal`, and with 128 + the signal's number where\n`Logger.ExitOnSignal` ends it.\n")
	b.WriteString("\n## Settings\n\nKeys of the file of `rollway serve -config`. `rollway check -example` prints it with longer comments.\n\n")
	columns(&b, "key", "default", "valid", "what it is")
	for _, s := range settingRows(t) {
		row(&b, s[:]...)
	}
	b.WriteString("\n## Metrics\n\nOf a collector, `GET /metrics`, besides those that the Prometheus library has of the process and of Go:\n\n")
	columns(&b, "metric", "kind", "labels", "what it is")
	for _, m := range metricRows(t) {
		row(&b, m[:]...)
	}
	b.WriteString("\nOf the library and of `rollway relay`, written by `Stats.WriteMetrics`:\n\n")
	columns(&b, "metric", "kind", "labels", "what it is")
	for _, m := range libraryRows(t) {
		row(&b, m[:]...)
	}

	path := filepath.Join(root, "docs", "REFERENCE.md")
	if *update {
		writeFile(t, path, b.String())
	}
	if have, err := os.ReadFile(path); err != nil || string(have) != b.String() {
		t.Errorf("docs/REFERENCE.md is not what the code says (%v): run this test with -update", err)
	}
}

func columns(b *strings.Builder, names ...string) {
	fmt.Fprintf(b, "| %s |\n|%s\n", strings.Join(names, " | "), strings.Repeat("---|", len(names)))
}

// inCell keeps text in its cell.
var inCell = strings.NewReplacer("|", `\|`, "\n", " ", "<", "&lt;", "*", `\*`)

func row(b *strings.Builder, cells ...string) {
	for _, text := range cells {
		b.WriteString("| " + inCell.Replace(strings.TrimSpace(text)) + " ")
	}
	b.WriteString("|\n")
}

// structs returns the struct types of a package with its comments.
func structs(t *testing.T, dir string) map[string]*ast.StructType {
	t.Helper()
	all := map[string]*ast.StructType{}
	for _, f := range parsed(t, dir) {
		ast.Inspect(f, func(n ast.Node) bool {
			if s, ok := n.(*ast.TypeSpec); ok {
				if st, ok := s.Type.(*ast.StructType); ok {
					all[s.Name.Name] = st
				}
			}
			return true
		})
	}
	return all
}

// parsed returns the files of a package, without its tests, in the order of their names.
func parsed(t *testing.T, dir string) (files []*ast.File) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil || len(names) == 0 {
		t.Fatalf("%s has no files: %v", dir, err)
	}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	return files
}

// ofPackage matches the links of Go's documentation.
var ofPackage = regexp.MustCompile(`\[([a-z]+\.[A-Za-z.]+)\]`)

// productionVariables returns name, key and meaning of the settings of package production.
func productionVariables(t *testing.T) (rows [][3]string) {
	named := regexp.MustCompile(`Variable:\s+(ROLLWAY_([A-Z_]+))\.`)
	for _, field := range structs(t, filepath.Join(root, "production"))["Options"].Fields.List {
		text := field.Doc.Text()
		m := named.FindStringSubmatch(text)
		if m == nil {
			continue
		}
		key := "`" + strings.ToLower(m[2]) + "`"
		if m[2] == "TOKEN" || m[2] == "LOG_CONFIG" {
			key = ""
		}
		before, _, example := strings.Cut(text, "\n\n")
		if _, last, ok := strings.Cut(text, "Default:"); ok && example {
			before += " Default:" + last
		}
		text = strings.Join(strings.Fields(named.ReplaceAllString(before, "")), " ")
		rows = append(rows, [3]string{"`" + m[1] + "`", key, ofPackage.ReplaceAllString(text, "`$1`")})
	}
	source, err := os.ReadFile(filepath.Join(root, "production", "settings.go"))
	if err != nil {
		t.Fatal(err)
	}
	read := regexp.MustCompile(`(?m)setting\{"[A-Z_]+"|^\t\{"[A-Z_]+", func`).FindAll(source, -1)
	if len(rows) != len(read)+1 { // and that of the file
		t.Errorf("production reads %d variables, and the comments of its Options name %d", len(read)+1, len(rows))
	}
	return rows
}

// settingRows returns key, default, valid values and meaning of each setting.
func settingRows(t *testing.T) (rows [][4]string) {
	types := structs(t, filepath.Join("..", "..", "config"))
	var walk func(of, section string)
	walk = func(of, section string) {
		for _, field := range types[of].Fields.List {
			if field.Tag == nil {
				continue
			}
			text, err := strconv.Unquote(field.Tag.Value)
			if err != nil {
				t.Fatal(err)
			}
			tag := reflect.StructTag(text)
			key := section + tag.Get("key")
			if name, ok := field.Type.(*ast.Ident); ok && types[name.Name] != nil {
				walk(name.Name, key+".")
				continue
			}
			valid := strings.TrimPrefix(tag.Get("check"), "one ")
			if r := tag.Get("range"); r != "" {
				valid = strings.Replace(strings.Replace(r, " ", " to ", 1), "to *", "or more", 1)
			}
			value := tag.Get("default")
			if value != "" {
				value = "`" + value + "`"
			}
			rows = append(rows, [4]string{"`" + key + "`", value, valid, field.Comment.Text()})
		}
	}
	walk("Config", "")
	for i, key := range config.Keys() {
		if i >= len(rows) || rows[i][0] != "`"+key+"`" {
			t.Fatalf("setting %d is %s, and the source has %v", i, key, rows[min(i, len(rows)-1)])
		}
	}
	return rows
}

// kinds are the kinds of metrics by the functions of promtext that make them.
var kinds = map[string]string{"Counter": "counter", "Counters": "counter", "Gauge": "gauge", "Gauges": "gauge", "Flag": "gauge", "Seconds": "gauge", "Summary": "summary"}

// metricRows returns name, kind, labels and help of the metrics in the source of the
// collector: a scrape lacks those that have no sample yet.
func metricRows(t *testing.T) (rows [][4]string) {
	for _, f := range parsed(t, filepath.Join("..", "..")) {
		inSinks := token.NoPos
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				if inSinks = token.NoPos; n.Name.Name == "tableOfSinks" {
					inSinks = n.Pos()
				}
			case *ast.CallExpr:
				sel, _ := n.Fun.(*ast.SelectorExpr)
				if sel == nil || kinds[sel.Sel.Name] == "" || fmt.Sprint(sel.X) != "promtext" {
					return true
				}
				labels := ""
				if len(n.Args) > 2 {
					labels = strings.Join(texts(n.Args[2]), ", ")
				}
				if inSinks != token.NoPos {
					labels = strings.TrimSuffix("sink, "+labels, ", ")
				}
				rows = append(rows, [4]string{"`rollway_" + texts(n.Args[0])[0] + "`", kinds[sel.Sel.Name], labels, texts(n.Args[1])[0]})
			case *ast.CompositeLit:
				if sel, _ := n.Type.(*ast.SelectorExpr); sel != nil && sel.Sel.Name == "HistogramOpts" {
					all := texts(n)
					rows = append(rows, [4]string{"`" + all[0] + "`", "histogram", "endpoint, code", all[1]})
				}
			}
			return true
		})
	}
	slices.SortFunc(rows, func(a, b [4]string) int { return strings.Compare(a[0], b[0]) })
	return rows
}

// texts returns the literals in n that are text, if n is not a call.
func texts(n ast.Node) (list []string) {
	ast.Inspect(n, func(n ast.Node) bool {
		if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			if text, err := strconv.Unquote(lit.Value); err == nil {
				list = append(list, text)
			}
		}
		_, isCall := n.(*ast.CallExpr)
		return !isCall
	})
	return list
}

// libraryRows returns name, kind, labels and help of what WriteMetrics writes.
func libraryRows(t *testing.T) (rows [][4]string) {
	label := regexp.MustCompile(`([a-z_]+)="`)
	_, text := libraryMetrics(t)
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		last := len(rows) - 1
		switch {
		case fields[0] == "#" && fields[1] == "HELP":
			rows = append(rows, [4]string{"`" + fields[2] + "`", "", "", strings.Join(fields[3:], " ")})
		case fields[0] == "#":
			rows[last][1] = fields[3]
		case rows[last][2] == "":
			var names []string
			for _, m := range label.FindAllStringSubmatch(line, -1) {
				if m[1] != "log" { // a label that the caller gives
					names = append(names, m[1])
				}
			}
			rows[last][2] = strings.Join(names, ", ")
		}
	}
	return rows
}

// A scrape of a collector has no metric that the reference lacks, and the reference has each
// with the same help.
func TestReferenceHasEveryMetric(t *testing.T) {
	_, text := collectorMetrics(t)
	rows, n := metricRows(t), 0
	for _, m := range regexp.MustCompile(`(?m)^# HELP (rollway_\S+) (.*)$`).FindAllStringSubmatch(text, -1) {
		n++
		if !slices.ContainsFunc(rows, func(row [4]string) bool { return row[0] == "`"+m[1]+"`" && row[3] == m[2] }) {
			t.Errorf("docs/REFERENCE.md lacks %s: %s", m[1], m[2])
		}
	}
	if n < 60 {
		t.Errorf("the scrape has %d metrics of rollway", n)
	}
}

// Each variable that the program reads is in its table.
func TestVariablesAreListed(t *testing.T) {
	var names []string
	for _, v := range variables {
		names = append(names, v.name)
	}
	consts := map[string]string{}
	var used []ast.Expr
	for _, dir := range []string{".", filepath.Join("..", "..")} {
		for _, f := range parsed(t, dir) {
			ast.Inspect(f, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.ValueSpec:
					for i, v := range n.Values {
						if all := texts(v); len(all) == 1 && i < len(n.Names) {
							consts[n.Names[i].Name] = all[0]
						}
					}
				case *ast.CallExpr:
					if sel, _ := n.Fun.(*ast.SelectorExpr); sel != nil && slices.Contains([]string{"Getenv", "LookupEnv", "Unsetenv"}, sel.Sel.Name) {
						used = append(used, n.Args[0])
					}
				}
				return true
			})
		}
	}
	for _, e := range used {
		name := ""
		switch e := e.(type) {
		case *ast.BasicLit:
			name, _ = strconv.Unquote(e.Value)
		case *ast.Ident:
			name = consts[e.Name]
		}
		if !slices.Contains(names, name) {
			t.Errorf("the table of variables lacks %s", cmp.Or(name, fmt.Sprint(e)))
		}
	}
	if len(used) < 5 {
		t.Errorf("the source reads %d variables", len(used))
	}
}

package allocstudy

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Escape is one decision of the compiler, as -gcflags=-m prints it.
type Escape struct {
	Go      string `json:"go"`
	Func    string `json:"func"`    // plain.newEvent
	Line    int    `json:"line"`    // in the design's file
	What    string `json:"what"`    // &event{...}
	Verdict string `json:"verdict"` // one of the constants below
	Text    string `json:"text"`    // the line as printed
}

// Where a value may end up.
const (
	Heap   = "heap"
	Stack  = "stack"
	NoCopy = "no copy" // bytes of a string that are not changed
)

var (
	diagnostic = regexp.MustCompile(`^(?:\./)?([a-z]+)[/\\]([a-z]+\.go):(\d+):\d+: (.*)$`)
	plainName  = regexp.MustCompile(`^[A-Za-z_.]+$`)
)

// parseEscapes picks from the compiler's output what it says about values:
// literals, conversions, makes, and variables that move to the heap. What
// becomes of parameters and what is inlined is left out.
func parseEscapes(goVersion string, output []byte) ([]Escape, error) {
	var found []Escape
	for line := range strings.Lines(string(output)) {
		line = strings.TrimRight(line, "\r\n")
		m := diagnostic.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		e := Escape{Go: goVersion, Text: line}
		var err error
		if e.Line, err = strconv.Atoi(m[3]); err != nil {
			return nil, fmt.Errorf("%q: %w", line, err)
		}
		if e.Func, err = function(m[1], m[2], e.Line); err != nil {
			return nil, fmt.Errorf("%q: %w", line, err)
		}
		if !e.read(m[4]) {
			continue
		}
		same := func(f Escape) bool { return f.key() == e.key() && f.Verdict == e.Verdict }
		if !slices.ContainsFunc(found, same) {
			found = append(found, e)
		}
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("it says nothing about the designs: %q", output)
	}
	return found, nil
}

// read takes What and Verdict from the text after the position. It returns
// false if the text is about something else.
func (e *Escape) read(text string) bool {
	what, ok := "", false
	if text == "zero-copy string->[]byte conversion" {
		e.What, e.Verdict = "([]byte)(msg)", NoCopy
		return true
	} else if what, ok = strings.CutPrefix(text, "moved to heap: "); ok {
		e.Verdict = Heap
	} else if what, ok = strings.CutSuffix(text, " escapes to heap"); ok {
		e.Verdict = Heap
	} else if what, ok = strings.CutSuffix(text, " does not escape"); ok {
		e.Verdict = Stack
	} else {
		return false
	}
	// The first Go here says the same in other words: "Info &event literal".
	_, name, _ := strings.Cut(e.Func, ".")
	what = strings.TrimPrefix(what, name+" ")
	if what != "func literal" {
		what = strings.Replace(what, " literal", "{...}", 1)
	}
	e.What = what
	return e.Verdict == Heap || !plainName.MatchString(what)
}

// key is the same for what several compilers say about one value.
func (e Escape) key() string { return fmt.Sprintf("%s:%d:%s", e.Func, e.Line, e.What) }

// function names the function that a line of a design is in.
func function(pkg, file string, line int) (string, error) {
	name := path.Join("testdata/designs", pkg, file)
	source, err := sources.ReadFile(name)
	if err != nil {
		return "", err
	}
	set := token.NewFileSet()
	parsed, err := parser.ParseFile(set, name, source, parser.SkipObjectResolution)
	if err != nil {
		return "", err
	}
	for _, d := range parsed.Decls {
		if set.Position(d.Pos()).Line > line || set.Position(d.End()).Line < line {
			continue
		}
		switch d := d.(type) {
		case *ast.FuncDecl:
			return pkg + "." + d.Name.Name, nil
		case *ast.GenDecl:
			if v, ok := d.Specs[0].(*ast.ValueSpec); ok {
				return pkg + "." + v.Names[0].Name, nil
			}
		}
	}
	return "", fmt.Errorf("%s has no function in line %d", name, line)
}

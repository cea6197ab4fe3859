// Package tables makes the tables and pictures of the documents from raw results.
// Each section of a document is a template beside this file; funcs.go has what a
// template can call.
package tables

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"text/template"

	"github.com/rollway/rollway/bench/internal/measure"
)

//go:embed *.tmpl
var templates embed.FS

// A Section is a place in a document, between the lines <!-- NAME:begin --> and
// <!-- NAME:end -->.
type Section struct{ Name, Document string }

// Sections lists all.
func Sections() []Section {
	return []Section{
		{"logger", "BENCHMARKS.md"}, {"writers", "BENCHMARKS.md"}, {"latency", "BENCHMARKS.md"}, {"direct", "BENCHMARKS.md"},
		{"ingest", "BENCHMARKS.md"}, {"query", "BENCHMARKS.md"}, {"allocstudy", "BENCHMARKS.md"}, {"front", "BENCHMARKS.md"},
		{"reliability", "RELIABILITY.md"}, {"stuck", "RELIABILITY.md"}, {"chaos", "RELIABILITY.md"}, {"redteam", "RELIABILITY.md"},
		{"relay", "RELAY.md"}, {"published", "PUBLISHED.md"}, {"compare-loggers", "COMPARE.md"}, {"compare-collectors", "COMPARE.md"},
	}
}

// A Report is what results make of a section: its text, and pictures by their path
// from the document's folder.
type Report struct {
	Text     string
	Pictures map[string]string
}

// Make makes a section from the raw results in a folder. A figure that the results
// lack is an error.
func (s Section) Make(results string) (Report, error) {
	e := &env{dir: results, report: Report{Pictures: map[string]string{}}}
	t, err := template.New(s.Name+".tmpl").Option("missingkey=error").Funcs(e.funcs()).ParseFS(templates, s.Name+".tmpl")
	if err != nil {
		return Report{}, err
	}
	var text bytes.Buffer
	if err := t.Execute(&text, nil); err != nil {
		return Report{}, fmt.Errorf("tables of %s: %w", s.Name, err)
	}
	e.report.Text = rules(text.String())
	return e.report, nil
}

// rules completes each line "|---" below the head of a table: the first column is
// text, the others are numbers.
func rules(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if line == "|---" {
			lines[i] = "|---|" + strings.Repeat("--:|", strings.Count(lines[i-1], "|")-strings.Count(lines[i-1], `\|`)-2)
		}
	}
	return strings.Join(lines, "\n")
}

// Write puts a report into the section of its document in a folder, and the
// pictures beside it.
func (s Section) Write(r Report, docs string) error {
	for path, picture := range r.Pictures {
		if err := os.WriteFile(filepath.Join(docs, path), []byte(picture), 0o644); err != nil {
			return err
		}
	}
	path := filepath.Join(docs, s.Document)
	before, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	after, err := s.replace(string(before), r.Text)
	if err != nil || after == string(before) {
		return err
	}
	fmt.Printf("%s: tables of %s written\n", path, s.Name)
	return os.WriteFile(path, []byte(after), 0o644)
}

// replace puts text between the marks of the section.
func (s Section) replace(document, text string) (string, error) {
	begin, end := "<!-- "+s.Name+":begin -->\n", "<!-- "+s.Name+":end -->\n"
	before, rest, ok := strings.Cut(document, begin)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		return "", fmt.Errorf("%s has no lines %q and %q in this order", s.Document, strings.TrimSpace(begin), strings.TrimSpace(end))
	}
	return before + begin + text + end + after, nil
}

// An env is what the functions of one section share.
type env struct {
	dir    string
	report Report
	claims []claim
}

// read decodes a file of raw results.
func (e *env) read(name string, into any) error {
	data, err := os.ReadFile(filepath.Join(e.dir, name+".json"))
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, into); err != nil {
		return fmt.Errorf("read %s.json: %w", name, err)
	}
	return nil
}

// document returns a file of raw results as JSON has it.
func (e *env) document(name string) (d map[string]any, err error) { return d, e.read(name, &d) }

// figures returns the samples of a file of raw results.
func (e *env) figures(name string) (*Figures, error) {
	var r struct {
		measure.Results
		Parts []measure.Results // instead, where parts are measured apart
	}
	if err := e.read(name, &r); err != nil {
		return nil, err
	}
	if len(r.Parts) > 0 {
		r.Results = r.Parts[0]
		for _, p := range r.Parts[1:] {
			r.Samples = append(r.Samples, p.Samples...)
		}
	}
	return newFigures(r.Results), nil
}

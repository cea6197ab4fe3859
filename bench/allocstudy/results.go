package allocstudy

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rollway/rollway/bench/internal/measure"
)

// Kind is the name of the results and of their place in the document.
const Kind = "allocstudy"

// Results are the raw results. The Library of a sample is its toolchain.
type Results struct {
	measure.Results
	Counts  []Count  `json:"counts"`
	Escapes []Escape `json:"escapes"`
}

// Save writes the results to a file: one count, one decision of a compiler and
// one sample a line, so that versions of the file can be compared.
func (r *Results) Save(path string) error {
	head := r.Results
	head.Samples = nil
	encoded, err := json.MarshalIndent(head, "", "  ")
	if err != nil {
		return err
	}
	var b strings.Builder
	b.WriteString(strings.TrimSuffix(string(encoded), "  \"samples\": null\n}"))
	if err := writeLines(&b, "counts", r.Counts); err != nil {
		return err
	}
	b.WriteString(",\n")
	if err := writeLines(&b, "escapes", r.Escapes); err != nil {
		return err
	}
	b.WriteString(",\n")
	if err := writeLines(&b, "samples", r.Samples); err != nil {
		return err
	}
	b.WriteString("\n}\n")
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(b.String()), 0o644)
}

func writeLines[T any](b *strings.Builder, name string, items []T) error {
	fmt.Fprintf(b, "  %q: [", name)
	for i, item := range items {
		line := new(strings.Builder)
		e := json.NewEncoder(line)
		e.SetEscapeHTML(false)
		if err := e.Encode(item); err != nil {
			return err
		}
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString("\n" + strings.TrimSuffix(line.String(), "\n"))
	}
	b.WriteString("\n  ]")
	return nil
}

// Load reads what Save wrote.
func Load(path string) (*Results, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	r := new(Results)
	if err := json.Unmarshal(data, r); err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	if r.Kind != Kind {
		return nil, fmt.Errorf("read %s: it holds results of %q", path, r.Kind)
	}
	return r, nil
}

// toolchains lists the toolchains of the results as they were given.
func (r *Results) toolchains() []string {
	var names []string
	for _, c := range r.Counts {
		if !slices.Contains(names, c.Go) {
			names = append(names, c.Go)
		}
	}
	return names
}

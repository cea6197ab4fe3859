package reliability

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/rollway/rollway/bench/internal/measure"
)

// Kind is the name of the results and of their place in the document.
const Kind = "reliability"

// Results are the raw results. They have no samples: nothing is timed.
type Results struct {
	measure.Results
	Missing map[string]string `json:"missing"` // what the machine lacked, by fault
	Tries   []Try             `json:"tries"`
}

// Save writes the results to a file: one try a line, so that versions of the
// file can be compared.
func (r *Results) Save(path string) error {
	head := struct {
		measure.Results
		Missing map[string]string `json:"missing"`
	}{r.Results, r.Missing}
	head.Samples = []measure.Sample{}
	encoded, err := json.MarshalIndent(head, "", "  ")
	if err != nil {
		return err
	}
	var b strings.Builder
	b.WriteString(strings.TrimSuffix(string(encoded), "\n}") + ",\n  \"tries\": [\n")
	for i, t := range r.Tries {
		line, err := json.Marshal(t)
		if err != nil {
			return err
		}
		b.Write(line)
		if i < len(r.Tries)-1 {
			b.WriteByte(',')
		}
		b.WriteByte('\n')
	}
	b.WriteString("]}\n")
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(b.String()), 0o644)
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

// Unexpected lists how our own writers have broken their promises.
func (r *Results) Unexpected() []error {
	var errs []error
	for _, t := range r.Tries {
		if err := t.Unexpected(); err != nil {
			errs = append(errs, err)
		}
	}
	return errs
}

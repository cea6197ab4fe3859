package relay

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/rollway/rollway/bench/internal/measure"
)

// Results are the raw results. Each group is a part, as it may have been
// measured by a run of its own.
type Results struct {
	Kind     string            `json:"kind"`
	Programs map[string]string `json:"programs"` // versions of the other relays
	Missing  map[string]string `json:"missing"`  // what the machine lacked, by contender
	Parts    []Part            `json:"parts"`
}

// A Part is what one group gave, and how.
type Part struct {
	Group   string  `json:"group"`
	Seconds float64 `json:"seconds"` // that it took
	measure.Results
}

// NewResults is without parts.
func NewResults() *Results {
	r := &Results{Kind: Kind, Programs: map[string]string{}, Missing: map[string]string{}}
	for name, flag := range map[string]string{"haproxy": "-v", "nginx": "-v", "socat": "-V", "stunnel4": "-version"} {
		out, err := exec.Command(name, flag).CombinedOutput()
		if err != nil {
			continue // not there; who needs it says so
		}
		for line := range strings.Lines(string(out)) {
			if line = strings.TrimSpace(line); strings.ContainsAny(line, "0123456789") {
				r.Programs[name] = line
				break
			}
		}
	}
	return r
}

// replace puts in a group's samples; circumstances are those of now.
func (r *Results) replace(group string, rounds int, took time.Duration, samples []measure.Sample) {
	part := Part{Group: group, Seconds: float64(took.Round(100*time.Millisecond)) / 1e9, Results: *measure.NewResults(Kind, rounds)}
	part.Versions, part.Samples = nil, samples
	r.Parts = slices.DeleteFunc(r.Parts, func(p Part) bool { return p.Group == group })
	r.Parts = append(r.Parts, part)
	order := Groups()
	slices.SortStableFunc(r.Parts, func(a, b Part) int { return slices.Index(order, a.Group) - slices.Index(order, b.Group) })
}

// summarize returns the summaries of all parts.
func (r *Results) summarize() map[measure.Key]measure.Summary {
	all := map[measure.Key]measure.Summary{}
	for _, p := range r.Parts {
		maps.Copy(all, p.Summarize())
	}
	return all
}

// Save writes the results to a file: one sample a line, so that versions of
// the file can be compared.
func (r *Results) Save(path string) error {
	head := *r
	head.Parts = slices.Clone(r.Parts)
	for i := range head.Parts {
		head.Parts[i].Samples = nil
	}
	encoded, err := json.MarshalIndent(head, "", "  ")
	if err != nil {
		return err
	}
	for _, p := range r.Parts {
		var b bytes.Buffer
		b.WriteString(`"samples": [`)
		for i, s := range p.Samples {
			line, err := json.Marshal(s)
			if err != nil {
				return err
			}
			if i > 0 {
				b.WriteByte(',')
			}
			b.WriteByte('\n')
			b.Write(line)
		}
		b.WriteString("\n]")
		encoded = bytes.Replace(encoded, []byte(`"samples": null`), b.Bytes(), 1)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, append(encoded, '\n'), 0o644)
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

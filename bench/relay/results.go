package relay

import (
	"maps"
	"math"
	"os/exec"
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

// cpuRatio is a's time of the processors ÷ b's, the median of the rounds; NaN if
// one of them was not measured.
func (r *Results) cpuRatio(where, a, b, mode string) float64 {
	key := func(name string) measure.Key { return measure.Key{Case: where, Library: name, Mode: mode} }
	for _, p := range r.Parts {
		if ratio, rounds := p.CPURatio(key(a), key(b)); rounds > 0 {
			return ratio
		}
	}
	return math.NaN()
}

// summarize returns the summaries of all parts.
func (r *Results) summarize() map[measure.Key]measure.Summary {
	all := map[measure.Key]measure.Summary{}
	for _, p := range r.Parts {
		maps.Copy(all, p.Summarize())
	}
	return all
}

// Save writes the results to a file: one sample a line.
func (r *Results) Save(path string) error {
	head := *r
	head.Parts = slices.Clone(r.Parts)
	var lists []measure.List
	for i, p := range r.Parts {
		head.Parts[i].Samples = nil
		lists = append(lists, measure.ListOf("samples", p.Samples))
	}
	return measure.SaveLines(path, head, lists...)
}

// Load reads what Save wrote.
func Load(path string) (*Results, error) { return measure.Load[Results](path, Kind) }

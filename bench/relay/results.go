package relay

import (
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

// A Part is what one group measured, and how.
type Part struct {
	Group   string  `json:"group"`
	Seconds float64 `json:"seconds"` // that it took
	measure.Results
}

// NewResults returns results without parts.
func NewResults() *Results {
	r := &Results{Kind: Kind, Programs: map[string]string{}, Missing: map[string]string{}}
	for name, flag := range map[string]string{"haproxy": "-v", "nginx": "-v", "socat": "-V", "stunnel4": "-version"} {
		out, err := exec.Command(name, flag).CombinedOutput()
		if err != nil {
			continue // it is not installed; its contender says so
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

// replace replaces a group's samples, with the circumstances of this run.
func (r *Results) replace(group string, rounds int, took time.Duration, samples []measure.Sample) {
	part := Part{Group: group, Seconds: float64(took.Round(100*time.Millisecond)) / 1e9, Results: *measure.NewResults(Kind, rounds)}
	part.Versions, part.Samples = nil, samples
	r.Parts = slices.DeleteFunc(r.Parts, func(p Part) bool { return p.Group == group })
	r.Parts = append(r.Parts, part)
	order := Groups()
	slices.SortStableFunc(r.Parts, func(a, b Part) int { return slices.Index(order, a.Group) - slices.Index(order, b.Group) })
}

// Load reads results.
func Load(path string) (*Results, error) { return measure.Load[Results](path, Kind) }

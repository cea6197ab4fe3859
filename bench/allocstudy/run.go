package allocstudy

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/rollway/rollway/bench/internal/measure"
)

// Kind is the name of the results.
const Kind = "allocstudy"

// Results are the raw results. The Library of a sample is its toolchain.
type Results struct {
	measure.Results
	Counts []Count `json:"counts"`
}

// Modes of a sample.
const (
	Serial   = "serial"
	Parallel = "parallel" // testing.B.RunParallel on every processor
)

// countOps is in how many calls allocations are counted, and countSlack how far
// from a whole number the runtime's own may bring the count.
const (
	countOps   = 2000
	countSlack = 0.02
)

// Count is what one call of a case allocates, counted without collections.
type Count struct {
	Case   string  `json:"case"`
	Go     string  `json:"go"`
	Allocs float64 `json:"allocs"`
	Bytes  float64 `json:"bytes"`
}

// output is what the generated program prints.
type output struct {
	Ops               int
	Ns, Allocs, Bytes float64
}

// run runs one case of the program.
func (p Program) run(args ...string) (output, *os.ProcessState, error) {
	cmd := exec.Command(p.path, args...)
	cmd.Stderr = new(strings.Builder)
	out, err := cmd.Output()
	if err != nil {
		return output{}, nil, fmt.Errorf("%s: %w: %s", cmd, err, cmd.Stderr)
	}
	var got output
	if err := json.Unmarshal(out, &got); err != nil {
		return output{}, nil, fmt.Errorf("%s: it printed %q: %w", cmd, out, err)
	}
	return got, cmd.ProcessState, nil
}

// Count counts every case and compares it with what the study says. The error
// lists all differences.
func (p Program) Count() ([]Count, error) {
	var counts []Count
	var differ []error
	for _, c := range Cases() {
		ops := countOps
		if c.Name == "pooled/emptied" {
			ops /= 20 // two collections a call
		}
		got, _, err := p.run("-case", c.Name, "-count", strconv.Itoa(ops))
		if err != nil {
			return nil, err
		}
		counts = append(counts, Count{Case: c.Name, Go: p.Toolchain.Name, Allocs: got.Allocs, Bytes: got.Bytes})
		if err := c.check(p.Toolchain, got.Allocs); err != nil {
			differ = append(differ, err)
		}
	}
	return counts, errors.Join(differ...)
}

// check compares a count with what the study says.
func (c Case) check(t Toolchain, allocs float64) error {
	want := c.Want(t.Minor)
	switch {
	case c.AtLeast && allocs < want:
		return fmt.Errorf("%s with %s allocates %.3f times a call, the study says at least %.0f", c.Name, t.Name, allocs, want)
	case !c.AtLeast && math.Abs(allocs-want) > countSlack:
		return fmt.Errorf("%s with %s allocates %.3f times a call, the study says %.0f", c.Name, t.Name, allocs, want)
	}
	return nil
}

// Run builds the designs in dir with every toolchain named, counts, and if all
// counts are as the study says, measures as many rounds as r is of.
func (r *Results) Run(w io.Writer, dir string, toolchains []string, each time.Duration) error {
	if err := WriteModule(dir); err != nil {
		return err
	}
	r.Versions = map[string]string{}
	var programs []Program
	var differ []error
	for _, name := range toolchains {
		t, err := NewToolchain(name)
		if err != nil {
			return err
		}
		p, err := Build(dir, t)
		if err != nil {
			return err
		}
		counts, err := p.Count()
		differ = append(differ, err)
		fmt.Fprintf(w, "%s: built, %d cases counted\n", t.Name, len(counts))
		programs = append(programs, p)
		r.Versions[t.Name] = t.Version
		r.Counts = append(r.Counts, counts...)
	}
	if err := errors.Join(differ...); err != nil {
		return fmt.Errorf("the counts are not what the study concludes from, so nothing is measured:\n%w", err)
	}
	samples, err := measureAll(w, programs, r.Rounds, each)
	r.Samples = samples
	return err
}

// measureAll takes a sample of every case with every program in every round.
func measureAll(w io.Writer, programs []Program, rounds int, each time.Duration) ([]measure.Sample, error) {
	type subject struct {
		program Program
		name    string
		mode    string
	}
	var subjects []subject
	for _, c := range Cases() {
		for _, p := range programs {
			subjects = append(subjects, subject{p, c.Name, Serial})
			if c.Parallel {
				subjects = append(subjects, subject{p, c.Name, Parallel})
			}
		}
	}
	return measure.Interleave(w, rounds, len(subjects), func(i int) (measure.Sample, error) {
		s := subjects[i]
		return s.program.sample(s.name, s.mode, each)
	})
}

// sample measures one case.
func (p Program) sample(name, mode string, each time.Duration) (measure.Sample, error) {
	meter := measure.StartMeter()
	got, state, err := p.run("-case", name, "-parallel="+strconv.FormatBool(mode == Parallel), "-time", each.String())
	if err != nil {
		return measure.Sample{}, err
	}
	took, _, others := meter.Read()
	child := state.UserTime() + state.SystemTime()
	return measure.Sample{
		Case: name, Library: p.Toolchain.Name, Mode: mode, Ops: got.Ops,
		NsPerOp: got.Ns, CallerNs: got.Ns, AllocsPerOp: got.Allocs, BytesPerOp: got.Bytes,
		CPUNsPerOp: 0, // the process also calibrates, so its time is not the calls' alone
		OthersPct:  max(0, others-100*float64(child)/float64(took)),
	}, nil
}

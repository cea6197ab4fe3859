// Package allocstudy finds out where a logger's allocations come from.
//
// It repeats the measurements of a published article on logging without
// allocations and checks each of its claims, with several toolchains. The
// designs, written anew from the article's description, are benchmarks in
// testdata. A run writes them to a folder of its own, as a module that the oldest
// toolchain takes, and builds it with each toolchain.
//
// Allocations are counted first: one goroutine, no collections, values that the
// compiler cannot know beside the article's constant. Each count is compared with
// the study's own statement, so that no conclusion outlives the facts. Each sample
// of the times is a process of its own, interleaved.
package allocstudy

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"text/template"
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

// Count is what one call of a case allocates, counted without collections.
type Count struct {
	Case   string  `json:"case"`
	Go     string  `json:"go"`
	Allocs float64 `json:"allocs"`
	Bytes  float64 `json:"bytes"`
}

//go:embed testdata/designs_test.go testdata/study_test.go.tmpl
var sources embed.FS

// writeModule writes the designs and a benchmark of each case to dir.
func writeModule(dir string) error {
	designs, err := sources.ReadFile("testdata/designs_test.go")
	if err != nil {
		return err
	}
	benchmarks, err := template.ParseFS(sources, "testdata/study_test.go.tmpl")
	if err != nil {
		return err
	}
	var text bytes.Buffer
	if err := benchmarks.Execute(&text, Cases()); err != nil {
		return err
	}
	for name, content := range map[string][]byte{"go.mod": []byte("module allocstudy\n\ngo 1.13\n"), "designs_test.go": designs, "study_test.go": text.Bytes()} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o644); err != nil {
			return fmt.Errorf("write the module of designs: %w", err)
		}
	}
	return nil
}

// A program is the benchmarks built by one toolchain.
type program struct {
	toolchain Toolchain
	path      string
}

func build(dir string, t Toolchain) (program, error) {
	p := program{t, filepath.Join(dir, "study-"+t.Name+".exe")}
	if _, err := t.run(dir, "test", "-c", "-o", p.path); err != nil {
		return p, fmt.Errorf("build with %s: %w", t.Name, err)
	}
	return p, nil
}

// countOps is in how many calls allocations are counted.
const countOps = 2000

// result is a line of a benchmark: the name, how often, ns, bytes and allocations.
var result = regexp.MustCompile(`(?m)^BenchmarkStudy/(\S+)/(serial|parallel)(?:-\d+)?\s+(\d+)\s+([\d.]+) ns/op\s+(\d+) B/op\s+(\d+) allocs/op$`)

// run runs the benchmarks whose names match, and returns a sample of each.
func (p program) run(env []string, pattern string, args ...string) ([]measure.Sample, error) {
	cmd := exec.Command(p.path, append([]string{"-test.run=^$", "-test.benchmem", "-test.bench=" + pattern}, args...)...)
	cmd.Env = append(os.Environ(), env...)
	meter := measure.StartMeter()
	out, err := cmd.CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %s", cmd, err, out)
	}
	took, _, others := meter.Read()
	others -= 100 * float64(cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime()) / float64(took)
	var samples []measure.Sample
	for _, m := range result.FindAllStringSubmatch(string(out), -1) {
		s := measure.Sample{Case: m[1], Library: p.toolchain.Name, Mode: m[2], OthersPct: max(0, others)}
		var errs [4]error
		s.Ops, errs[0] = strconv.Atoi(m[3])
		s.NsPerOp, errs[1] = strconv.ParseFloat(m[4], 64)
		s.BytesPerOp, errs[2] = strconv.ParseFloat(m[5], 64)
		s.AllocsPerOp, errs[3] = strconv.ParseFloat(m[6], 64)
		if err := errors.Join(errs[:]...); err != nil {
			return nil, fmt.Errorf("%s: %w", cmd, err)
		}
		s.CallerNs = s.NsPerOp
		samples = append(samples, s)
	}
	if len(samples) == 0 {
		return nil, fmt.Errorf("%s: it printed %q", cmd, out)
	}
	return samples, nil
}

// count counts every case and compares it with what the study says. The error
// lists all differences.
func (p program) count() ([]Count, error) {
	samples, err := p.run([]string{"GOGC=off"}, "^BenchmarkStudy$/.*/.*/^serial$", "-test.cpu=1", fmt.Sprintf("-test.benchtime=%dx", countOps))
	if err != nil {
		return nil, err
	}
	if len(samples) != len(Cases()) {
		return nil, fmt.Errorf("%s counted %d of %d cases", p.toolchain.Name, len(samples), len(Cases()))
	}
	var counts []Count
	var differ []error
	for i, c := range Cases() {
		got := samples[i]
		counts = append(counts, Count{Case: c.Name, Go: p.toolchain.Name, Allocs: got.AllocsPerOp, Bytes: got.BytesPerOp})
		differ = append(differ, c.check(p.toolchain, got.AllocsPerOp))
	}
	return counts, errors.Join(differ...)
}

// check compares a count with what the study says.
func (c Case) check(t Toolchain, allocs float64) error {
	want := c.Want(t.Minor)
	switch {
	case c.AtLeast && allocs < want:
		return fmt.Errorf("%s with %s allocates %.0f times a call, the study says at least %.0f", c.Name, t.Name, allocs, want)
	case !c.AtLeast && allocs != want:
		return fmt.Errorf("%s with %s allocates %.0f times a call, the study says %.0f", c.Name, t.Name, allocs, want)
	}
	return nil
}

// Run builds the designs in dir with every toolchain named, counts, and if all
// counts are as the study says, measures as many rounds as r is of.
func (r *Results) Run(w io.Writer, dir string, toolchains []string, each time.Duration) error {
	if err := writeModule(dir); err != nil {
		return err
	}
	r.Versions = map[string]string{}
	var programs []program
	var differ []error
	for _, name := range toolchains {
		t, err := NewToolchain(name)
		if err != nil {
			return err
		}
		p, err := build(dir, t)
		if err != nil {
			return err
		}
		counts, err := p.count()
		differ = append(differ, err)
		fmt.Fprintf(w, "%s: built, %d cases counted\n", t.Name, len(counts))
		programs = append(programs, p)
		r.Versions[t.Name] = t.Version
		r.Counts = append(r.Counts, counts...)
	}
	if err := errors.Join(differ...); err != nil {
		return fmt.Errorf("the counts are not what the study concludes from, so nothing is measured:\n%w", err)
	}
	type subject struct {
		program program
		pattern string
	}
	var subjects []subject
	for _, c := range Cases() {
		for _, p := range programs {
			name := strings.ReplaceAll("^BenchmarkStudy/"+c.Name+"$", "/", "$/^")
			subjects = append(subjects, subject{p, name + "/^serial$"})
			if c.Parallel {
				subjects = append(subjects, subject{p, name + "/^parallel$"})
			}
		}
	}
	var err error
	r.Samples, err = measure.Interleave(w, r.Rounds, len(subjects), func(i int) (measure.Sample, error) {
		samples, err := subjects[i].program.run(nil, subjects[i].pattern, "-test.benchtime="+each.String())
		if err != nil {
			return measure.Sample{}, err
		}
		return samples[0], nil
	})
	return err
}

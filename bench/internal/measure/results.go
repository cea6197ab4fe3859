package measure

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"time"
)

// Results is a file of raw results: everything a table is made of.
type Results struct {
	Kind    string `json:"kind"`
	Command string `json:"command"`
	Date    string `json:"date"`
	Commit  string `json:"commit"` // of this repository, "+changes" if it had any
	Machine struct {
		CPU        string `json:"cpu"`
		Cores      int    `json:"cores"`
		GOMAXPROCS int    `json:"gomaxprocs"`
		System     string `json:"system"`
		Arch       string `json:"arch"`
	} `json:"machine"`
	Go       string            `json:"go"`
	Versions map[string]string `json:"versions"` // of the modules measured
	Rounds   int               `json:"rounds"`
	Samples  []Sample          `json:"samples"`
}

// NewResults fills in the circumstances.
func NewResults(kind string, rounds int) *Results {
	r := &Results{
		Kind:     kind,
		Command:  strings.Join(append([]string{filepath.Base(os.Args[0])}, os.Args[1:]...), " "),
		Date:     time.Now().UTC().Format(time.RFC3339),
		Commit:   commit(),
		Go:       runtime.Version(),
		Versions: map[string]string{},
		Rounds:   rounds,
	}
	r.Machine.CPU, r.Machine.System = cpuName(), kernel()
	r.Machine.Cores, r.Machine.GOMAXPROCS = runtime.NumCPU(), runtime.GOMAXPROCS(0)
	r.Machine.Arch = runtime.GOARCH
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, dep := range info.Deps {
			r.Versions[dep.Path] = dep.Version
		}
	}
	return r
}

// commit asks git, because `go run` stamps no version.
func commit() string {
	head, err := exec.Command("git", "rev-parse", "--short=12", "HEAD").Output()
	if err != nil {
		return "unknown"
	}
	c := strings.TrimSpace(string(head))
	if status, err := exec.Command("git", "status", "--porcelain", "--untracked-files=no").Output(); err != nil || len(status) > 0 {
		c += "+changes"
	}
	return c
}

// Save writes the results to a file: one sample a line, so that versions of
// the file can be compared.
func (r *Results) Save(path string) error {
	head := *r
	head.Samples = nil
	encoded, err := json.MarshalIndent(head, "", "  ")
	if err != nil {
		return err
	}
	var b strings.Builder
	b.WriteString(strings.TrimSuffix(string(encoded), "null\n}"))
	b.WriteString("[\n")
	for i, s := range r.Samples {
		line, err := json.Marshal(s)
		if err != nil {
			return err
		}
		b.Write(line)
		if i < len(r.Samples)-1 {
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
	return r, nil
}

package measure

import (
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

package fetch

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

const (
	lokiModule = "github.com/grafana/loki/v3"

	// LokiVersion is that of the module.
	LokiVersion = "v3.7.8"
)

// Loki returns the path of Grafana Loki in the user's cache. If it is not there and build is set, it is
// built from its module, which takes minutes. It is under the AGPL: for tests and measurements alone.
func Loki(build bool) (program string, err error) {
	return cached("loki-"+LokiVersion, build, buildLoki)
}

// buildLoki builds Loki with the versions that its own module names, which are
// not in force where it is a dependency. Its replacement by a folder is left
// out: the folder is not in the module.
func buildLoki(program string) error {
	dir, err := os.MkdirTemp("", "loki")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := os.MkdirAll(filepath.Dir(program), 0o755); err != nil {
		return err
	}
	out, err := goTool(dir, "mod", "download", "-json", lokiModule+"@"+LokiVersion)
	if err != nil {
		return err
	}
	var module struct{ Dir string }
	if err := json.Unmarshal(out, &module); err != nil {
		return err
	}
	for _, name := range []string{"go.mod", "go.sum"} {
		b, err := os.ReadFile(filepath.Join(module.Dir, name))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), b, 0o644)
		}
		if err != nil {
			return err
		}
	}
	part := fmt.Sprintf("%s.%d.part", program, os.Getpid())
	for _, args := range [][]string{
		{"mod", "edit", "-module=example.com/build", "-dropreplace=github.com/grafana/loki/pkg/push", "-require=" + lokiModule + "@" + LokiVersion},
		{"build", "-ldflags=-s -w", "-o", part, lokiModule + "/cmd/loki"},
	} {
		if _, err := goTool(dir, args...); err != nil {
			return err
		}
	}
	return os.Rename(part, program)
}

// goTool runs go in a module that belongs to no workspace, again if it fails: it may download modules.
func goTool(dir string, args ...string) (out []byte, err error) {
	err = Again(func() (err error) {
		cmd := exec.Command("go", args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod", "CGO_ENABLED=0")
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		if out, err = cmd.Output(); err != nil {
			err = fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, stderr.String())
		}
		return err
	})
	return out, err
}

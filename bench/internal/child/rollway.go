package child

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
)

// BuildRollway builds the program rollway from the tree into dir and returns its
// path. args are flags of go build.
func BuildRollway(dir string, args ...string) (string, error) {
	module, err := CollectorModule()
	if err != nil {
		return "", err
	}
	program := filepath.Join(dir, "rollway")
	cmd := exec.Command("go", append(append([]string{"build"}, args...), "-o", program, "./cmd/rollway")...)
	cmd.Dir = module
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build rollway: %w: %s", err, out)
	}
	return program, nil
}

// CollectorModule returns the folder of the collector's module.
func CollectorModule() (string, error) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/rollway/rollway/collector").Output()
	if err != nil {
		return "", fmt.Errorf("find the module of rollway: %w", err)
	}
	return strings.TrimSpace(string(out)), nil
}

package allocstudy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
)

// Today names the toolchain that runs the study.
const Today = "local"

// Toolchain is one Go that the designs are built with.
type Toolchain struct {
	Name    string // go1.17.13
	Version string // go version go1.17.13 linux/amd64
	Minor   int    // 17
	env     []string
}

// kept are settings that say where modules come from and go to. The rest of a
// user's settings is left out: older toolchains do not know all of it, and it
// could change what is built.
var kept = []string{"GOPROXY", "GOSUMDB", "GONOSUMDB", "GOPRIVATE", "GONOPROXY", "GOPATH", "GOMODCACHE", "GOCACHE"}

// NewToolchain returns the Go of this name, such as go1.22.12, or Today's. The
// go command downloads one that is missing, as a module golang.org/toolchain
// from the module proxy, and checks its sum.
func NewToolchain(name string) (Toolchain, error) {
	out, err := command(".", nil, "go", append([]string{"env", "-json"}, kept...)...)
	if err != nil {
		return Toolchain{}, fmt.Errorf("ask go for its settings: %w", err)
	}
	settings := map[string]string{}
	if err := json.Unmarshal(out, &settings); err != nil {
		return Toolchain{}, fmt.Errorf("ask go for its settings: %w", err)
	}
	t := Toolchain{env: []string{"GOENV=off", "GOFLAGS=", "GOWORK=off", "CGO_ENABLED=0", "GOTOOLCHAIN=" + name}}
	for key, value := range settings {
		t.env = append(t.env, key+"="+value)
	}
	out, err = t.run(".", "version") // go version go1.22.12 linux/amd64
	if err != nil {
		return Toolchain{}, fmt.Errorf("get the toolchain %s: %w", name, err)
	}
	words := strings.Fields(string(out))
	if len(words) < 4 {
		return Toolchain{}, fmt.Errorf("get the toolchain %s: go version says %q", name, out)
	}
	t.Name, t.Version = words[2], strings.Join(words, " ")
	if name != Today && t.Name != name {
		return Toolchain{}, fmt.Errorf("get the toolchain %s: go version says it is %s", name, t.Name)
	}
	if t.Minor, err = minor(t.Name); err != nil {
		return Toolchain{}, fmt.Errorf("get the toolchain %s: %w", name, err)
	}
	return t, nil
}

// minor is 22 for go1.22.12 and go1.22rc1.
func minor(version string) (int, error) {
	digits, ok := strings.CutPrefix(version, "go1.")
	if end := strings.IndexFunc(digits, func(r rune) bool { return r < '0' || r > '9' }); end >= 0 {
		digits = digits[:end]
	}
	n, err := strconv.Atoi(digits)
	if !ok || err != nil {
		return 0, fmt.Errorf("%q is not of the form go1.22.12", version)
	}
	return n, nil
}

// run runs the go command of the toolchain and returns all that it prints.
func (t Toolchain) run(dir string, args ...string) ([]byte, error) {
	return command(dir, t.env, "go", args...)
}

// command runs a program to its end. What it prints comes back, or is in the
// error.
func command(dir string, env []string, name string, args ...string) ([]byte, error) {
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %s", cmd, err, bytes.TrimSpace(out))
	}
	return out, nil
}

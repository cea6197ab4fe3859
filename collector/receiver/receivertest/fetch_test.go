package receivertest

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/rollway/rollway/internal/fetch"
	"github.com/rollway/rollway/internal/testkit"
)

// Python runs a script with packages of PyPI, each like name==1.2.
func Python(t testing.TB, script string, packages ...string) {
	t.Helper()
	runPython(t, nil, script, packages...)
}

func runPython(t testing.TB, env []string, script string, packages ...string) {
	t.Helper()
	python, dir := testkit.Program(t, "python3"), pip(t, packages...)
	file := filepath.Join(t.TempDir(), "client.py")
	runScript(t, file, script, exec.Command(python, file), append(env, "PYTHONPATH="+dir)...)
}

func pip(t testing.TB, packages ...string) (dir string) {
	t.Helper()
	return testkit.Fetched(t, "python", packages, func(dir string) *exec.Cmd {
		return fetch.Pip(dir, packages...)
	})
}

// Node runs a script of CommonJS with packages of npm, each like name@1.2.
func Node(t testing.TB, script string, packages ...string) {
	t.Helper()
	runNode(t, nil, script, packages...)
}

func runNode(t testing.TB, env []string, script string, packages ...string) {
	t.Helper()
	node, dir := testkit.Program(t, "node"), testkit.NPM(t, packages...)
	// Next to node_modules, where the script's modules are looked for.
	scripts, err := os.MkdirTemp(dir, "script")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(scripts) })
	file := filepath.Join(scripts, "client.js")
	runScript(t, file, script, exec.Command(node, file), env...)
}

func runScript(t testing.TB, file, script string, cmd *exec.Cmd, env ...string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(script), 0o644); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	run := exec.CommandContext(ctx, cmd.Path, cmd.Args[1:]...)
	run.Env = append(append(os.Environ(), "NO_COLOR=1"), env...)
	var out bytes.Buffer
	run.Stdout, run.Stderr = &out, &out
	if err := run.Run(); err != nil {
		t.Fatalf("the client failed: %v\n%s", err, out.String())
	}
	t.Logf("the client said: %s", out.String())
}

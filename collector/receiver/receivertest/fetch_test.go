package receivertest

import (
	"bytes"
	"context"
	"fmt"
	"hash/crc32"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rollway/rollway/internal/fetch"
	"github.com/rollway/rollway/internal/testkit"
)

// Python runs a script with packages of PyPI, each like name==1.2.
func Python(t testing.TB, script string, packages ...string) {
	t.Helper()
	python := testkit.Program(t, "python3")
	dir := fetched(t, "python", packages, func(dir string) *exec.Cmd {
		return exec.Command(python, append([]string{"-m", "pip", "install", "-q", "--disable-pip-version-check",
			"--no-warn-script-location", "--root-user-action=ignore", "--target", dir}, packages...)...)
	})
	file := filepath.Join(t.TempDir(), "client.py")
	runScript(t, file, script, exec.Command(python, file), "PYTHONPATH="+dir)
}

// Node runs a script of CommonJS with packages of npm, each like name@1.2.
func Node(t testing.TB, script string, packages ...string) {
	t.Helper()
	node, npm := testkit.Program(t, "node"), testkit.Program(t, "npm")
	dir := fetched(t, "node", packages, func(dir string) *exec.Cmd {
		return exec.Command(npm, append([]string{"install", "--silent", "--no-audit", "--no-fund", "--no-save", "--prefix", dir}, packages...)...)
	})
	// Next to node_modules, where the script's modules are looked for.
	scripts, err := os.MkdirTemp(dir, "script")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(scripts) })
	file := filepath.Join(scripts, "client.js")
	runScript(t, file, script, exec.Command(node, file))
}

// fetched returns the folder with packages. They are fetched into the user's
// cache only if nothing may be skipped; otherwise they have to be there.
func fetched(t testing.TB, kind string, packages []string, install func(dir string) *exec.Cmd) string {
	t.Helper()
	if len(packages) == 0 { // the standard library is enough
		return ""
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		testkit.Missing(t, "a folder for caches: "+err.Error())
	}
	names := strings.Join(packages, " ")
	dir := filepath.Join(cache, "rollway-test", fmt.Sprintf("%s-%08x", kind, crc32.ChecksumIEEE([]byte(names))))
	if _, err := os.Stat(dir); err == nil {
		return dir
	}
	if !testkit.All() {
		testkit.Missing(t, fmt.Sprintf("%s in %s, where they are put with REQUIRE=all", names, dir))
	}
	if err := fetch.Into(dir, install); err != nil {
		testkit.Missing(t, fmt.Sprintf("%s, which cannot be fetched: %v", names, err))
	}
	return dir
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

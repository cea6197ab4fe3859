package testkit

import (
	"fmt"
	"hash/crc32"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rollway/rollway/internal/fetch"
)

// Fetched returns the folder with packages of a registry. They are fetched into the user's
// cache only if nothing may be skipped; otherwise they have to be there.
func Fetched(t testing.TB, kind string, packages []string, install func(dir string) *exec.Cmd) string {
	t.Helper()
	if len(packages) == 0 { // the standard library is enough
		return ""
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		Missing(t, "a folder for caches: "+err.Error())
	}
	names := strings.Join(packages, " ")
	dir := filepath.Join(cache, "rollway-test", fmt.Sprintf("%s-%08x", kind, crc32.ChecksumIEEE([]byte(names))))
	if _, err := os.Stat(dir); err == nil {
		return dir
	}
	if !All() {
		Missing(t, fmt.Sprintf("%s in %s, where they are put with REQUIRE=all", names, dir))
	}
	if err := fetch.Into(dir, install); err != nil {
		Missing(t, fmt.Sprintf("%s, which cannot be fetched: %v", names, err))
	}
	return dir
}

// NPM returns the folder whose node_modules has packages of npm, each like name@1.2.
func NPM(t testing.TB, packages ...string) string {
	t.Helper()
	npm := Program(t, "npm")
	return Fetched(t, "node", packages, func(dir string) *exec.Cmd {
		return exec.Command(npm, append([]string{"install", "--silent", "--no-audit", "--no-fund", "--no-save", "--prefix", dir}, packages...)...)
	})
}

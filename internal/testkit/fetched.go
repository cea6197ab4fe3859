package testkit

import (
	"errors"
	"fmt"
	"hash/crc32"
	"os/exec"
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
	names := strings.Join(packages, " ")
	dir, err := fetch.Dir(fmt.Sprintf("%s-%08x", kind, crc32.ChecksumIEEE([]byte(names))), All(), install)
	if errors.Is(err, fetch.ErrAbsent) {
		Missing(t, names+", which REQUIRE=all fetches: "+err.Error())
	} else if err != nil {
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

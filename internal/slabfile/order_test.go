//go:build linux || darwin

package slabfile

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// The compiler keeps the store of the committed length after the copy of the
// line: the call of memmove comes first among the instructions, the one store
// through the pointer after it.
func TestCompilerKeepsTheOrder(t *testing.T) {
	const source = "testdata/commit.go"
	text, err := os.ReadFile(source)
	if err != nil {
		t.Fatal(err)
	}
	line := 0
	for i, l := range strings.Split(string(text), "\n") {
		if strings.HasPrefix(l, "\t*w.committed = ") {
			line = i + 1
		}
	}
	store := regexp.MustCompile(`commit\.go:` + strconv.Itoa(line) + `\)\s+MOV[QD]\s+\w+, \(\w+\)`)
	for _, arch := range []string{"amd64", "arm64"} {
		cmd := exec.Command("go", "tool", "compile", "-S", "-o", filepath.Join(t.TempDir(), "commit.o"), "-p", "commit", source)
		cmd.Env = append(os.Environ(), "GOARCH="+arch)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %v\n%s", cmd, err, out)
		}
		var moved, stored []int
		for i, l := range strings.Split(string(out), "\n") {
			if strings.Contains(l, "CALL\truntime.memmove") {
				moved = append(moved, i)
			}
			if store.MatchString(l) {
				stored = append(stored, i)
			}
		}
		if len(moved) != 1 || len(stored) != 1 || stored[0] < moved[0] {
			t.Errorf("%s: memmove in line %d, the store of the length in line %d of\n%s", arch, moved, stored, out)
		}
	}
}

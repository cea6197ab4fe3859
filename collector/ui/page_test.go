package ui_test

import (
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"net/http/httptest"
	"os"
	"os/exec"
	"path"
	"regexp"
	"strings"
	"testing"

	"github.com/rollway/rollway/collector/ui"
	"github.com/rollway/rollway/internal/testkit"
)

// TestVendored compares the libraries with the hashes of what was published.
func TestVendored(t *testing.T) {
	table, err := os.ReadFile("page/vendor/README.md")
	testkit.OK(t, err)
	rows := regexp.MustCompile("(?m)^\\| `([^`]+)` .*`([0-9a-f]{64})` \\|$").FindAllStringSubmatch(string(table), -1)
	if len(rows) != 3 {
		t.Fatalf("the table has %d rows", len(rows))
	}
	for _, row := range rows {
		text, err := os.ReadFile("page/vendor/" + row[1])
		testkit.OK(t, err)
		if sum := sha256.Sum256(text); hex.EncodeToString(sum[:]) != row[2] {
			t.Errorf("%s has the hash %x", row[1], sum)
		}
	}
}

// TestFirstLoad bounds what a browser loads, packed. All modules are loaded at first.
func TestFirstLoad(t *testing.T) {
	size := 0
	for name, file := range ui.Files() {
		if name != ui.Prefix { // which is index.html again
			r, w := httptest.NewRequest("GET", name, nil), httptest.NewRecorder()
			r.Header.Set("Accept-Encoding", "gzip")
			file.ServeHTTP(w, r)
			size += w.Body.Len()
		}
	}
	t.Logf("%d bytes", size)
	if size > 100_000 {
		t.Errorf("the page is %d bytes, packed; want 100,000 at most", size)
	}
}

// unsafe is what makes elements or code of a text, or loads from another host.
var unsafe = regexp.MustCompile(`innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|createContextualFragment|setHTML|srcdoc|javascript:|https?://|\sstyle="|\son[a-z]+="`)

// TestTextIsText looks for what would make more of a line's text than text.
func TestTextIsText(t *testing.T) {
	testkit.OK(t, fs.WalkDir(os.DirFS("page"), ".", func(name string, d fs.DirEntry, err error) error {
		if kind := path.Ext(name); err != nil || d.IsDir() || kind != ".js" && kind != ".html" && kind != ".css" || strings.HasPrefix(name, "vendor/") {
			return err
		}
		text, err := os.ReadFile("page/" + name)
		if found := unsafe.Find(text); found != nil {
			t.Errorf("%s has %q", name, found)
		}
		return err
	}))
}

// TestModules runs the tests of modules that need no browser.
func TestModules(t *testing.T) {
	if out, err := exec.Command(testkit.Program(t, "node"), "--test", "page/lib/").CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

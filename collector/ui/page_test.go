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

// loads finds what a file of the page loads at once: modules that are imported, and what
// the document names.
var loads = regexp.MustCompile(`(?m)(?:^(?:import|export) .*from '|<script src="|<link rel="\w+" href=")([^'"]+)`)

// TestFirstLoad bounds what a browser loads before it shows something, packed.
func TestFirstLoad(t *testing.T) {
	size, seen := 0, map[string]bool{}
	var load func(name string)
	load = func(name string) {
		file := ui.Files()[name]
		if file == nil {
			t.Errorf("there is no %s", name)
			return
		}
		r, w := httptest.NewRequest("GET", name, nil), httptest.NewRecorder()
		r.Header.Set("Accept-Encoding", "gzip")
		file.ServeHTTP(w, r)
		size += w.Body.Len()
		text, err := os.ReadFile("page/" + strings.TrimPrefix(name, ui.Prefix))
		testkit.OK(t, err)
		for _, found := range loads.FindAllSubmatch(text, -1) {
			if next := path.Join(path.Dir(name), string(found[1])); !seen[next] && !strings.HasPrefix(name, ui.Prefix+"vendor/") {
				seen[next] = true
				load(next)
			}
		}
	}
	load(ui.Prefix + "index.html")
	first, err := os.ReadFile("page/index.html")
	testkit.OK(t, err)
	for name := range seen { // else a browser learns of it late, module by module
		if path.Ext(name) == ".js" && !strings.Contains(string(first), ` href="`+strings.TrimPrefix(name, ui.Prefix)+`"`) && !strings.Contains(string(first), ` src="`+strings.TrimPrefix(name, ui.Prefix)+`"`) {
			t.Errorf("index.html does not preload %s", name)
		}
	}
	t.Logf("%d files with %d bytes", len(seen)+1, size)
	if size > 100_000 || len(seen) < 20 {
		t.Errorf("the page is %d bytes in %d files, packed; want 100,000 at most", size, len(seen))
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

package collector

import (
	"os"
	"strings"
	"testing"
)

// A data folder that v0.1.0 has written is opened as it is, found in, and written on.
func TestFolderOfFirstVersion(t *testing.T) {
	cfg := testConfig(t)
	if err := os.CopyFS(cfg.Data, os.DirFS("testdata/v0.1.0")); err != nil {
		t.Fatal(err)
	}
	r := run(t, cfg)
	if f := r.Recovery().Findings; len(f) > 0 {
		t.Errorf("%v", f)
	}
	if code, _, body := r.do(t, "POST", "/api/logs", `{"msg":"line 4"}`); code != 200 || !strings.Contains(body, `"first_offset":3`) {
		t.Errorf("%d %s", code, body)
	}
	_, _, lines := r.do(t, "GET", "/api/query", "")
	for i, line := range strings.Split(strings.TrimSuffix(lines, "\n"), "\n") {
		want := []string{"line 1 of v0.1.0", "line 2 of v0.1.0", "line 3 of v0.1.0", "line 4", ""}[min(i, 4)]
		if !strings.Contains(line, `"msg":"`+want+`"`) {
			t.Errorf("line %d: %s", i, line)
		}
	}
	if strings.Count(lines, "\n") != 4 {
		t.Errorf("%q", lines)
	}
	if err := r.stop(); err != nil {
		t.Error(err)
	}
}

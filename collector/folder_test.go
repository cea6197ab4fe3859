package collector

import (
	"os"
	"strings"
	"testing"
	"time"
)

// Lines written into files that were removed are gone with the process, so a
// collector whose folder is removed or replaced stops saying that it stores
// them; and goes on when the folder is back.
func TestFolderRemoved(t *testing.T) {
	r := run(t, testConfig(t))
	data := r.config.Data
	eventually := func(what string, want int) (body string) {
		t.Helper()
		for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
			var code int
			if code, _, body = r.do(t, "POST", "/api/logs", `{"msg":"x"}`); code == want {
				return body
			}
		}
		t.Fatalf("%s: lines are not answered %d; the last answer is %s", what, want, body)
		return ""
	}
	eventually("at first", 200)
	if err := os.Rename(data, data+".gone"); err != nil {
		t.Fatal(err)
	}
	eventually("the folder is gone", 503)
	if code, _, body := r.do(t, "GET", "/readyz", ""); code != 503 || !strings.Contains(body, "was removed or replaced") {
		t.Errorf("/readyz: %d %s", code, body)
	}
	if err := os.MkdirAll(data+"/journal", 0o750); err != nil {
		t.Fatal(err)
	}
	if code, _, body := r.do(t, "GET", "/readyz", ""); code != 503 {
		t.Errorf("/readyz with another folder in its place: %d %s", code, body)
	}
	if err := os.RemoveAll(data); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(data+".gone", data); err != nil {
		t.Fatal(err)
	}
	eventually("the folder is back", 200)
	if code, _, body := r.do(t, "GET", "/readyz", ""); code != 200 {
		t.Errorf("/readyz: %d %s", code, body)
	}
}

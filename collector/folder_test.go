package collector

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/rollway/rollway/collector/config"
	"github.com/rollway/rollway/collector/journal"
	"github.com/rollway/rollway/internal/testkit"
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

// A segment that is taken away while it is written costs no synced line that was
// acknowledged: it is written again, and the log and the metric tell.
func TestSegmentTakenAway(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("an open file cannot be removed there")
	}
	cfg := testConfig(t)
	cfg.Journal.Durability = config.Synced
	r := run(t, cfg)
	acked := 0
	send := func() int {
		code, _, _ := r.do(t, "POST", "/api/logs", `{"msg":"x"}`)
		if code == 200 {
			acked++
		}
		return code
	}
	send()
	testkit.OK(t, os.Remove(filepath.Join(JournalFolder(cfg.Data), "00000000000000000000.open")))
	if code := send(); code == 200 {
		t.Error("a line in a file that was removed is acknowledged")
	}
	if code, _, body := r.do(t, "GET", "/readyz", ""); code != 503 || !strings.Contains(body, "was removed or replaced") {
		t.Errorf("/readyz: %d %s", code, body)
	}
	for end := time.Now().Add(time.Minute); send() != 200 && time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
	}
	audit := func() (journal.AuditReport, error) {
		return journal.Audit(JournalFolder(cfg.Data), journal.AuditOptions{})
	}
	a, err := audit()
	for end := time.Now().Add(time.Minute); err == nil && len(a.Damage(0)) == 0 && time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		a, err = audit() // maintenance writes the finding down
	}
	if err != nil || a.Records < int64(acked) || acked < 2 || len(a.Damage(0)) != 1 {
		t.Errorf("%d lines are acknowledged; %+v, %v", acked, a, err)
	}
	if !strings.Contains(r.log.String(), "removed while in use") {
		t.Errorf("the log says\n%s", r.log.String())
	}
}

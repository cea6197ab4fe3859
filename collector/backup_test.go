package collector

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/rollway/rollway/collector/backup"
)

// A person takes a backup by the collector's own page, and it is noted; other methods are refused.
func TestBackupOfAPerson(t *testing.T) {
	r := run(t, withPeople(t))
	person := r.logIn(t, secretOfAdmin)
	for _, method := range []string{"POST", "HEAD", "DELETE"} {
		if code := r.status(t, method, backupPath, "", person...); code != http.StatusMethodNotAllowed {
			t.Errorf("%s: %d", method, code)
		}
	}
	if code := r.status(t, "GET", backupPath, "", append(person, "Sec-Fetch-Site", "cross-site")...); code != http.StatusUnauthorized {
		t.Errorf("from a page of others: %d", code)
	}
	resp, text := r.send(t, "GET", backupPath, "", person...)
	report, err := backup.Read(strings.NewReader(text), int64(len(text)), "")
	if err != nil || resp.StatusCode != 200 || report.Journal != r.journal.ID() || report.Next != report.Found {
		t.Fatalf("%s, %+v, %v", resp.Status, report, err)
	}
	if r.backups.sent.Load() != 1 || r.backups.last.Load() != report.Ended.Unix() {
		t.Errorf("it is not counted: %d, %d", r.backups.sent.Load(), r.backups.last.Load())
	}
	if _, _, found := r.ask(t, http.DefaultClient, "GET", "/api/query?q=logger=audit", secretOfAdmin, ""); !strings.Contains(found, `"msg":"backup"`) {
		t.Errorf("who took it is not noted: %s", found)
	}
}

// A client that takes nothing ends its backup after timeouts.write, and holds up nobody: lines are
// stored meanwhile. The end of the collector waits for it no longer than for other requests.
func TestBackupOfASlowClient(t *testing.T) {
	for name, end := range map[string]func(r *running){
		"timeouts.write": func(*running) {},
		"the end":        func(r *running) { r.stop() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := testConfig(t)
			cfg.Timeouts.Shutdown = 300 * time.Millisecond
			if name == "timeouts.write" {
				cfg.Timeouts.Write = 3 * time.Second // a busy machine must keep it, for the lines
			}
			r := run(t, cfg)
			line := fmt.Sprintf(`{"msg":%q}`+"\n", strings.Repeat("long ", 10_000))
			body := strings.Repeat(line, 16)
			post := func() {
				t.Helper()
				if resp, err := http.Post(r.url+"/api/logs", "", strings.NewReader(body)); err != nil || resp.StatusCode != 200 {
					t.Fatalf("%v, %v", resp, err)
				}
			}
			for range 40 { // 32 MB: more than sockets hold
				post()
			}
			conn, err := net.Dial("tcp", r.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n", backupPath)
			begun := make([]byte, 4096)
			if _, err := conn.Read(begun); err != nil || !bytes.HasPrefix(begun, []byte("HTTP/1.1 200")) {
				t.Fatalf("%s, %v", begun, err)
			}
			post()
			end(r)
			eventually(t, func() bool { return r.backups.failed.Load() == 1 })
			if text := r.log.String(); !strings.Contains(text, "a backup was not sent to its end") {
				t.Errorf("the log says %s", text)
			}
		})
	}
}

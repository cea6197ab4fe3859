package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

const backupTokens = `
- {name: writer, secret: writer-0123456789abcdef, may: [write]}
- {name: shop, secret: shop-0123456789abcdef, may: [write, read, operate], tenant: shop}
- {name: reader, secret: reader-0123456789abcdef, may: [read]}
- {name: operator, secret: operator-0123456789abcdef, may: [operate]}
- {name: backup, secret: backup-0123456789abcdef, may: [read, operate]}
`

// secured is a collector with tokens.
func secured(t *testing.T, data string) *daemon {
	t.Helper()
	dir := t.TempDir()
	tokens, config := filepath.Join(dir, "tokens.yaml"), filepath.Join(dir, "config.yaml")
	writeFile(t, tokens, backupTokens)
	writeFile(t, config, fmt.Sprintf("access: {tokens: %q}\njournal: {segment_size: 1MiB, compression: none}\n", tokens))
	return serveDaemon(t, "-config", config, "-data", data)
}

// postAs posts a body under a key, to be synced, as the token of that name. Code 0: there is no answer.
func postAs(client *http.Client, d *daemon, token, key, body string) (code int, answer string) {
	req, err := http.NewRequest("POST", d.addr+"/api/logs", strings.NewReader(body))
	if err != nil {
		return 0, err.Error()
	}
	req.Header.Set("Authorization", "Bearer "+token+"-0123456789abcdef")
	if key != "" {
		req.Header.Set("Idempotency-Key", key)
	}
	req.Header.Set("X-Durability", "synced")
	resp, err := client.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err.Error()
	}
	return resp.StatusCode, string(text)
}

// sentBatches are those that writers have sent, by key: true once they are answered.
type sentBatches struct {
	mu   sync.Mutex
	done map[string]bool
}

func (s *sentBatches) set(key string, done bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.done[key] = done
}

func (s *sentBatches) answered() (keys []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, done := range s.done {
		if done {
			keys = append(keys, key)
		}
	}
	return keys
}

// batchOf is the body of a key: five lines.
func batchOf(key string) string {
	var b strings.Builder
	for i := range 5 {
		fmt.Fprintf(&b, `{"msg":"%s-%d","filler":%q}`+"\n", key, i, strings.Repeat(key+" ", 1500))
	}
	return b.String()
}

// Four writers post, some of them as a tenant, while backups are taken. The collector is killed
// during the second one, which leaves the first as it was. Restored, the first has each line that
// was answered for before it began, once, knows the keys and the dead letters, and its ledger
// balances.
func TestBackupAndRestore(t *testing.T) {
	dir := t.TempDir()
	d := secured(t, filepath.Join(dir, "data"))
	sent := &sentBatches{done: map[string]bool{}}
	var writers sync.WaitGroup
	for w := range 4 {
		writers.Go(func() {
			client := &http.Client{Transport: &http.Transport{}}
			defer client.CloseIdleConnections()
			for i := 0; ; i++ {
				key := fmt.Sprintf("w%d-%d", w, i)
				sent.set(key, false)
				code, _ := postAs(client, d, []string{"writer", "shop"}[w%2], key, batchOf(key))
				if code != http.StatusOK {
					return
				}
				sent.set(key, true)
			}
		})
	}
	if code, answer := postAs(http.DefaultClient, d, "writer", "bad", "no JSON {\n"); code != 400 && code != 200 {
		t.Fatal(code, answer)
	}
	waitFor(t, "load", func() bool { return len(sent.answered()) > 100 })
	file := filepath.Join(dir, "backup.tar")
	for token, want := range map[string]string{
		"":       "401 Unauthorized",
		"writer": "token writer may not read", "reader": "token reader may not operate", "operator": "token operator may not read",
		"shop": "a backup has the lines of all tenants, and token shop is of shop alone",
	} {
		t.Setenv("ROLLWAY_TOKEN", "")
		if token != "" {
			t.Setenv("ROLLWAY_TOKEN", token+"-0123456789abcdef")
		}
		cli(t, "", "backup", "-to", file, "-addr", d.addr).want(t, 1, want)
	}
	t.Setenv("ROLLWAY_TOKEN", "backup-0123456789abcdef")
	before := sent.answered()
	prints(t, file+": backup of ", "backup", "-to", file, "-addr", d.addr)
	first, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	waitFor(t, "more load", func() bool { return len(sent.answered()) > 400 }) // 18 MB, more than sockets hold
	if _, metrics := asToken(t, d, "backup", "/metrics"); !strings.Contains(metrics, "\nrollway_backups_sent_total 1\n") {
		t.Error("the metrics do not tell of the backup")
	}

	cut := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.RequestURI, r.URL.Scheme, r.URL.Host = "", "http", strings.TrimPrefix(d.addr, "http://")
		resp, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			t.Error(err)
			return
		}
		defer resp.Body.Close()
		io.CopyN(w, resp.Body, 1<<20)
		d.kill()
		io.Copy(w, resp.Body)
		panic(http.ErrAbortHandler)
	}))
	defer cut.Close()
	cli(t, "", "backup", "-to", file, "-addr", cut.URL).want(t, 1, "the backup was cut off after")
	writers.Wait()
	if again, err := os.ReadFile(file); err != nil || !bytes.Equal(first, again) {
		t.Errorf("the first backup is another one: %v", err)
	}
	if left, _ := filepath.Glob(file + ".*"); len(left) > 0 {
		t.Errorf("left: %v", left)
	}

	prints(t, ": sound\n", "verify", file)
	data := filepath.Join(dir, "restored")
	prints(t, "each line checked\n", "restore", file, "-data", data)
	prints(t, `"next_offset":`, "restore", file, "-o", "json", "-data", filepath.Join(dir, "again"))
	cli(t, "", "restore", file, "-data", data).want(t, 1, data+" is not empty")
	prints(t, "\nall agrees\n", "reconcile", data)
	again := secured(t, data)
	if !strings.Contains(again.stdout.String(), "nothing to repair") {
		t.Errorf("the restored collector says:\n%s", again.stdout.String())
	}
	found := map[string]int{}
	for _, line := range again.query(t, "-limit", "0") {
		var e struct{ Msg string }
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		found[e.Msg]++
	}
	for _, key := range before {
		for i := range 5 {
			if n := found[fmt.Sprintf("%s-%d", key, i)]; n != 1 {
				t.Fatalf("line %d of %s is there %d times", i, key, n)
			}
		}
	}
	for msg, n := range found {
		key := msg[:strings.LastIndexByte(msg, '-')]
		if _, known := sent.done[key]; !known || n != 1 {
			t.Errorf("%q is there %d times", msg, n)
		}
	}
	for _, key := range before[:50] {
		token := "writer"
		if key[1] == '1' || key[1] == '3' {
			token = "shop"
		}
		if code, answer := postAs(http.DefaultClient, again, token, key, batchOf(key)); code != 200 {
			t.Fatal(code, answer)
		}
	}
	if n := len(again.query(t, "-limit", "0")); n != len(found) {
		t.Errorf("after 50 batches came again under their keys there are %d lines, and not %d", n, len(found))
	}
	if _, letters := asToken(t, again, "backup", "/api/rejected"); !strings.Contains(letters, "no JSON {") {
		t.Errorf("the dead letters are %s", letters)
	}
	prints(t, "\nall agrees\n", "reconcile", data, "-addr", again.addr)
	again.end(t)
	prints(t, "\nall agrees\n", "reconcile", data)
	t.Logf("%d batches before the backup, %d lines in it, %d batches in all", len(before), len(found), len(sent.done))

	// A restore that was interrupted is no data folder.
	half := filepath.Join(dir, "half")
	if err := os.MkdirAll(filepath.Join(half, ".restoring", "journal"), 0o750); err != nil {
		t.Fatal(err)
	}
	cli(t, "", "serve", "-listen", "127.0.0.1:0", "-data", half).want(t, 1, "a restore was interrupted there")
	first[len(first)/3] ^= 1
	bad := filepath.Join(dir, "bad.tar")
	writeFile(t, bad, string(first))
	cli(t, "", "restore", bad, "-data", half).want(t, 1, "the backup is damaged at byte")
	if r := cli(t, "", "verify", bad); r.code != 1 || !strings.Contains(r.stdout, "backup: damaged\n  the backup is damaged at byte") {
		t.Errorf("%+v", r)
	}
}

// prints runs a command, which must end with 0 and print the text.
func prints(t *testing.T, text string, args ...string) {
	t.Helper()
	r := cli(t, "", args...)
	r.want(t, 0)
	if !strings.Contains(r.stdout, text) {
		t.Errorf("%q prints %s, want %s", args, r.stdout, text)
	}
}

// asToken returns the status and the body of path for a token.
func asToken(t *testing.T, d *daemon, token, path string) (int, string) {
	t.Helper()
	req, err := http.NewRequest("GET", d.addr+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token+"-0123456789abcdef")
	return received(t)(http.DefaultClient.Do(req))
}

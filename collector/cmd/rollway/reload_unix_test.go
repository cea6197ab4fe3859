//go:build unix

package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
)

// Fifty times SIGHUP under load, with a change of each setting that can change and
// with what cannot be used between them: no request fails, and the ledger agrees with
// the journal.
func TestHangUpsUnderLoad(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	// A file is there as a whole or not at all, as an editor leaves it.
	write := func(name, text string) {
		t.Helper()
		temp := path(name + ".new")
		writeFile(t, temp, text)
		if err := os.Rename(temp, path(name)); err != nil {
			t.Fatal(err)
		}
	}
	const secret = "secret-0123456789"
	tokens := func(more string) {
		write("tokens.yaml", fmt.Sprintf("- {name: one, secret: %s, may: [write, read]}\n%s", secret, more))
	}
	config := func(more string) {
		write("rollway.yaml", fmt.Sprintf("access: {tokens: %q}\n%s", path("tokens.yaml"), more))
	}
	tokens("")
	write("networks.csv", "network,site\n127.0.0.0/8,a\n")
	networks := fmt.Sprintf("enrich: {fields: {n: 1}, networks: {file: %q}}\n", path("networks.csv"))
	config("enrich: {fields: {n: 1}}\n")
	d := serveDaemon(t, "-config", path("rollway.yaml"))

	steps := []struct {
		good   bool
		change func()
	}{
		{true, func() { config("enrich: {fields: {n: 2}}\n") }},
		{false, func() { config("enrich: {fields: {n: 3}\n") }},
		{true, func() { config(networks) }},
		{false, func() { write("networks.csv", "network,site\nnone,b\n") }},
		{true, func() { write("networks.csv", "network,site\n127.0.0.0/8,b\n") }},
		{false, func() { config("limits: {max_depth: 7}\n") }},
		{true, func() { config("proxies: {trusted: 127.0.0.1}\nenrich: {fields: {n: 1}, client: true}\n") }},
		{true, func() { config("rules:\n- rename: {from: who, to: service}\nenrich: {fields: {n: 1}}\n") }},
		{false, func() { config("rules:\n- redact: {match: '('}\n") }},
		{true, func() {
			config("enrich: {fields: {n: 1}}\n")
			tokens("- {name: two, secret: another-0123456789, may: read}\n")
		}},
		{false, func() { tokens("- {name: three}\n") }},
		{true, func() { tokens("") }},
	}

	stop := make(chan struct{})
	var done sync.WaitGroup
	var stored atomic.Int64
	for c := range 4 {
		done.Go(func() {
			client := &http.Client{Transport: &http.Transport{}}
			defer client.CloseIdleConnections()
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				req, err := http.NewRequest("POST", d.addr+"/api/logs", strings.NewReader(fmt.Sprintf(`{"msg":"%d","who":"client %d"}`, i, c)))
				if err != nil {
					t.Error(err)
					return
				}
				req.Header.Set("Authorization", "Bearer "+secret)
				resp, err := client.Do(req)
				if err != nil {
					t.Error(err)
					return
				}
				body, _ := io.ReadAll(resp.Body) // what is missing shows below
				resp.Body.Close()
				if resp.StatusCode != 200 || !strings.Contains(string(body), `"accepted":1`) {
					t.Errorf("%s: %s", resp.Status, body)
					return
				}
				stored.Add(1)
			}
		})
	}
	const good, bad = "configuration reloaded", "the old one stays in force"
	for i := range 50 {
		step := steps[i%len(steps)]
		want := bad
		if step.good {
			want = good
		}
		before := strings.Count(d.stderr.String(), want)
		at := stored.Load()
		step.change()
		sendSignal(t, d.cmd, syscall.SIGHUP)
		waitFor(t, fmt.Sprintf("%q after change %d", want, i), func() bool { return strings.Count(d.stderr.String(), want) > before })
		waitFor(t, "load", func() bool { return stored.Load() > at || t.Failed() })
	}
	close(stop)
	done.Wait()
	if log := d.stderr.String(); strings.Contains(log, secret) {
		t.Errorf("a secret was written:\n%s", log)
	}
	d.end(t)
	r := cli(t, "", "reconcile", filepath.Join(d.cmd.Dir, "data"))
	if r.code != exitOK || !strings.Contains(r.stdout, fmt.Sprintf("stored %d", stored.Load())) {
		t.Errorf("%d stored, %d\n%s%s", stored.Load(), r.code, r.stdout, r.stderr)
	}
}

package main

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What one journal has is not in the next one at the same address: a collector
// whose data folder is new gets the file from its start.
func TestSendToAnotherJournal(t *testing.T) {
	dir := t.TempDir()
	file, state := dir+"/log", dir+"/state"
	writeFile(t, file, "one\ntwo\n")
	f := newFakeCollector(t)
	send := func(journal, wantSaid string, want ...string) {
		t.Helper()
		f.mu.Lock()
		f.journal = journal
		f.mu.Unlock()
		cli(t, "", "send", "-addr", f.URL, "-state", state, file).want(t, 0, wantSaid)
		if got := f.messages(t); strings.Join(got, " ") != strings.Join(want, " ") {
			t.Errorf("journal %q got %q, want %q", journal, got, want)
		}
	}
	send("a1", "sent 2 lines", "one", "two")
	send("a1", "nothing new behind line 2")
	send("b2", "another journal than the one it was sent to", "one", "two")
	send("b2", "nothing new behind line 2")
	send("", "nothing new behind line 2") // a collector that does not say
	send("b2", "nothing new behind line 2")
}

// The same with the real collector, whose folder is removed between two runs.
func TestSendToEmptiedCollector(t *testing.T) {
	dir := t.TempDir()
	file, data := dir+"/log", dir+"/data"
	writeFile(t, file, "one\ntwo\n")
	var addr string
	for range 2 {
		args := []string{"-data", data}
		if addr != "" {
			args = append(args, "-listen", strings.TrimPrefix(addr, "http://"))
		}
		d := serveDaemon(t, args...)
		addr = d.addr
		for range 2 { // the second time there is nothing new
			cli(t, "", "send", "-addr", addr, "-state", dir+"/state", file).want(t, 0)
		}
		if got := len(d.query(t, "file=log")); got != 2 {
			t.Errorf("%d lines are found, want 2", got)
		}
		if err := d.stop(); err != nil {
			t.Fatal(err)
		}
		if err := os.RemoveAll(data); err != nil {
			t.Fatal(err)
		}
	}
}

// Whoever gives up says how many lines it leaves.
func TestSendGivesUp(t *testing.T) {
	f, dir := newFakeCollector(t), t.TempDir()
	path := filepath.Join(dir, "in.log")
	text, _ := numbered(0, 2500)
	writeFile(t, path, text)
	f.setBefore(func(n int, w http.ResponseWriter, _ []string) bool {
		if n > 1 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		return n > 1
	})
	cli(t, "", "send", "-addr", f.URL, "-state", dir, "-retry", "0", path).want(t, 1, "sent 1,000 lines", "1,000 lines read and not accepted")
}

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
)

// exported returns the lines of the files in dir.
func exported(t *testing.T, dir string) (lines []string) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*.ndjson.zst"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		r, err := zstd.NewReader(f)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		r.Close()
		f.Close()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		lines = append(lines, strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")...)
	}
	return lines
}

// A stalling server passes on a part of each answer, and then waits for its client to go.
type stalling struct {
	*cutter
	stalled chan struct{}
}

func (s *stalling) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.cutter.broken = func(int) {
		s.stalled <- struct{}{}
		<-r.Context().Done()
	}
	s.cutter.ServeHTTP(w, r)
}

// An export that is killed again and again has each line once, whatever was being written.
func TestExportKilled(t *testing.T) {
	d := serveDaemon(t)
	d.fill(t, 0, 2000)
	want := d.query(t, "n!=77")
	cuts := []int{0, 50, 3000, 25_000, 40_000, 7000, 100, 60_000}
	s := &stalling{&cutter{daemon: d}, make(chan struct{})}
	s.limit = func(n int) int {
		if n > len(cuts) {
			return -1
		}
		return cuts[n-1]
	}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close) // after its clients have ended
	dir := filepath.Join(t.TempDir(), "out")
	args := []string{"export", "-to", dir, "-addr", server.URL, "-size", "20KB", "n!=77", "-since", "100000h"}
	for i := range cuts {
		cmd := exec.Command("rollway", args...)
		start(t, cmd)
		t.Cleanup(func() { cmd.Process.Kill() })
		<-s.stalled
		if i > 0 { // else it may be killed before it knows its end
			waitFor(t, "the state", func() bool { return stateOf(t, dir).End != "" })
		}
		if i == 4 {
			waitFor(t, "a file", func() bool { return len(stateOf(t, dir).Files) > 0 })
		}
		cmd.Process.Kill()
		cmd.Wait()
		if i > 0 {
			d.fill(t, 2000+i, 2001+i) // which is too late
		}
	}
	r := cli(t, "", args...)
	r.want(t, 0)
	if got := exported(t, dir); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("%d lines, want %d", len(got), len(want))
	}
	state := stateOf(t, dir)
	if !strings.HasPrefix(r.stdout, fmt.Sprintf("%s, ", lines(len(want)))) || !strings.HasSuffix(r.stdout, "; checked\n") || !state.Done || len(state.Files) < 8 {
		t.Errorf("%d files, %s", len(state.Files), r.stdout)
	}
	// To run it again changes nothing; files that were renamed and not listed, and what is
	// left of one, are written again.
	before := tree(t, dir)
	cli(t, "", args...).want(t, 0)
	if tree(t, dir) != before {
		t.Error("an export that was complete has changed")
	}
	state.Done, state.Files = false, state.Files[:3]
	n := 0
	for _, f := range state.Files {
		n += f.Lines
	}
	state.Next = offsetOf(t, d, n)
	text, err := json.Marshal(state)
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(dir, exportStateName), string(text))
	writeFile(t, filepath.Join(dir, partName), "torn")
	writeFile(t, filepath.Join(dir, exportStateName+".new"), "torn")
	cli(t, "", args...).want(t, 0)
	if got := exported(t, dir); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("with files that are not listed: %d lines, want %d", len(got), len(want))
	}
}

// offsetOf returns the offset of line n of those that are exported.
func offsetOf(t *testing.T, d *daemon, n int) string {
	t.Helper()
	cl, err := newClient(d.addr)
	if err != nil {
		t.Fatal(err)
	}
	s := &search{client: cl, values: parameters("q", "n!=77", "limit", number(n)), take: func([]byte) error { return nil },
		flush: func() error { return nil }, begin: func([]string) error { return nil }}
	if err := s.run(context.Background()); err != nil {
		t.Fatal(err)
	}
	return s.next
}

func stateOf(t *testing.T, dir string) (s exportState) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, exportStateName))
	if err == nil {
		err = json.Unmarshal(text, &s)
	}
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return s
}

func TestExport(t *testing.T) {
	data, dir := t.TempDir(), filepath.Join(t.TempDir(), "a", "b")
	d := serveDaemon(t, "-data", data)
	d.fill(t, 0, 500)
	want := d.query(t, "level=warn")
	d.end(t)
	args := []string{"export", "-to", dir, "-data", data, "-size", "2KB", "level=warn"}
	r := cli(t, "", args...)
	r.want(t, 0)
	if got := exported(t, dir); strings.Join(got, "\n") != strings.Join(want, "\n") || !strings.HasPrefix(r.stdout, "50 lines, 4.4 KB, packed ") {
		t.Errorf("%d lines, want %d: %s", len(got), len(want), r.stdout)
	}
	check := []string{"export", "-check", "-to", dir}
	cli(t, "", check...).want(t, 0)
	cli(t, "", "export", "-to", dir, "-data", data, "level=info").want(t, 2, `has an export of "level=warn"`)
	cli(t, "", "export", "-to", dir, "| stats count()").want(t, 2, "and no pipes")
	cli(t, "", "export", "level=warn").want(t, 2, "-to DIR is missing")
	cli(t, "", "export", "-to", dir+"2", "-addr", "127.0.0.1:1").want(t, 1, "no collector listens at")
	cli(t, "", "export", "-to", dir+"2", "-data", data, "-since", "soon").want(t, 2, "-since")

	// Damage is found.
	name := filepath.Join(dir, exportName(1))
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	for what, changed := range map[string]string{"a bit": string(text[:40]) + string(text[40]^1) + string(text[41:]), "cut": string(text[:len(text)-1]), "longer": string(text) + "x", "empty": ""} {
		writeFile(t, name, changed)
		if r := cli(t, "", check...); r.code != 1 || !strings.Contains(r.stderr, exportName(1)) {
			t.Errorf("%s: status %d, %s", what, r.code, r.stderr)
		}
	}
	os.Remove(name)
	cli(t, "", check...).want(t, 1, exportName(1))
	writeFile(t, name, string(text))
	writeFile(t, filepath.Join(dir, exportName(9)), string(text))
	cli(t, "", check...).want(t, 1, "EXPORT.json lists 3")
}

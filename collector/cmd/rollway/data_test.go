package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// tree is what a folder has: names, and what tells of a change.
func tree(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		b.WriteString(path + info.ModTime().String() + info.Mode().String() + "\n")
		if e.IsDir() {
			return nil
		}
		text, err := os.ReadFile(path)
		b.Write(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// The folder of a collector, whether it ended well or was killed, gives the same answers as
// the collector did, and stays as it is.
func TestQueryOfAFolder(t *testing.T) {
	cases := [][]string{
		{""}, {"level=warn", "-limit", "70"}, {"-last", "30"}, {"-last", "30", "-order", "arrival"}, {"| stats count() as n, max(n) as top by level"},
		{"| sort -n | limit 3", "-o", "csv"}, {"level=warn", "-o", "text", "-since", "2026-05-28T00:10:00Z"}, {"level=warn", "-order", "time", "-o", "table"},
	}
	for name, end := range map[string]func(*daemon){"stopped": func(d *daemon) { d.end(t) }, "killed": (*daemon).kill} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			d := serveDaemon(t, "-data", dir)
			d.fill(t, 0, 2000)
			r := cli(t, "", "query", "-data", dir)
			r.want(t, 1, "a collector has "+dir+" open; ask it over HTTP")
			var want []string
			for _, args := range cases {
				want = append(want, strings.Join(d.query(t, args...), "\n"))
			}
			end(d)
			before := tree(t, dir)
			for i, args := range cases {
				r := cli(t, "", append([]string{"query", "-data", dir}, args...)...)
				if got := strings.TrimSuffix(r.stdout, "\n"); r.code != 0 || r.stderr != "" || got != want[i] {
					t.Errorf("%q: status %d, %d bytes, want %d, %s", args, r.code, len(got), len(want[i]), r.stderr)
				}
			}
			if tree(t, dir) != before {
				t.Error("the folder has changed")
			}
		})
	}
	empty := t.TempDir()
	cli(t, "", "query", "-data", empty).want(t, 1, "is a folder, and no journal")
	cli(t, "", "query", "-data", filepath.Join(empty, "no")).want(t, 1, "no such file")
	cli(t, "", "query", "-data", empty, "-addr", "127.0.0.1:1").want(t, 2, "-addr and -data exclude each other")
}

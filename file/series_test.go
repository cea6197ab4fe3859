package file_test

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rollway/rollway/file"
)

// parts returns the contents of the series of path from old to new, the current
// file last, packed ones unpacked. It waits for who changes it meanwhile.
func parts(t testing.TB, path string, c file.Compressor) (names, contents []string) {
	t.Helper()
	if c == nil {
		c = file.Gzip{}
	}
	for range 1000 {
		names, contents = nil, nil
		ext := filepath.Ext(path)
		stem := strings.TrimSuffix(filepath.Base(path), ext)
		before := glob(t, filepath.Join(filepath.Dir(path), stem+"-*"))
		again := false
		for i, name := range append(slices.Clone(before), path) {
			plain := strings.TrimSuffix(name, c.Extension())
			if strings.HasSuffix(name, ".part") || plain != name && slices.Contains(before, plain) {
				continue // not finished
			}
			b, err := os.ReadFile(name)
			if os.IsNotExist(err) && i < len(before) {
				again = true
				break
			}
			if err != nil && !os.IsNotExist(err) {
				t.Fatal(err)
			}
			if plain != name {
				r, err := c.NewReader(bytes.NewReader(b))
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				if b, err = io.ReadAll(r); err != nil {
					t.Fatalf("%s: %v", name, err)
				}
			}
			names, contents = append(names, name), append(contents, string(b))
		}
		if !again && slices.Equal(before, glob(t, filepath.Join(filepath.Dir(path), stem+"-*"))) {
			return names, contents
		}
		time.Sleep(time.Millisecond)
	}
	t.Fatal("the series does not come to rest")
	return nil, nil
}

func glob(t testing.TB, pattern string) []string {
	t.Helper()
	names, err := filepath.Glob(pattern)
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(names)
	return names
}

func rotated(t testing.TB, path string) []string {
	t.Helper()
	names, _ := parts(t, path, nil)
	return slices.DeleteFunc(names, func(n string) bool { return n == path })
}

// eventually waits until ok.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(60 * time.Second); ; time.Sleep(2 * time.Millisecond) {
		if ok() {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("not within a minute: %s", what)
		}
	}
}

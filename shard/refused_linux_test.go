package shard_test

import (
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/rollway/rollway/internal/smalldisk"
	"github.com/rollway/rollway/shard"
)

// Where the file system refuses a mode the lines are written Buffered: OnError is
// told so once, Stats says it, and nothing is lost. A ramfs refuses both.
func TestModeIsRefused(t *testing.T) {
	dir := smalldisk.Mount(t, "size=1m")
	if dir == "" {
		return
	}
	if err := syscall.Mount("ramfs", dir, "ramfs", 0, ""); err != nil {
		t.Fatal(err)
	}
	for _, kind := range kinds {
		t.Run(nameOf(kind), func(t *testing.T) {
			const goroutines, each = 2, 50
			path := filepath.Join(dir, nameOf(kind)+".log")
			var heard told
			o := small
			o.StallAfter = 1 << 40
			o.OnError = heard.add
			o.File = kind
			o.File.MaxSize = 160 << 10 // later files are not tried in that mode again
			w := openFile(t, path, o)
			write(t, w, goroutines, 0, each, 20_000)
			closeFile(t, w)
			ledger(w).CheckSettled(t, goroutines*each, goroutines*each)
			complete(t, goroutines, each, seriesOf(t, path)...)
			s := w.Stats()
			if s.File.Mode != shard.Buffered || s.File.Rotations < 2 || s.File.Sealed != 0 || s.Errors != 0 {
				t.Errorf("Stats %+v", s)
			}
			var want []string
			if kind.Mode != shard.Buffered {
				want = []string{path + " is written Buffered, not " + kind.Mode.String() + ": "}
			}
			heard.mu.Lock()
			defer heard.mu.Unlock()
			if !slices.EqualFunc(heard.text, want, strings.Contains) {
				t.Errorf("OnError got %q, want %q", heard.text, want)
			}
		})
	}
}

package file_test

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/rollway/rollway/file"
	"github.com/rollway/rollway/internal/smalldisk"
)

// Where the file system refuses a mode the lines are written Buffered: OnError
// is told so once, Stats says it, and nothing is lost. A ramfs refuses both.
func TestModeIsRefused(t *testing.T) {
	t.Parallel()
	dir := smalldisk.Mount(t, "size=1m")
	if dir == "" {
		return
	}
	if err := syscall.Mount("ramfs", dir, "ramfs", 0, ""); err != nil {
		t.Fatal(err)
	}
	for _, mode := range modes[1:] {
		path := filepath.Join(dir, mode.String())
		var heard told
		f := open(t, path, file.Options{
			Mode: mode, MaxSize: 10_000, // later files are not tried in that mode again
			OnError: heard.add,
		})
		line := strings.Repeat("x", 999) + "\n"
		const lines = 35
		for range lines {
			write(t, f, line)
		}
		if err := f.Reopen(); err != nil {
			t.Error(err)
		}
		f.Told()
		notices, want := heard.all(), "file: "+path+" is written Buffered, not "+mode.String()+": "
		if len(notices) != 1 || !strings.HasPrefix(notices[0], want) {
			t.Errorf("notices %q, want one: %s", notices, want)
		}
		if s := f.Stats(); s.Mode != file.Buffered || s.Rotations != 3 || s.Errors != 0 {
			t.Errorf("%v: Stats %+v", mode, s)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
		ledger(f).CheckSettled(t, lines, lines)
		if _, contents := parts(t, path, nil); strings.Join(contents, "") != strings.Repeat(line, lines) {
			t.Errorf("%v: the series is not what was written", mode)
		}
	}
}

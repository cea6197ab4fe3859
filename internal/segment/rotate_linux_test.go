package segment

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// A rotation that fails leaves the file under its path and in use, and is tried
// again a second later.
func TestRotationFails(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	synctest.Test(t, func(t *testing.T) {
		var heard notices
		l := openLog(t, path, Options{MaxSize: 22_000, Notice: heard.add})
		line := strings.Repeat("x", 5999) + "\n"
		give(t, l, line)
		give(t, l, line)
		first := l.cur
		var limit syscall.Rlimit
		if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
			t.Fatal(err)
		}
		none := limit
		none.Cur = 0 // no file can be opened
		if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &none); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			give(t, l, line)
			time.Sleep(300 * time.Millisecond)
		}
		if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
			t.Fatal(err)
		}
		if s := heard.String(); strings.Count(s, "the file in use is written on") != 1 || l.cur != first {
			t.Errorf("heard %s", s)
		}
		if names := rotatedFiles(t, path); len(names) > 0 || readAll(t, path) != strings.Repeat(line, 5) {
			t.Errorf("%v, and %d bytes at the path", names, len(readAll(t, path)))
		}
		time.Sleep(200 * time.Millisecond)
		give(t, l, "last\n")
		if names := rotatedFiles(t, path); len(names) != 1 || readAll(t, path) != "last\n" || l.Stats().Rotations != 1 {
			t.Errorf("%v, Stats %+v", names, l.Stats())
		}
		l.Close()
	})
}

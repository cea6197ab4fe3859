package segment

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollway/rollway/internal/direct"
)

// appendTo appends to a file as another program does.
func appendTo(t *testing.T, path, text string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err == nil {
		_, err = f.WriteString(text)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
}

// What a write that failed has left behind the end is taken away, also whole lines,
// which are given again: by the next write, by Close, and when the file is left.
func TestRestOfAFailedWriteIsCut(t *testing.T) {
	for name, then := range map[string]func(t *testing.T, l *Log) error{
		"write": func(t *testing.T, l *Log) error { give(t, l, "two\n"); return nil },
		"Close": func(_ *testing.T, l *Log) error { return l.Close() },
		"Reopen": func(t *testing.T, l *Log) error {
			if err := os.Rename(l.Path(), l.Path()+"-away"); err != nil {
				t.Fatal(err)
			}
			return l.Reopen()
		},
		"leave": func(t *testing.T, l *Log) error {
			l.judge(syscall.EIO)
			give(t, l, "two\n")
			return nil
		},
	} {
		var heard notices
		path := filepath.Join(t.TempDir(), "log")
		l := openLog(t, path, Options{Notice: heard.add})
		give(t, l, "one\n")
		appendTo(t, path, "two\nthr")
		l.cur.failed = true
		if err := then(t, l); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		want := "one\n"
		if name == "write" || name == "leave" {
			want += "two\n"
		}
		names, err := filepath.Glob(path + "-*")
		if got := readAll(t, append(names, path)...); got != want || err != nil {
			t.Errorf("%s: the files hold %q, want %q", name, got, want)
		}
		if s := heard.String(); strings.Contains(s, "someone else") {
			t.Errorf("%s: heard %s", name, s)
		}
	}
}

// A file that someone has cut after it was moved away is not made longer again when
// it is left.
func TestFileCutBeforeItIsLeft(t *testing.T) {
	for _, o := range []Options{{Mode: direct.Direct}, {Mode: direct.Buffered}, {Mode: direct.Buffered, Framed: true}} {
		path := filepath.Join(t.TempDir(), "log")
		o.Perm, o.CheckEvery = 0o600, -1
		l, err := Open(path, o)
		if err != nil {
			t.Fatal(err)
		}
		give(t, l, strings.Repeat("x", 9999)+"\n")
		moved := path + "-away"
		if err := errors.Join(os.Rename(path, moved), os.Truncate(moved, 7)); err != nil {
			t.Fatal(err)
		}
		if err := l.Reopen(); err != nil {
			t.Error(err)
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		if n := len(readAll(t, moved)); n != 7 {
			t.Errorf("%v, framed %v: it was cut to 7 bytes and has %d", o.Mode, o.Framed, n)
		}
	}
}

// Of a framed file whose fsync has failed the last batch does not count: its
// records come again elsewhere.
func TestFramedSyncEachFails(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	s := &syncs{errs: []error{nil, syscall.EIO}}
	l := openLog(t, path, Options{Framed: true, Sync: Each})
	l.syncData = s.sync
	give(t, l, "one\n")
	if n, err := l.Write([]byte("two\n")); n != 0 || !errors.Is(err, syscall.EIO) {
		t.Fatalf("Write = %d, %v", n, err)
	}
	give(t, l, "two\n")
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	names := rotatedFiles(t, path)
	if len(names) != 1 {
		t.Fatalf("files: %v", names)
	}
	if got := fmt.Sprint(records(t, names[0]), records(t, path)); got != "[one] [two]" {
		t.Errorf("the files hold %s", got)
	}
}

// A path that names nothing any more is made anew after a second, in which the one
// who moved the file away may do it, and each time anew.
func TestGraceForWhoMovesTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	synctest.Test(t, func(t *testing.T) {
		l := openLog(t, path, Options{CheckEvery: 100 * time.Millisecond})
		at := func(d time.Duration, line string, there bool) {
			t.Helper()
			time.Sleep(d)
			give(t, l, line)
			if _, err := os.Stat(path); (err == nil) != there {
				t.Errorf("%s: Stat = %v", line, err)
			}
		}
		move := func(from, to string) {
			t.Helper()
			if err := os.Rename(from, to); err != nil {
				t.Fatal(err)
			}
		}
		move(path, path+"-1")
		at(150*time.Millisecond, "missed\n", false)
		at(900*time.Millisecond, "missed still\n", false)
		move(path+"-1", path)
		at(150*time.Millisecond, "back\n", true)
		move(path, path+"-1")
		at(150*time.Millisecond, "missed again\n", false)
		at(900*time.Millisecond, "missed still\n", false)
		at(200*time.Millisecond, "new\n", true)
		move(path, path+"-2")
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		at(150*time.Millisecond, "who moved it made it\n", true)
		if got, want := readAll(t, path+"-1"), "missed\nmissed still\nback\nmissed again\nmissed still\n"; got != want {
			t.Errorf("the first file holds %q", got)
		}
		if got := readAll(t, path+"-2", path); got != "new\nwho moved it made it\n" || l.Stats().Reopens != 2 {
			t.Errorf("the others hold %q; Stats %+v", got, l.Stats())
		}
		l.Close()
	})
}

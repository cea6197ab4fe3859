//go:build unix

package file_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rollway/rollway/file"
	"github.com/rollway/rollway/internal/testkit"
)

// twoFolders makes two folders and returns the path of a file in each.
func twoFolders(t *testing.T, dir string) (path, other, second string) {
	t.Helper()
	first := filepath.Join(dir, "first")
	second = filepath.Join(dir, "second")
	testkit.OK(t, errors.Join(os.Mkdir(first, 0o700), os.Mkdir(second, 0o700)))
	return filepath.Join(first, "log"), filepath.Join(second, "log"), second
}

// goesTo writes a line and wants it in the file at path.
func goesTo(t *testing.T, f *file.File, path, line string) {
	t.Helper()
	write(t, f, line+"\n")
	if s := f.Stats(); s.Path != path || s.Failing || s.Err() != nil {
		t.Fatalf("%s: Stats %+v, want the path %s", line, s, path)
	}
	if !strings.HasSuffix(read(t, path), line+"\n") {
		t.Fatalf("%s is not in %s", line, path)
	}
}

// From the failover the first folder is tried again every minute, until it is
// back.
func TestFailoverGoesHome(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, mode file.Mode, dir string) {
		path, other, second := twoFolders(t, dir)
		first, away := filepath.Dir(path), filepath.Join(dir, "away")
		link := filepath.Join(dir, "link")
		var heard told
		f := open(t, path, file.Options{Mode: mode, Failover: second, Link: link, OnError: heard.add})
		goesTo(t, f, path, "one")
		testkit.OK(t, os.Rename(first, away))
		f.FailWith(syscall.EIO)
		began := time.Now()
		at := func(d time.Duration) { time.Sleep(d - time.Since(began)) }
		goesTo(t, f, other, "two")
		at(61 * time.Second)
		goesTo(t, f, other, "three") // tried again, and still gone
		testkit.OK(t, os.Rename(away, first))
		at(119 * time.Second)
		goesTo(t, f, other, "four")
		at(122 * time.Second)
		goesTo(t, f, path, "five")
		want(t, link, read(t, path))
		goesTo(t, f, path, "six")
		if err := f.Close(); err != nil {
			t.Error(err)
		}
		f.Told()
		if s := f.Stats(); s.Failovers != 1 || s.Abandoned != 1 || strings.Count(heard.String(), "the lines go to "+other) != 1 || !strings.Contains(heard.String(), "the lines go to "+path+" again") {
			t.Errorf("Stats %+v, OnError got %s", s, heard.String())
		}
		want(t, other, "two\nthree\nfour\n")
		want(t, path, "one\nfive\nsix\n") // it could not be renamed
		ledger(f).CheckSettled(t, 6, 6)
	})
}

// The last word about where the lines go is right, also when they go back and
// forth within a minute. A place that takes nothing is not told.
func TestFailoverLastWord(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, mode file.Mode, dir string) {
		path, other, second := twoFolders(t, dir)
		var heard told
		f := open(t, path, file.Options{Mode: mode, Failover: second, NoFollow: true, OnError: heard.add})
		lines := 0
		next := func(to string) {
			t.Helper()
			lines++
			goesTo(t, f, to, fmt.Sprint(lines))
			f.Told()
			last := ""
			for _, said := range heard.all() {
				if strings.Contains(said, "the lines go to ") {
					last = strings.TrimSuffix(said, " again")
				}
			}
			if last != "" && !strings.HasSuffix(last, to) || last == "" && to != path {
				t.Errorf("line %d goes to %s, and OnError got %q last", lines, to, last)
			}
		}
		next(path)
		for range 3 {
			testkit.OK(t, f.Reopen())
			next(path)
			if err := f.Reopen(); err != nil { // a new file, which takes nothing
				t.Fatal(err)
			}
			first := filepath.Dir(path)
			testkit.OK(t, os.Rename(first, first+".away"))
			f.FailWith(syscall.EIO)
			next(other)
			testkit.OK(t, os.Rename(first+".away", first))
			time.Sleep(time.Second)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
		ledger(f).CheckSettled(t, lines, lines)
	})
}

// A folder that is taken away under the File: what would go to a file without a
// name goes to the failover.
func TestFailoverFromAFolderThatIsGone(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, mode file.Mode, dir string) {
		path, other, second := twoFolders(t, dir)
		var heard told
		f := open(t, path, file.Options{Mode: mode, Failover: second, OnError: heard.add})
		goesTo(t, f, path, "one")
		testkit.OK(t, os.RemoveAll(filepath.Dir(path)))
		lost := 0
		for f.Stats().Path == path && lost < 10 {
			time.Sleep(500 * time.Millisecond)
			write(t, f, "lost with the folder\n")
			lost++
		}
		if lost > 5 { // looked at once a second, and created again after one more
			t.Errorf("after %d half seconds the lines go to %s", lost, f.Stats().Path)
		}
		goesTo(t, f, other, "two")
		testkit.OK(t, os.Mkdir(filepath.Dir(path), 0o700))
		if err := f.Reopen(); err != nil {
			t.Error(err)
		}
		goesTo(t, f, path, "three")
		want(t, path, "three\n")
		if s := f.Stats(); s.Failovers != 1 {
			t.Errorf("Stats %+v, OnError got %s", s, heard.String())
		}
		ledger(f).CheckSettled(t, lost+3, lost+3)
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
}

// A folder that is gone when its file fails, and back later: by Reopen, or by the
// next Write.
func TestFailedFolderComesBack(t *testing.T) {
	t.Parallel()
	for _, reopen := range []bool{true, false} {
		eachMode(t, func(t *testing.T, mode file.Mode) {
			dir := t.TempDir()
			path, _, _ := twoFolders(t, dir)
			first, away := filepath.Dir(path), filepath.Join(dir, "away")
			f := open(t, path, file.Options{Mode: mode, NoFollow: true})
			write(t, f, "one\n")
			testkit.OK(t, os.Rename(first, away))
			f.FailWith(syscall.EIO)
			for range 3 {
				if n, err := f.Write([]byte("two\n")); n != 0 || !errors.Is(err, os.ErrNotExist) {
					t.Fatalf("Write = %d, %v", n, err)
				}
			}
			testkit.OK(t, os.Rename(away, first))
			if reopen {
				testkit.OK(t, f.Reopen())
			}
			write(t, f, "two\n")
			if err := f.Close(); err != nil {
				t.Error(err)
			}
			if got := all(t, path); got != "one\ntwo\n" {
				t.Errorf("the files hold %q", got)
			}
			ledger(f).CheckSettled(t, 2, 2)
		})
	}
}

// A file that fails after it took lines is left for a new one in the same folder;
// one that fails before, for the failover. Rotation and retention go on there.
func TestFailoverKeepsToItsFolder(t *testing.T) {
	t.Parallel()
	eachMode(t, func(t *testing.T, mode file.Mode) {
		path, other, second := twoFolders(t, t.TempDir())
		line := strings.Repeat("x", 99)
		testkit.OK(t, os.WriteFile(other, []byte(strings.Repeat(line+"\n", 19)), 0o600))
		f := open(t, path, file.Options{Mode: mode, MaxSize: 2000, KeepCount: 2, Folder: filepath.Dir(path), Failover: second, Compress: file.Gzip{}})
		goesTo(t, f, path, line)
		f.FailWith(syscall.EIO)
		goesTo(t, f, path, line) // after the first line, in another file
		f.FailWith(syscall.EIO)
		goesTo(t, f, path, line)
		if got := rotated(t, path); len(got) != 2 || f.Stats().Abandoned != 2 {
			t.Errorf("rotated %v, Stats %+v", got, f.Stats())
		}
		testkit.OK(t, f.Rotate())
		f.FailWith(syscall.EIO) // the new one has taken nothing
		for range 100 {
			goesTo(t, f, other, line)
		}
		testkit.OK(t, f.Close())
		names, contents := parts(t, other, nil)
		for i, c := range contents {
			if len(c) > 2000 {
				t.Errorf("%s has %d bytes", names[i], len(c))
			}
		}
		s := f.Stats()
		if len(names) != 3 || !strings.HasSuffix(names[0], ".gz") || s.Failovers != 1 || s.Rotations != 6 || s.Removed < 3 {
			t.Errorf("files %v, Stats %+v", names, s)
		}
		ledger(f).CheckSettled(t, 103, 103)
	})
}

// Where nothing works OnError is told once a minute, and not at each try.
func TestFailingIsToldSeldom(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, mode file.Mode, dir string) {
		path, _, second := twoFolders(t, dir)
		var heard told
		f := open(t, path, file.Options{Mode: mode, Sync: file.SyncEachWrite, Failover: second, OnError: heard.add})
		f.SetSync(func(*os.File) error { return syscall.EIO })
		for range 100 { // seconds
			if n, err := f.Write([]byte("line\n")); n != 0 || !errors.Is(err, syscall.EIO) {
				t.Fatalf("Write = %d, %v", n, err)
			}
			time.Sleep(time.Second)
		}
		f.Told()
		if n := len(heard.all()); n < 2 || n > 20 {
			t.Errorf("told %d times: %s", n, heard.String())
		}
		f.SetSync((*os.File).Sync)
		write(t, f, "line\n")
		if err := f.Close(); err != nil {
			t.Error(err)
		}
		if got := all(t, path) + all(t, filepath.Join(second, "log")); got != "line\n" {
			t.Errorf("the files hold %q", got)
		}
		ledger(f).CheckSettled(t, 1, 1)
	})
}

// What stands where Prepare said is found in the folder that was used then.
func TestHoldsAfterAFailover(t *testing.T) {
	t.Parallel()
	eachMode(t, func(t *testing.T, mode file.Mode) {
		path, other, second := twoFolders(t, t.TempDir())
		f := open(t, path, file.Options{Mode: mode, Failover: second})
		p := put(t, f, "at home\n")
		f.FailWith(syscall.ENOSPC)
		q := put(t, f, "away\n")
		p.in(t, f, len(p.data))
		q.in(t, f, len(q.data))
		want(t, other, "away\n")
		testkit.OK(t, f.Reopen())
		p.in(t, f, len(p.data))
		q.in(t, f, len(q.data))
	})
}

// What a write that failed has left after the end is removed, also whole lines,
// which are given again: by the next Write, by Close, by Reopen, and when the file
// is left.
func TestRestOfAFailedWriteIsCut(t *testing.T) {
	need(t, file.Direct)
	for name, then := range map[string]func(t *testing.T, f *file.File) error{
		"Write":  func(t *testing.T, f *file.File) error { write(t, f, "two\n"); return nil },
		"Close":  func(_ *testing.T, f *file.File) error { return f.Close() },
		"Rotate": func(_ *testing.T, f *file.File) error { return f.Rotate() },
		"Reopen": func(t *testing.T, f *file.File) error {
			testkit.OK(t, os.Rename(f.Name(), f.Name()+"-away"))
			return f.Reopen()
		},
		"another file": func(t *testing.T, f *file.File) error {
			f.FailWith(syscall.EIO)
			write(t, f, "two\n")
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			var heard told
			path := filepath.Join(t.TempDir(), "log")
			f := open(t, path, file.Options{Mode: file.Direct, OnError: heard.add})
			write(t, f, "one\n")
			appendTo(t, path, "two\nthr")
			f.WriteHasFailed()
			if err := then(t, f); err != nil {
				t.Error(err)
			}
			if err := f.Close(); err != nil {
				t.Error(err)
			}
			got := ""
			for _, name := range glob(t, path+"*") {
				got += fmt.Sprintf("%q ", read(t, name))
			}
			want := map[string]string{"Write": `"one\ntwo\n" `, "Close": `"one\n" `, "Rotate": `"" "one\n" `, "Reopen": `"" "one\n" `, "another file": `"two\n" "one\n" `}[name]
			f.Told()
			if got != want || strings.Contains(heard.String(), "someone else") {
				t.Errorf("the files hold %s, want %s; heard %s", got, want, heard.String())
			}
		})
	}
}

// appendTo appends to a file as another program does.
func appendTo(t *testing.T, path, text string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err == nil {
		_, err = f.WriteString(text)
		err = errors.Join(err, f.Close())
	}
	testkit.OK(t, err)
}

// A file that someone has cut after it was moved away is not made longer again when
// it is left, nor has it anything allocated after its end.
func TestFileCutBeforeItIsLeft(t *testing.T) {
	t.Parallel()
	eachMode(t, func(t *testing.T, mode file.Mode) {
		path := filepath.Join(t.TempDir(), "log")
		f := open(t, path, file.Options{Mode: mode})
		write(t, f, strings.Repeat("x", 9999)+"\n")
		moved := path + "-away"
		testkit.OK(t, errors.Join(os.Rename(path, moved), os.Truncate(moved, 7)))
		if err := f.Reopen(); err != nil {
			t.Error(err)
		}
		write(t, f, "line\n")
		if err := f.Close(); err != nil {
			t.Error(err)
		}
		if got := read(t, moved); got != "xxxxxxx" {
			t.Errorf("it was cut to 7 bytes and has %d", len(got))
		}
		for _, name := range []string{path, moved} {
			info, err := os.Stat(name)
			testkit.OK(t, err)
			if blocks := info.Sys().(*syscall.Stat_t).Blocks * 512; blocks > 32<<10 {
				t.Errorf("%s of %d bytes takes %d on the disk", name, info.Size(), blocks)
			}
		}
	})
}

// A path that names nothing any more is created again after a second, in which the
// program that moved the file may do it, and each time anew. Nor does it matter
// how often files are rotated meanwhile.
func TestGraceForWhoMovesTheFile(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, mode file.Mode, dir string) {
		path := filepath.Join(dir, "log")
		f := openChecking(t, path, file.Options{Mode: mode}, 100*time.Millisecond)
		at := func(d time.Duration, line string, there bool) {
			t.Helper()
			time.Sleep(d)
			write(t, f, line)
			if _, err := os.Stat(path); (err == nil) != there {
				t.Errorf("%s: Stat = %v", line, err)
			}
		}
		move := func(from, to string) {
			t.Helper()
			testkit.OK(t, os.Rename(from, to))
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
		testkit.OK(t, os.WriteFile(path, nil, 0o600))
		at(150*time.Millisecond, "who moved it made it\n", true)
		want(t, path+"-1", "missed\nmissed still\nback\nmissed again\nmissed still\n")
		want(t, path+"-2", "new\n")
		want(t, path, "who moved it made it\n")
		if s := f.Stats(); s.Reopens != 2 {
			t.Errorf("Stats %+v", s)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
}

// A path through a symbolic link to a folder: when the link is pointed at another
// folder, the lines follow, also while the file is rotated more often than it is
// looked at, and while the new folder has no file yet.
func TestFollowsAFoldersLink(t *testing.T) {
	t.Parallel()
	for _, there := range []bool{true, false} {
		inBubble(t, func(t *testing.T, mode file.Mode, dir string) {
			link := filepath.Join(dir, "current")
			path := filepath.Join(link, "log")
			for _, name := range []string{"one", "two"} {
				testkit.OK(t, os.Mkdir(filepath.Join(dir, name), 0o700))
			}
			testkit.OK(t, os.Symlink("one", link))
			f := open(t, path, file.Options{Mode: mode, MaxSize: 20})
			for range 10 {
				goesTo(t, f, path, "before")
				time.Sleep(100 * time.Millisecond)
			}
			if there {
				testkit.OK(t, os.WriteFile(filepath.Join(dir, "two", "log"), nil, 0o600))
			}
			testkit.OK(t, errors.Join(os.Symlink("two", link+"-new"), os.Rename(link+"-new", link)))
			for n := 0; all(t, filepath.Join(dir, "two", "log")) == ""; n++ {
				if n > 25 || there && n > 12 {
					t.Fatalf("after %d Writes, one every tenth of a second, the lines still go to the old folder", n)
				}
				write(t, f, "after\n")
				time.Sleep(100 * time.Millisecond)
			}
			goesTo(t, f, path, "last")
			want(t, filepath.Join(dir, "two", "log"), "after\nlast\n")
			if s := f.Stats(); s.Followed != 1 {
				t.Errorf("Stats %+v", s)
			}
			if err := f.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

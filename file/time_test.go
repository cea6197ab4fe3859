package file_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollway/rollway/file"
	"github.com/rollway/rollway/internal/testkit"
)

// In a bubble the clock begins at midnight UTC of 1 January 2000 and moves when
// everything waits.

// bubble runs check with a File at path in virtual time.
func bubble(t *testing.T, o file.Options, check func(t *testing.T, path string, f *file.File)) {
	path := filepath.Join(t.TempDir(), "log")
	synctest.Test(t, func(t *testing.T) {
		f := open(t, path, o)
		check(t, path, f)
		if err := f.Close(); err != nil {
			t.Errorf("Close = %v", err)
		}
	})
}

func TestRotateByInterval(t *testing.T) {
	bubble(t, file.Options{Every: time.Hour}, func(t *testing.T, path string, f *file.File) {
		for i := range 10 {
			write(t, f, fmt.Sprintf("line %d\n", i))
			time.Sleep(25 * time.Minute)
		}
		_, got := parts(t, path, nil)
		want := []string{"line 0\nline 1\nline 2\n", "line 3\nline 4\n", "line 5\nline 6\nline 7\n", "line 8\nline 9\n"}
		if !slices.Equal(got, want) {
			t.Errorf("parts %q, want %q", got, want)
		}
		// Two hours without a line: one rotation, no empty file.
		time.Sleep(2 * time.Hour)
		write(t, f, "late\n")
		if _, got := parts(t, path, nil); !slices.Equal(got, append(want, "late\n")) {
			t.Errorf("parts %q", got)
		}
		ledger(f).CheckSettled(t, 11, 11)
	})
}

func TestRotateDaily(t *testing.T) {
	zone := time.FixedZone("", -5*3600) // midnight is 05:00 UTC
	for _, c := range []struct {
		loc  *time.Location
		want []string
	}{
		{nil, []string{"2000-01-01T00\n2000-01-01T04\n2000-01-01T08\n2000-01-01T12\n2000-01-01T16\n2000-01-01T20\n", "2000-01-02T00\n2000-01-02T04\n2000-01-02T08\n"}},
		{zone, []string{"2000-01-01T00\n2000-01-01T04\n", "2000-01-01T08\n2000-01-01T12\n2000-01-01T16\n2000-01-01T20\n2000-01-02T00\n2000-01-02T04\n", "2000-01-02T08\n"}},
	} {
		bubble(t, file.Options{Every: 24 * time.Hour, Location: c.loc}, func(t *testing.T, path string, f *file.File) {
			for range 9 {
				write(t, f, time.Now().UTC().Format("2006-01-02T15\n"))
				time.Sleep(4 * time.Hour)
			}
			names, got := parts(t, path, nil)
			if !slices.Equal(got, c.want) {
				t.Errorf("in %v: parts %q, want %q", c.loc, got, c.want)
			}
			if want := map[bool]string{true: "log-20000102T000000.000000000Z-", false: "log-20000101T030000.000000000-0500-"}[c.loc == nil]; !strings.HasPrefix(filepath.Base(names[0]), want) {
				t.Errorf("in %v: name %s, want %s…", c.loc, names[0], want)
			}
		})
	}
}

// Size and time at once: whichever comes first.
func TestRotateBySizeAndTime(t *testing.T) {
	bubble(t, file.Options{MaxSize: 20, Every: time.Hour}, func(t *testing.T, path string, f *file.File) {
		for _, line := range []string{"12345678\n", "12345678\n", "third\n"} {
			write(t, f, line)
		}
		time.Sleep(time.Hour)
		write(t, f, "fourth\n")
		want := []string{"12345678\n12345678\n", "third\n", "fourth\n"}
		if _, got := parts(t, path, nil); !slices.Equal(got, want) {
			t.Errorf("parts %q, want %q", got, want)
		}
	})
}

// A file that an earlier process left is of the time of its last line.
func TestFileOfYesterdayIsRotated(t *testing.T) {
	for age, rotated := range map[time.Duration]bool{26 * time.Hour: true, time.Second: true, 0: false} {
		path := filepath.Join(t.TempDir(), "log")
		synctest.Test(t, func(t *testing.T) {
			testkit.OK(t, os.WriteFile(path, []byte("old\n"), 0o600))
			at := time.Now().Add(-age) // it is midnight
			testkit.OK(t, os.Chtimes(path, at, at))
			f := open(t, path, file.Options{Every: 24 * time.Hour})
			defer f.Close()
			write(t, f, "new\n")
			want := []string{"old\nnew\n"}
			if rotated {
				want = []string{"old\n", "new\n"}
			}
			if _, got := parts(t, path, nil); !slices.Equal(got, want) {
				t.Errorf("a file %v old: parts %q, want %q", age, got, want)
			}
		})
	}
}

// What is older than KeepAge goes without a Write or a rotation.
func TestKeepAge(t *testing.T) {
	bubble(t, file.Options{Every: 24 * time.Hour, KeepAge: 72 * time.Hour}, func(t *testing.T, path string, f *file.File) {
		for i := range 6 {
			write(t, f, fmt.Sprintf("day %d\n", i))
			time.Sleep(24 * time.Hour)
		}
		synctest.Wait()
		want := []string{"day 3\n", "day 4\n", "day 5\n"} // day 2 ended 72 hours ago
		if _, got := parts(t, path, nil); !slices.Equal(got, want) {
			t.Errorf("parts %q, want %q", got, want)
		}
		time.Sleep(10 * 24 * time.Hour)
		synctest.Wait()
		if _, got := parts(t, path, nil); !slices.Equal(got, want[2:]) {
			t.Errorf("parts %q, want %q", got, want[2:])
		}
		if s := f.Stats(); s.Removed != 5 || s.RemovedBytes != 30 {
			t.Errorf("Stats = %+v", s)
		}
	})
}

// Interval: one fsync in each interval in which lines came, none while Writes
// wait, and one more in Close.
func TestSyncByInterval(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	synctest.Test(t, func(t *testing.T) {
		f := open(t, path, file.Options{Sync: file.SyncInterval, SyncEvery: time.Minute})
		syncs := func(want uint64) {
			t.Helper()
			synctest.Wait()
			if got := f.Stats().Syncs; got != want {
				t.Errorf("%d calls of fsync, want %d", got, want)
			}
		}
		time.Sleep(time.Hour)
		syncs(0)
		for range 10 {
			write(t, f, "line\n")
		}
		syncs(0)
		time.Sleep(61 * time.Second)
		syncs(1)
		time.Sleep(time.Hour)
		syncs(1)
		write(t, f, "line\n")
		time.Sleep(time.Hour)
		syncs(2)
		if err := f.Rotate(); err != nil { // the rotated file once more
			t.Fatal(err)
		}
		syncs(3)
		write(t, f, "line\n")
		if err := f.Close(); err != nil {
			t.Error(err)
		}
		syncs(4)
	})
}

// With Never, Sync reaches the files that were rotated since.
func TestSyncCoversRotatedFiles(t *testing.T) {
	for policy, want := range map[file.SyncPolicy]uint64{file.SyncNever: 4, file.SyncEachWrite: 4} {
		f := open(t, filepath.Join(t.TempDir(), "log"), file.Options{Sync: policy})
		for range 3 {
			write(t, f, "line\n")
			testkit.OK(t, f.Rotate())
		}
		testkit.OK(t, f.Sync())
		if got := f.Stats().Syncs; got != want {
			t.Errorf("%v: %d calls of fsync, want %d", policy, got, want)
		}
	}
}

// The path is looked at once a second, and a file that is gone is made
// anew after a grace.
func TestFollowsByTime(t *testing.T) {
	bubble(t, file.Options{}, func(t *testing.T, path string, f *file.File) {
		write(t, f, "1\n")
		testkit.OK(t, os.Rename(path, path+".1"))
		write(t, f, "2\n") // not looked yet
		time.Sleep(time.Second)
		write(t, f, "3\n") // seen for the first time
		time.Sleep(999 * time.Millisecond)
		write(t, f, "4\n")
		want(t, path+".1", "1\n2\n3\n4\n")
		time.Sleep(time.Millisecond)
		write(t, f, "5\n")
		want(t, path, "5\n")
		if s := f.Stats(); s.Followed != 1 || s.Reopens != 1 {
			t.Errorf("Stats = %+v", s)
		}
	})
}

func TestNeverFollows(t *testing.T) {
	bubble(t, file.Options{NoFollow: true}, func(t *testing.T, path string, f *file.File) {
		write(t, f, "1\n")
		testkit.OK(t, os.Rename(path, path+".1"))
		time.Sleep(24 * time.Hour)
		write(t, f, "2\n")
		want(t, path+".1", "1\n2\n")
	})
}

package journal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollway/rollway/internal/disk"
	"github.com/rollway/rollway/internal/recordlog"
	"github.com/rollway/rollway/internal/testkit"
)

func synced(from, n int) Batch {
	b := lines(from, n)
	b.Synced = true
	return b
}

// Whatever others do to the file that is written, the next synced batch is not acknowledged,
// nothing more is stored until Check has saved what the descriptor has, and no acknowledged
// line is lost.
func TestTakenAway(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("an open file cannot be taken away there")
	}
	for name, take := range map[string]func(path string) error{
		"removed": os.Remove,
		"moved":   func(path string) error { return os.Rename(path, path+".elsewhere") },
		"replaced": func(path string) error {
			return errors.Join(os.Remove(path), os.WriteFile(path, []byte("an older one"), 0o640))
		},
		"linked":        func(path string) error { return errors.Join(os.Remove(path), os.Symlink("/dev/null", path)) },
		"with a folder": func(path string) error { return errors.Join(os.Remove(path), os.Mkdir(path, 0o750)) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			var found []Finding
			j := mustOpen(t, dir, Options{OnFinding: func(f Finding) { found = append(found, f) }})
			mustAppend(t, j, synced(0, 2))
			path := filepath.Join(dir, segmentName(0, extOpen))
			testkit.OK(t, take(path))
			_, err := j.Append(t.Context(), synced(2, 1))
			if !errors.Is(err, ErrTakenAway) {
				t.Fatalf("a synced batch: %v", err)
			}
			stored := 2
			if errors.Is(err, ErrNotSynced) { // else maintenance has looked before
				stored = 3
			}
			if _, err := j.Append(t.Context(), lines(3, 1)); !errors.Is(err, ErrTakenAway) || errors.Is(err, ErrNotSynced) {
				t.Fatalf("a buffered batch: %v", err)
			}
			if err := j.Lost(); !errors.Is(err, ErrTakenAway) {
				t.Fatal(err)
			}
			testkit.OK(t, j.Check())
			if len(found) != 1 || found[0].Kind != recordlog.Gone {
				t.Errorf("findings %v", found)
			}
			mustAppend(t, j, synced(stored, 1))
			if offsets, gaps := readAll(t, j); !slices.Equal(offsets, upTo(uint64(stored)+1)) || len(gaps) > 0 {
				t.Errorf("read %v, gaps %v", offsets, gaps)
			}
			testkit.OK(t, j.Close())
			again := mustOpen(t, dir, Options{})
			defer again.Close()
			if offsets, gaps := readAll(t, again); !slices.Equal(offsets, upTo(uint64(stored)+1)) || len(gaps) > 0 {
				t.Errorf("after a restart: read %v, gaps %v", offsets, gaps)
			}
		})
	}
}

// Nothing is done in a folder that has replaced the journal's, not even as
// segments age.
func TestFolderOfOthers(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("an open folder cannot be moved there")
	}
	synctest.Test(t, func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "journal")
		j := mustOpen(t, dir, Options{SegmentBytes: 20_000, RetainAge: time.Hour, Pack: true, Scrub: time.Hour, Tenants: map[string]Retention{"": {}}})
		for i := range 100 {
			mustAppend(t, j, lines(10*i, 10))
			synctest.Wait()
		}
		if st := j.Stats(); st.PackedSegments < 2 {
			t.Fatalf("%+v", st)
		}
		testkit.OK(t, errors.Join(os.Rename(dir, dir+".elsewhere"), os.CopyFS(dir, os.DirFS(dir+".elsewhere")),
			os.Remove(filepath.Join(dir, segmentName(0, extSealed)))))
		before := folder(t, dir)
		if err := j.Look(); !errors.Is(err, ErrTakenAway) {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Hour)
		wake(j.kickPacker)
		synctest.Wait()
		if after := folder(t, dir); !maps.Equal(after, before) || len(j.Findings()) > 0 {
			t.Errorf("%d files, were %d; findings %v", len(after), len(before), j.Findings())
		}
		if err := j.Close(); err != nil && !errors.Is(err, ErrTakenAway) {
			t.Error(err)
		}
	})
}

// folder returns the files in dir.
func folder(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	entries, err := os.ReadDir(dir)
	testkit.OK(t, err)
	for _, e := range entries {
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		testkit.OK(t, err)
		files[e.Name()] = string(text)
	}
	return files
}

// A file that others cut and fill up again has lost lines, whatever its size is: the next
// synced batch is not acknowledged, the loss is reported, and later lines go to a new segment.
func TestRefilledWhileWritten(t *testing.T) {
	for name, c := range map[string]struct {
		keep   int64 // bytes of the file that are not cut
		refill int64 // bytes that it has then; 0: the journal fills it up
	}{
		"cut alone":               {-5, 0},
		"cut in a frame before":   {-200, 0},
		"cut to nothing":          {0, 0},
		"filled up":               {-5, -1},
		"filled up, and more":     {-200, 10_000},
		"filled up, from nothing": {0, 10_000},
	} {
		for _, withSync := range []bool{true, false} {
			t.Run(fmt.Sprint(name, withSync), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { // in which no second passes
					dir := t.TempDir()
					var found []Finding
					j := mustOpen(t, dir, Options{OnFinding: func(f Finding) { found = append(found, f) }})
					mustAppend(t, j, synced(0, 2))
					mustAppend(t, j, synced(2, 2))
					path := filepath.Join(dir, segmentName(0, extOpen))
					info, err := os.Stat(path)
					testkit.OK(t, err)
					synctest.Wait() // the maintenance of the start
					if c.keep < 0 {
						c.keep += info.Size()
					}
					if c.refill < 0 {
						c.refill = info.Size()
					}
					testkit.OK(t, os.Truncate(path, c.keep))
					if c.refill > 0 {
						testkit.OK(t, os.Truncate(path, c.refill))
					}
					batch := lines(4, 1)
					batch.Synced = withSync
					if _, err := j.Append(t.Context(), batch); withSync != errors.Is(err, ErrTakenAway) {
						t.Fatalf("the next batch: %v", err)
					}
					if err := j.Look(); !errors.Is(err, ErrTakenAway) {
						t.Fatalf("looked: %v", err)
					}
					if _, err := j.Append(t.Context(), lines(5, 1)); !errors.Is(err, ErrTakenAway) {
						t.Fatalf("the one after it: %v", err)
					}
					testkit.OK(t, j.Check())
					if len(found) != 1 || found[0].Kind != recordlog.Damaged || len(j.Findings()) != 1 {
						t.Errorf("findings %v and %v", found, j.Findings())
					}
					if first := mustAppend(t, j, synced(5, 1)); first != 5 {
						t.Errorf("the next offset is %d", first)
					}
					j.Close()
					again := mustOpen(t, dir, Options{})
					defer again.Close()
					if offsets, _ := readAll(t, again); !slices.Contains(offsets, 4) || !slices.Contains(offsets, 5) || slices.Contains(offsets, 3) {
						t.Errorf("read %v", offsets)
					}
				})
			})
		}
	}
}

// Batches that come between a cut and the next look do not hide it, wherever between them it was
// made, and without a look or a synced batch it is found once mostTail bytes are written.
func TestRefilledLongAgo(t *testing.T) {
	for _, before := range []int{0, 1, 3} { // batches since what was compared
		for name, notice := range map[string]func(j *Journal) error{
			"look":   (*Journal).Look,
			"synced": func(j *Journal) error { _, err := j.Append(context.Background(), synced(50, 1)); return err },
			"write": func(j *Journal) (err error) {
				most := j.Stats().Bytes + mostTail + 1000
				for err == nil && j.Stats().Bytes < most {
					_, err = j.Append(context.Background(), lines(50, 5))
				}
				return err
			},
		} {
			t.Run(fmt.Sprint(before, name), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { // in which no second passes
					dir := t.TempDir()
					j := mustOpen(t, dir, Options{})
					defer j.Close()
					mustAppend(t, j, synced(0, 2))
					synctest.Wait() // the maintenance of the start
					testkit.OK(t, j.Look())
					for i := range before {
						mustAppend(t, j, lines(2+i, 1))
					}
					path := filepath.Join(dir, segmentName(0, extOpen))
					info, err := os.Stat(path)
					testkit.OK(t, errors.Join(err, os.Truncate(path, info.Size()-3)))
					for i := range 10 {
						mustAppend(t, j, lines(2+before+i, 1))
					}
					if err := notice(j); !errors.Is(err, ErrTakenAway) {
						t.Fatalf("noticed: %v", err)
					}
				})
			})
		}
	}
}

// What was compared is not read again: of a file that is looked at and synced there is never more to
// compare than what was written since.
func TestComparedOnce(t *testing.T) {
	j := mustOpen(t, t.TempDir(), Options{})
	defer j.Close()
	left := func() (tail, int64) {
		j.mu.Lock()
		defer j.mu.Unlock()
		return j.segs[0].tail, j.segs[0].size
	}
	for i, notice := range []func() error{j.Look, j.Sync} {
		mustAppend(t, j, lines(i, 1))
		testkit.OK(t, notice())
		if left, size := left(); left.to-left.from != tailBytes || left.to != size {
			t.Errorf("%+v of %d bytes", left, size)
		}
	}
	for i := range 200 {
		batch := lines(2+i, 1+i%7*20)
		batch.Synced = i%9 == 0
		mustAppend(t, j, batch)
		if left, _ := left(); left.to-left.from > mostTail {
			t.Fatalf("%+v", left)
		}
	}
	testkit.OK(t, j.Look())
}

// A process that goes on with the file of an earlier one knows how that ended, and a file without
// records how its header did.
func TestRefilledBeforeWritten(t *testing.T) {
	for _, records := range []int{0, 4} {
		t.Run(fmt.Sprint(records), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { // in which no second passes
				dir := t.TempDir()
				j := mustOpen(t, dir, Options{})
				mustAppend(t, j, synced(0, 4))
				testkit.OK(t, j.Close())
				path := filepath.Join(dir, segmentName(0, extOpen))
				if records == 0 {
					testkit.OK(t, os.Truncate(path, segmentHeaderSize)) // as a process that was killed leaves it
				}
				var found []Finding
				j = mustOpen(t, dir, Options{OnFinding: func(f Finding) { found = append(found, f) }})
				found = found[:0]
				info, err := os.Stat(filepath.Join(dir, segmentName(j.Next(), extOpen)))
				if records > 0 {
					info, err = os.Stat(path)
				}
				testkit.OK(t, err)
				path = filepath.Join(dir, info.Name())
				synctest.Wait() // the maintenance of the start
				testkit.OK(t, errors.Join(os.Truncate(path, 0), os.Truncate(path, info.Size())))
				first := j.Next()
				if _, err := j.Append(t.Context(), synced(4, 1)); !errors.Is(err, ErrTakenAway) {
					t.Fatalf("the next batch: %v", err)
				}
				testkit.OK(t, j.Check())
				if len(found) != 1 || found[0].Kind != recordlog.Damaged {
					t.Errorf("findings %v", found)
				}
				if next := mustAppend(t, j, synced(5, 1)); next != first+1 {
					t.Errorf("the next offset is %d, was %d", next, first)
				}
				testkit.OK(t, j.Close())
			})
		})
	}
}

// A file that others cut has lost lines: that is reported, and later ones go to a new segment.
func TestCutWhileWritten(t *testing.T) {
	dir := t.TempDir()
	found := make(chan Finding, 10)
	j := mustOpen(t, dir, Options{OnFinding: func(f Finding) { found <- f }})
	mustAppend(t, j, synced(0, 2))
	mustAppend(t, j, synced(2, 2))
	path := filepath.Join(dir, segmentName(0, extOpen))
	info, err := os.Stat(path)
	testkit.OK(t, err)
	testkit.OK(t, os.Truncate(path, info.Size()-5))
	if err := j.Look(); !errors.Is(err, ErrTakenAway) {
		t.Fatal(err)
	}
	testkit.OK(t, j.Check())
	for f := range found {
		if f.Kind == recordlog.Shorter {
			break
		}
		if f.Kind != recordlog.Damaged { // which who packs the segment finds
			t.Errorf("found %v", f)
		}
	}
	if first := mustAppend(t, j, synced(4, 1)); first != 4 {
		t.Errorf("the next offset is %d", first)
	}
	j.Close()
	again := mustOpen(t, dir, Options{})
	defer again.Close()
	if offsets, gaps := readAll(t, again); !slices.Equal(offsets, []uint64{0, 1, 4}) || again.Stats().MissedRecords != 2 {
		t.Errorf("read %v, gaps %v", offsets, gaps)
	}
}

// A file that has the name of the next segment, and is not the journal's, is kept and reported.
func TestNextNameIsTaken(t *testing.T) {
	for name, planted := range map[string]string{"a segment of others": strings.Repeat("evidence\n", 20), "what a failed creation leaves": "\x89RWJ"} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			var found []Finding
			j := mustOpen(t, dir, Options{SegmentBytes: 1, OnFinding: func(f Finding) { found = append(found, f) }})
			defer j.Close()
			mustAppend(t, j, lines(0, 2))
			path := filepath.Join(dir, segmentName(2, extOpen))
			testkit.OK(t, os.WriteFile(path, []byte(planted), 0o640))
			mustAppend(t, j, lines(2, 2))
			kept, err := os.ReadFile(path + recordlog.ExtBad)
			if len(planted) <= segmentHeaderSize {
				if !errors.Is(err, fs.ErrNotExist) || len(found) > 0 {
					t.Errorf("set aside %q, %v, findings %v", kept, err, found)
				}
			} else if string(kept) != planted || err != nil || len(found) != 1 || found[0].Kind != recordlog.Swapped || len(j.Findings()) != 1 {
				t.Errorf("set aside %q, %v, findings %v and %v", kept, err, found, j.Findings())
			}
			if offsets, gaps := readAll(t, j); !slices.Equal(offsets, upTo(4)) || len(gaps) > 0 {
				t.Errorf("read %v, gaps %v", offsets, gaps)
			}
		})
	}
}

// Close saves, too, and a file that is put back is written on.
func TestTakenAwayAtTheEnd(t *testing.T) {
	dir := t.TempDir()
	j := mustOpen(t, dir, Options{})
	mustAppend(t, j, synced(0, 2))
	path := filepath.Join(dir, segmentName(0, extOpen))
	testkit.OK(t, os.Rename(path, path+".away"))
	if err := j.Look(); err == nil {
		t.Error("nothing is lost")
	}
	testkit.OK(t, os.Rename(path+".away", path))
	testkit.OK(t, j.Look())
	mustAppend(t, j, synced(2, 1))
	testkit.OK(t, os.Remove(path))
	testkit.OK(t, j.Close())
	again := mustOpen(t, dir, Options{})
	defer again.Close()
	if offsets, gaps := readAll(t, again); !slices.Equal(offsets, upTo(3)) || len(gaps) > 0 {
		t.Errorf("read %v, gaps %v", offsets, gaps)
	}
}

// A folder that was removed is made again with what was being written, and nothing is stored
// in it until a restart; one that was replaced is not touched.
func TestFolderTakenAway(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "journal")
	j := mustOpen(t, dir, Options{})
	id := j.ID()
	mustAppend(t, j, synced(0, 2))
	testkit.OK(t, os.Rename(dir, dir+".away"))
	testkit.OK(t, os.Mkdir(dir, 0o750))
	if err := j.Check(); !errors.Is(err, ErrTakenAway) {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "0*"))
	if len(files) > 0 || err != nil {
		t.Fatalf("in the other folder: %v, %v", files, err)
	}
	testkit.OK(t, errors.Join(os.RemoveAll(dir), os.Rename(dir+".away", dir)))
	testkit.OK(t, j.Check())
	mustAppend(t, j, synced(2, 1))
	testkit.OK(t, os.Rename(dir, dir+".away")) // or the journal may see a folder that is half empty
	for os.RemoveAll(dir+".away") != nil {     // a manifest may just be written
	}
	for range 2 {
		if err := j.Check(); !errors.Is(err, ErrTakenAway) {
			t.Fatal(err)
		}
	}
	if _, err := j.Append(t.Context(), lines(3, 1)); !errors.Is(err, ErrTakenAway) {
		t.Fatal(err)
	}
	j.Close()
	again := mustOpen(t, dir, Options{})
	defer again.Close()
	if offsets, gaps := readAll(t, again); !slices.Equal(offsets, upTo(3)) || len(gaps) > 0 || again.ID() != id {
		t.Errorf("read %v, gaps %v, identity %s, was %s", offsets, gaps, again.ID(), id)
	}
}

// No second process may open the folder, under whatever name, and without LOCK.
func TestTwoProcesses(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("folders cannot be locked there")
	}
	dir := filepath.Join(t.TempDir(), "journal")
	j := mustOpen(t, dir, Options{})
	defer j.Close()
	mustAppend(t, j, synced(0, 1))
	second := func(dir string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^$")
		cmd.Env = append(os.Environ(), "JOURNAL_TEST_CHILD="+dir)
		if out, err := cmd.CombinedOutput(); err == nil || !bytes.Contains(out, []byte("in use by another process")) {
			t.Errorf("a second process: %v, %s", err, out)
		}
	}
	second(dir)
	testkit.OK(t, os.Remove(filepath.Join(dir, recordlog.LockName)))
	second(dir)
	if used, err := recordlog.InUse(dir); !used || err != nil {
		t.Errorf("without LOCK in use is %v, %v", used, err)
	}
	testkit.OK(t, os.Rename(dir, dir+"2"))
	second(dir + "2")
	testkit.OK(t, os.Symlink(dir+"2", dir))
	second(dir)
	testkit.OK(t, os.Remove(dir))
	mounted := t.TempDir()
	if exec.Command("mount", "--bind", dir+"2", mounted).Run() == nil {
		defer exec.Command("umount", mounted).Run()
		second(mounted)
	}
	testkit.OK(t, os.Rename(dir+"2", dir))
	testkit.OK(t, j.Look())
	// The segment is locked, too.
	f, err := disk.Real{}.OpenFile(filepath.Join(dir, segmentName(0, extOpen)), os.O_RDWR, 0)
	testkit.OK(t, err)
	defer f.Close()
	if err := f.TryLock(); !errors.Is(err, disk.ErrLocked) {
		t.Errorf("the open segment: %v", err)
	}
}

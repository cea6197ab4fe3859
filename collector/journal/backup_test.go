package journal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rollway/rollway/internal/disk"
	"github.com/rollway/rollway/internal/disktest"
	"github.com/rollway/rollway/internal/recordlog"
	"github.com/rollway/rollway/internal/testkit"
)

func waitUntil(t *testing.T, is func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("not within a minute")
		}
	}
}

// backUp writes a copy of j to a new folder of fsys.
func backUp(j *Journal, fsys disk.FS, dir string) (first, next uint64, err error) {
	return j.Backup(func(f *BackupFile) error {
		path := filepath.Join(dir, filepath.FromSlash(f.Name))
		if err := fsys.MkdirAll(filepath.Dir(path), 0o750); err != nil {
			return err
		}
		content, err := io.ReadAll(io.NewSectionReader(f.Content, 0, f.Size))
		if err != nil || int64(len(content)) != f.Size {
			return fmt.Errorf("%s has %d bytes of %d: %w", f.Name, len(content), f.Size, err)
		}
		file, err := fsys.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o640)
		if err == nil {
			_, err = file.WriteAt(content, 0)
			err = errors.Join(err, file.Close())
		}
		return err
	})
}

// recordsOf returns the record numbers of j by their offsets.
func recordsOf(t *testing.T, j *Journal) map[uint64]int {
	t.Helper()
	got := map[uint64]int{}
	r := j.NewReader(j.First())
	defer r.Close()
	for {
		f, ok, err := r.TryNext()
		testkit.OK(t, err)
		if !ok {
			return got
		}
		offset := f.First
		for line := range strings.Lines(string(f.Lines)) {
			n, err := recordNumber(line)
			testkit.OK(t, err)
			got[offset] = n
			offset++
		}
	}
}

// Copies are taken while others append, segments are sealed and packed and, in one of the cases,
// retention deletes. Each has all that was stored before it, once, opens as a journal that was
// closed, and knows the keys.
func TestBackupUnderLoad(t *testing.T) {
	for _, retain := range []int64{0, 60_000} {
		t.Run(fmt.Sprint(retain), func(t *testing.T) {
			t.Parallel()
			o := Options{SegmentBytes: 8000, MaxGroupBytes: 1000, Pack: true, RetainBytes: retain}
			j := mustOpen(t, t.TempDir(), o)
			c, err := j.OpenCursor("kafka", false)
			testkit.OK(t, err)
			var mu sync.Mutex
			stored := map[uint64]int{} // by offset
			keys := map[int]uint64{}
			var count atomic.Uint64
			stop := make(chan struct{})
			var writers sync.WaitGroup
			for w := range 4 {
				writers.Go(func() {
					for i := w; ; i += 4 {
						select {
						case <-stop:
							return
						default:
						}
						receipt, err := appendKeyed(j, i)
						if err != nil {
							t.Error(err)
							return
						}
						n := i%4 + 1
						if i%8 == 7 {
							n = 30
						}
						mu.Lock()
						for k := range n {
							stored[receipt.First+uint64(k)] = 100*i + k
						}
						keys[i] = receipt.First
						mu.Unlock()
						count.Add(1)
						if w == 0 && i%20 == 0 {
							if err := c.Save(receipt.First); err != nil {
								t.Error(err)
							}
						}
					}
				})
			}
			type copied struct {
				dir         string
				first, next uint64
				before      int // batches that were stored before it
			}
			var copies []copied
			for i := range 6 {
				waitUntil(t, func() bool { return count.Load() >= uint64(150*(i+1)) || t.Failed() })
				mu.Lock()
				before := len(stored)
				mu.Unlock()
				to := copied{dir: filepath.Join(t.TempDir(), "copy"), before: before}
				to.first, to.next, err = backUp(j, disk.Real{}, to.dir)
				testkit.OK(t, err)
				copies = append(copies, to)
			}
			close(stop)
			writers.Wait()
			for _, to := range copies {
				audit, err := Audit(to.dir, AuditOptions{})
				testkit.OK(t, err)
				if len(audit.Findings) > 0 || audit.First != to.first || audit.Next != to.next || uint64(audit.Records) != to.next-to.first {
					t.Errorf("copy of [%d, %d): %+v", to.first, to.next, audit)
				}
				again := mustOpen(t, to.dir, Options{}) // which deletes nothing
				checkKinds(t, again, []FindingKind{})
				if again.ID() != j.ID() || again.Next() != to.next || to.next < uint64(to.before) || retain == 0 && to.first != 0 {
					t.Errorf("journal %s to offset %d, want %s to %d; %d records were stored before", again.ID(), again.Next(), j.ID(), to.next, to.before)
				}
				got := recordsOf(t, again)
				for offset := again.First(); offset < to.next; offset++ {
					if n, ok := got[offset]; !ok || n != stored[offset] {
						t.Fatalf("offset %d has record %d, %v, want %d", offset, n, ok, stored[offset])
					}
				}
				for i, first := range keys {
					if first < again.First() || first >= to.next {
						continue
					}
					if r, err := appendKeyed(again, i); err != nil || !r.Duplicate || r.First != first {
						t.Fatalf("batch %d sent again: %+v, %v, want it to be known at %d", i, r, err, first)
					}
				}
				kept, err := again.OpenCursor("kafka", false)
				testkit.OK(t, err)
				if kept.Offset() > to.next || kept.Reset() != "" && retain == 0 {
					t.Errorf("cursor at %d, %s", kept.Offset(), kept.Reset())
				}
				testkit.OK(t, again.Close())
			}
		})
	}
}

// Retention does not wait for a copy that takes long: what it deletes is left out.
func TestBackupHoldsNothing(t *testing.T) {
	mem := disktest.NewMem()
	o := Options{Disk: mem, SegmentBytes: 2000, RetainBytes: 20_000}
	j := mustOpen(t, "/j", o)
	for i := range 200 {
		mustAppend(t, j, lines(i, 1))
	}
	waitUntil(t, func() bool { return j.First() > 0 && j.nextRetired() == nil })
	before, held := j.First(), false
	copyOf := disktest.NewMem()
	var got []string
	first, next, err := j.Backup(func(f *BackupFile) error {
		got = append(got, f.Name)
		if !held { // while the newest is read, half of the others go
			held = true
			for i := 200; j.First() < before+60; i++ {
				mustAppend(t, j, lines(i, 1))
				runtime.Gosched()
			}
		}
		content := make([]byte, f.Size)
		_, err := f.Content.ReadAt(content, 0)
		testkit.OK(t, errors.Join(copyOf.MkdirAll(filepath.Dir("/c/"+f.Name), 0o750), copyOf.WriteFile("/c/"+f.Name, content)))
		return err
	})
	testkit.OK(t, err)
	if first < before+60 || next != 200 || !slices.IsSortedFunc(got[:len(got)-3], func(a, b string) int { return -strings.Compare(a, b) }) {
		t.Errorf("[%d, %d) of %q; the first offset was %d", first, next, got, before)
	}
	again := mustOpen(t, "/c", Options{Disk: copyOf})
	checkKinds(t, again, []FindingKind{})
	if records := recordsOf(t, again); again.First() != first || uint64(len(records)) != next-first {
		t.Errorf("%d records from %d on", len(records), again.First())
	}
}

// A copy of a journal that others have damaged says so as the journal does; one whose files are
// taken away, or that is closed, is not copied.
func TestBackupOfDamage(t *testing.T) {
	dir := t.TempDir()
	j := mustOpen(t, dir, Options{SegmentBytes: 1000})
	for i := range 100 {
		mustAppend(t, j, lines(i, 1))
	}
	waitUntil(t, func() bool { return j.nextRetired() == nil })
	files, err := filepath.Glob(filepath.Join(dir, "*.seg"))
	testkit.OK(t, err)
	content, err := os.ReadFile(files[1])
	testkit.OK(t, err)
	at := 200 + rand.IntN(300)
	content[at] ^= 1
	testkit.OK(t, errors.Join(os.WriteFile(files[1], content, 0o600), os.Remove(files[3])))
	to := filepath.Join(t.TempDir(), "copy")
	_, next, err := backUp(j, disk.Real{}, to)
	testkit.OK(t, err)
	copied, err := os.ReadFile(filepath.Join(to, filepath.Base(files[1])))
	testkit.OK(t, err)
	if next != 100 || !bytes.Equal(copied, content) {
		t.Errorf("up to %d; the damage at %d is not copied", next, at)
	}
	again := mustOpen(t, to, Options{})
	checkKinds(t, again, []FindingKind{recordlog.Missing})

	testkit.OK(t, os.Rename(dir, dir+".away"))
	if _, _, err := backUp(j, disk.Real{}, filepath.Join(t.TempDir(), "x")); !errors.Is(err, ErrTakenAway) {
		t.Errorf("a journal without its folder: %v", err)
	}
	testkit.OK(t, os.Rename(dir+".away", dir))
	testkit.OK(t, j.Close())
	if _, _, err := backUp(j, disk.Real{}, filepath.Join(t.TempDir(), "x")); !errors.Is(err, os.ErrClosed) {
		t.Errorf("a closed journal: %v", err)
	}
	empty := mustOpen(t, t.TempDir(), Options{})
	first, next, err := backUp(empty, disk.Real{}, filepath.Join(to, "empty"))
	if first != 0 || next != 0 || err != nil {
		t.Errorf("an empty journal: [%d, %d), %v", first, next, err)
	}
	fresh := mustOpen(t, filepath.Join(to, "empty"), Options{})
	checkKinds(t, fresh, []FindingKind{})
	if n, err := fresh.Append(context.Background(), lines(0, 1)); n != 0 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
}

//go:build unix

package journal

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rollway/rollway/internal/disk"
	"github.com/rollway/rollway/internal/recordlog"
	"github.com/rollway/rollway/internal/testkit"
)

// redteamLines is how many lines the folder of TestRedteamMutations has.
const redteamLines = 120

// redteamFolder makes a journal of sealed, packed and open segments and a cursor, closed or
// as a killed process leaves it.
func redteamFolder(t *testing.T, killed bool) (dir, id string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "journal")
	one := int64(frameHeaderSize + len(lines(0, 2).Lines))
	j := mustOpen(t, dir, Options{SegmentBytes: segmentHeaderSize + 8*(one+16), Pack: true})
	c, err := j.OpenCursor("kafka", false)
	testkit.OK(t, err)
	for i := range redteamLines / 2 {
		b := lines(2*i, 2)
		b.Synced = true
		mustAppend(t, j, b)
	}
	testkit.OK(t, c.Save(40))
	if !killed {
		testkit.OK(t, j.Close())
		return dir, j.ID()
	}
	for { // until maintenance is done, so that the copy is of one moment
		m, err := readManifest(disk.Real{}, dir)
		testkit.OK(t, err)
		if len(m.segs) == j.Stats().Segments && !slices.ContainsFunc(m.segs[:len(m.segs)-1], func(e entry) bool { return e.State != statePacked }) {
			break
		}
		time.Sleep(time.Millisecond)
	}
	copied := filepath.Join(t.TempDir(), "journal")
	testkit.OK(t, os.CopyFS(copied, os.DirFS(dir)))
	testkit.OK(t, j.Close())
	return copied, j.ID()
}

// mutate changes the file in a random way and says which. outside is a file that must not
// be touched.
func mutate(rng *rand.Rand, dir string, files []string, outside string) (what, file string, err error) {
	file = files[rng.IntN(len(files))]
	path := filepath.Join(dir, file)
	other := filepath.Join(dir, files[rng.IntN(len(files))])
	if info, err := os.Lstat(path); err != nil || !info.Mode().IsRegular() || info.Size() == 0 {
		return "as it was", file, nil // changed before
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return "", file, err
	}
	replace := func(f func() error) error { return errors.Join(os.Remove(path), f()) }
	kinds := []struct {
		what string
		do   func() error
	}{
		{"removed", func() error { return os.Remove(path) }},
		{"cut", func() error { return os.Truncate(path, rng.Int64N(int64(len(b)))) }},
		{"grown", func() error {
			return os.WriteFile(path, append(b, bytes.Repeat([]byte{byte(rng.Uint32())}, 1+rng.IntN(300))...), 0o640)
		}},
		{"a bit is flipped", func() error {
			b[rng.IntN(len(b))] ^= 1 << rng.IntN(8)
			return os.WriteFile(path, b, 0o640)
		}},
		{"zeroed", func() error {
			at := rng.IntN(len(b))
			clear(b[at:min(len(b), at+512)])
			return os.WriteFile(path, b, 0o640)
		}},
		{"a FIFO", func() error { return replace(func() error { return syscall.Mkfifo(path, 0o640) }) }},
		{"a link", func() error { return replace(func() error { return os.Symlink(outside, path) }) }},
		{"a link to nothing", func() error { return replace(func() error { return os.Symlink(outside+".not", path) }) }},
		{"a folder", func() error { return replace(func() error { return os.Mkdir(path, 0o750) }) }},
		{"of another user", func() error {
			if os.Geteuid() != 0 {
				return nil
			}
			return os.Chown(path, 12345, 12345)
		}},
		{"swapped with " + filepath.Base(other), func() error {
			return errors.Join(os.Rename(path, path+".x"), ignoreMissing(os.Rename(other, path)), os.Rename(path+".x", other))
		}},
		{"copied to another name", func() error {
			name := segmentName(uint64(rng.IntN(2*redteamLines)), []string{extOpen, extSealed}[rng.IntN(2)])
			if slices.Contains(files, name) {
				return nil
			}
			return os.WriteFile(filepath.Join(dir, name), b, 0o640)
		}},
	}
	k := kinds[rng.IntN(len(kinds))]
	return k.what, file, k.do()
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// readKnown returns the lines by offset. It may meet gaps.
func readKnown(t *testing.T, j *Journal) map[uint64]string {
	t.Helper()
	found := map[uint64]string{}
	r := j.NewReader(0)
	defer r.Close()
	for range 100_000 {
		f, ok, err := r.TryNext()
		if gap := (*Gap)(nil); errors.As(err, &gap) {
			continue
		}
		if err == io.EOF || err == nil && !ok {
			return found
		}
		if err != nil {
			continue // of the disk: a few, and then a gap
		}
		for i, line := range bytes.SplitAfter(bytes.TrimSuffix(f.Lines, []byte("\n")), []byte("\n")) {
			found[f.First+uint64(i)] = string(bytes.TrimSuffix(line, []byte("\n")))
		}
	}
	t.Fatal("the reader does not come to an end")
	return nil
}

// TestRedteamMutations changes a journal's folder at random: what is gone is in the log, the
// metric and the audit, over restarts; no line is wrong, no offset is given twice, nothing
// hangs, and no file outside is changed.
func TestRedteamMutations(t *testing.T) {
	rounds, held := testkit.Rounds(t, testkit.Redteam, 40, 300), 0
	defer func() {
		testkit.Attack{
			Attack: "files of the journal removed, cut, changed, replaced by links, FIFOs or those of others", Times: rounds,
			Promised: "what is gone is in the log, the metric and the audit; no line wrong, no offset twice, no hang",
			Measured: fmt.Sprintf("so in %d of %d folders", held, rounds),
		}.Report(t)
	}()
	closed, closedID := redteamFolder(t, false)
	killed, killedID := redteamFolder(t, true)
	all := map[uint64]string{}
	for n := range uint64(redteamLines) {
		all[n] = string(bytes.TrimSuffix(lines(int(n), 1).Lines, []byte("\n")))
	}
	for round := range rounds {
		rng := rand.New(rand.NewPCG(19, uint64(round)))
		base, id := closed, closedID
		if round%2 == 1 {
			base, id = killed, killedID
		}
		top := t.TempDir()
		dir, outside := filepath.Join(top, "journal"), filepath.Join(top, "outside")
		testkit.OK(t, errors.Join(os.CopyFS(dir, os.DirFS(base)), os.WriteFile(outside, []byte("precious"), 0o640)))
		m, err := readManifest(disk.Real{}, dir)
		testkit.OK(t, err)
		files := []string{manifestFile, historyFile, idFile, filepath.Join(cursorFolder, "kafka")}
		for _, e := range m.segs {
			if e.State != stateOpen {
				files = append(files, segmentName(e.First, extSealed))
			} else if base == closed { // of a killed process nobody knows where it ended
				files = append(files, segmentName(e.First, extOpen))
			}
		}
		name := fmt.Sprintf("round %d:", round)
		for range 1 + rng.IntN(2) {
			what, file, err := mutate(rng, dir, files, outside)
			testkit.OK(t, ignoreMissing(err))
			name += fmt.Sprintf(" %s is %s;", file, what)
		}
		if !redteamRound(t, name, dir, id, m, all) {
			t.FailNow()
		}
		if b, err := os.ReadFile(outside); string(b) != "precious" {
			t.Fatalf("%s the file outside is %q, %v", name, b, err)
		}
		entries, err := os.ReadDir(top)
		if testkit.OK(t, err); len(entries) != 2 {
			t.Fatalf("%s outside is %v", name, entries)
		}
		held++
	}
}

// redteamRound starts on a changed folder, and reports whether all is as it must be.
func redteamRound(t *testing.T, name, dir, id string, m *manifest, all map[uint64]string) bool {
	var mu sync.Mutex
	var log []Finding
	open := func() (*Journal, error) {
		type result struct {
			j   *Journal
			err error
		}
		done := make(chan result, 1)
		go func() {
			j, err := Open(dir, Options{Scrub: 50 * time.Millisecond, OnFinding: func(f Finding) {
				mu.Lock()
				defer mu.Unlock()
				log = append(log, f)
			}})
			done <- result{j, err}
		}()
		select {
		case r := <-done:
			return r.j, r.err
		case <-time.After(time.Minute):
			t.Fatalf("%s the start hangs", name)
			return nil, nil
		}
	}
	j, err := open()
	if err != nil {
		t.Errorf("%s no start: %v", name, err)
		return false
	}
	mu.Lock()
	log = append(log, j.Recovery().Findings...)
	mu.Unlock()
	sealed := uint64(0)
	for _, s := range j.segs {
		if s.sealed {
			sealed++
		}
	}
	for begin := time.Now(); j.Stats().ScrubbedSegments < sealed; time.Sleep(time.Millisecond) {
		if time.Since(begin) > time.Minute {
			t.Fatalf("%s %d of %d segments were read again", name, j.Stats().ScrubbedSegments, sealed)
		}
	}
	found := readKnown(t, j)
	var lost []uint64
	for offset, line := range all {
		switch got, ok := found[offset]; {
		case !ok:
			lost = append(lost, offset)
		case got != line:
			t.Errorf("%s offset %d is %q", name, offset, got)
		}
	}
	if len(found)+len(lost) != len(all) {
		t.Errorf("%s %d lines that nobody has stored", name, len(found)+len(lost)-len(all))
	}
	slices.Sort(lost)
	check := func(where string, list []Finding) {
		t.Helper()
		for _, offset := range lost {
			if !tells(list, m, offset) {
				t.Errorf("%s offset %d is gone, and %s does not tell: %v", name, offset, where, list)
				return
			}
		}
	}
	mu.Lock()
	check("the log", log)
	mu.Unlock()
	check("the metric", j.Findings())
	first, err := j.Append(t.Context(), lines(1000, 2))
	if err != nil || j.ID() == id && first < redteamLines {
		t.Errorf("%s appended at %d, %v", name, first, err)
	}
	if err := j.Close(); err != nil {
		t.Errorf("%s close: %v", name, err)
	}
	if j, err = open(); err != nil {
		t.Errorf("%s no second start: %v", name, err)
		return false
	}
	again := readKnown(t, j)
	if again[first] != string(bytes.TrimSuffix(lines(1000, 1).Lines, []byte("\n"))) || len(again) != len(found)+2 {
		t.Errorf("%s after a restart %d lines, were %d; offset %d is %q", name, len(again), len(found)+2, first, again[first])
	}
	check("the metric after a restart", j.Findings())
	if err := j.Close(); err != nil {
		t.Errorf("%s close: %v", name, err)
	}
	a, err := Audit(dir, AuditOptions{})
	if err != nil {
		t.Errorf("%s audit: %v", name, err)
	}
	check("the audit", a.Damage(0))
	return !t.Failed()
}

// tells reports whether list has what became of the record with offset: that it is missing,
// or that its segment is damaged.
func tells(list []Finding, m *manifest, offset uint64) bool {
	i, _ := slices.BinarySearchFunc(m.segs, offset+1, func(e entry, o uint64) int {
		if e.First < o {
			return -1
		}
		return 1
	})
	return slices.ContainsFunc(list, func(f Finding) bool {
		first, _, segment := parseName(f.File)
		return !f.Harmless() && (f.From <= offset && offset < f.To || segment && f.Kind != recordlog.Missing && i > 0 && first == m.segs[i-1].First)
	})
}

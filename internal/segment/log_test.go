package segment

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rollway/rollway/internal/direct"
	"github.com/rollway/rollway/internal/disk"
	"github.com/rollway/rollway/internal/framed"
)

// notices collects what a Log tells; it is safe for concurrent use.
type notices struct {
	mu   sync.Mutex
	text strings.Builder
}

func (n *notices) add(err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	fmt.Fprintln(&n.text, err)
}

func (n *notices) String() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.text.String()
}

// openLog opens a Log that is closed at the end of the test, if it is not then.
func openLog(t *testing.T, path string, o Options) *Log {
	t.Helper()
	if o.Perm == 0 {
		o.Perm = 0o600
	}
	if o.CheckEvery == 0 {
		o.CheckEvery = -1
	}
	o.Mode = direct.Buffered
	l, err := Open(path, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if l.cur != nil {
			l.Close()
		}
	})
	return l
}

func readAll(t *testing.T, paths ...string) (all string) {
	t.Helper()
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		all += string(data)
	}
	return all
}

func rotatedFiles(t *testing.T, path string) []string {
	t.Helper()
	names, err := rotated(path)
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// Buffers are spread over files of MaxSize, in order, none of them split.
func TestLogRotates(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log.txt")
	const maxSize = 40_000
	l := openLog(t, path, Options{MaxSize: maxSize})
	want := ""
	for i := range 30 {
		var bufs [][]byte
		for k := range i % 5 {
			line := fmt.Sprintf("%d %d %s\n", i, k, strings.Repeat("x", 100*(i+k)))
			bufs = append(bufs, append(make([]byte, 0, len(line)+direct.Align), line...))
			want += line
		}
		if n, err := l.WriteBuffers(bufs); err != nil || n != int64(len(bytes.Join(bufs, nil))) {
			t.Fatalf("WriteBuffers = %d, %v", n, err)
		}
	}
	names := rotatedFiles(t, path)
	if got := readAll(t, append(names, path)...); got != want {
		t.Errorf("%d bytes in the files, want %d", len(got), len(want))
	}
	for _, name := range append(names, path) {
		if data := readAll(t, name); len(data) > maxSize || !strings.HasSuffix(data, "\n") {
			t.Errorf("%s has %d bytes", name, len(data))
		}
	}
	if s := l.Stats(); len(names) < 3 || s.Rotations != uint64(len(names)) || s.Path != path {
		t.Errorf("%d files, Stats %+v", len(names), s)
	}
}

// Old files go, the newest Keep stay.
func TestLogKeeps(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	l := openLog(t, path, Options{MaxSize: 10_000, Keep: 2})
	for i := range 12 {
		if _, err := l.Write(fmt.Appendf(nil, "%d %s\n", i, strings.Repeat("x", 1500))); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Sync(); err != nil {
		t.Fatal(err)
	}
	names := rotatedFiles(t, path)
	all := readAll(t, append(names, path)...)
	s := l.Stats()
	if len(names) != 2 || s.Removed != s.Rotations-2 || !strings.Contains(all, "\n11 ") || strings.Contains(all, "0 x") && strings.HasPrefix(all, "0 ") {
		t.Errorf("%v; Stats %+v", names, s)
	}
}

// One path has one Log; after Close it is free, with what was allocated ahead
// given back.
func TestLogLocksItsPath(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	l := openLog(t, path, Options{})
	if _, err := Open(path, Options{Mode: direct.Buffered}); !errors.Is(err, disk.ErrLocked) {
		t.Errorf("a second Open = %v", err)
	}
	if _, err := l.Write([]byte("one\n")); err != nil {
		t.Error(err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	l = openLog(t, path, Options{})
	if _, err := l.Write([]byte("two\n")); err != nil {
		t.Error(err)
	}
	if got := readAll(t, path); got != "one\ntwo\n" {
		t.Errorf("%q", got)
	}
}

// A file that someone else cuts or appends to is written on from its end.
func TestLogFileIsChanged(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	var heard notices
	l := openLog(t, path, Options{Notice: heard.add})
	write := func(line string) {
		t.Helper()
		if n, err := l.Write([]byte(line)); n != len(line) || err != nil {
			t.Fatalf("Write = %d, %v", n, err)
		}
	}
	write("one\n")
	if err := os.Truncate(path, 0); err != nil {
		t.Fatal(err)
	}
	write("two\n")
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err == nil {
		_, err = f.WriteString("foreign\ntorn")
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	write("three\n")
	if got := readAll(t, path); got != "two\nforeign\nthree\n" {
		t.Errorf("%q", got)
	}
	if s := heard.String(); l.Stats().Truncations != 1 || !strings.Contains(s, "from 4 bytes to 0") || !strings.Contains(s, "someone else writes to it") || !strings.Contains(s, `"torn"`) {
		t.Errorf("Stats %+v, notices %s", l.Stats(), s)
	}
}

func TestTornBytes(t *testing.T) {
	for _, bufs := range [][][]byte{
		{[]byte("ab\ncd\n"), []byte("ef\n"), []byte("gh\n")},
		{[]byte("ab\ncd "), []byte("ef "), []byte("gh\n")}, // written where they are, and filled up
		{nil, []byte("ab\ncd\n"), nil, []byte("ef\n"), {}, []byte("gh\n"), nil},
	} {
		for n, want := range []int64{0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2, 0} {
			if got := tornBytes(bufs, int64(n)); got != want {
				t.Errorf("of %d bytes %d are torn, want %d", n, got, want)
			}
		}
	}
}

func TestRotatedNames(t *testing.T) {
	now := time.Date(2026, 11, 21, 8, 3, 9, 123, time.UTC)
	for path, want := range map[string]string{
		"/d/log":      "/d/log-20261121T080309.000000123Z-ff",
		"/d/a.b.log":  "/d/a.b-20261121T080309.000000123Z-ff.log",
		"/d/.hidden":  "/d/.hidden-20261121T080309.000000123Z-ff",
		"/d/x-y.json": "/d/x-y-20261121T080309.000000123Z-ff.json",
	} {
		got := filepath.ToSlash(rotatedName(filepath.FromSlash(path), now, 255))
		if moment, ok := parseRotated(path, filepath.Base(got)); got != want || !ok || !moment.Equal(now) {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
	for _, name := range []string{"log", "log-", "log-20261121T080309.000000123Z", "log-20261121T080309.000000123Z-xyz", "log-2026-ff", "other-20261121T080309.000000123Z-ff", "log-20261121T080309.000000123Z-ff.gz"} {
		if _, ok := parseRotated("/d/log", name); ok {
			t.Errorf("%s counts as rotated", name)
		}
	}
}

// Where the clock was set back, by a little or a lot, the files that go are those
// from before, and not the one that was just done.
func TestClockIsSetBack(t *testing.T) {
	for _, o := range []Options{{}, {Framed: true}} {
		for _, back := range []time.Duration{30 * time.Minute, 48 * time.Hour} {
			path := filepath.Join(t.TempDir(), "log")
			o.MaxSize, o.Keep = 100_000, 2
			l := openLog(t, path, o)
			for i := range 14 {
				if i == 7 {
					names := rotatedFiles(t, path)
					if len(names) < 2 {
						t.Fatalf("files: %v", names)
					}
					for k, name := range names {
						later := time.Now().Add(back).Add(time.Duration(k))
						if err := os.Rename(name, rotatedName(path, later, uint64(k))); err != nil {
							t.Fatal(err)
						}
						l.last = later.Round(0)
					}
				}
				line := fmt.Sprintf("%d %s\n", i, strings.Repeat("x", 50_000))
				if n, err := l.Write([]byte(line)); n != len(line) || err != nil {
					t.Fatalf("Write = %d, %v", n, err)
				}
				if err := l.Sync(); err != nil {
					t.Fatal(err)
				}
			}
			if err := l.Close(); err != nil {
				t.Error(err)
			}
			all := readAll(t, append(rotatedFiles(t, path), path)...)
			for i := 11; i < 14; i++ {
				if !strings.Contains(all, fmt.Sprintf("%d xx", i)) {
					t.Errorf("framed %v, by %v: line %d is in no file of %v", o.Framed, back, i, rotatedFiles(t, path))
				}
			}
		}
	}
}

// sealed is a framed file of one record, of that generation.
func sealed(t *testing.T, generation uint64, record string) []byte {
	t.Helper()
	seg, err := framed.NewSegment(framed.MaxBlock, generation)
	if err != nil {
		t.Fatal(err)
	}
	file := make([]byte, framed.SegmentHeaderSize)
	seg.PutHeader(file)
	number := framed.NewNumbers().Next()
	used := framed.BatchHeaderSize + framed.RecordSize(len(record))
	buf := make([]byte, 2*framed.MaxBlock)
	framed.SeedOf(number).PutRecord(buf[framed.BatchHeaderSize:used], []byte(record))
	return append(file, seg.Seal(buf, used, 1, number)...)
}

// records returns what a reader of the file is given.
func records(t *testing.T, path string) (all []string) {
	t.Helper()
	data := []byte(readAll(t, path))
	r, err := framed.NewReader(bytes.NewReader(data), int64(len(data)), framed.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for {
		rec, err := r.Next()
		if err == io.EOF {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, string(rec.Data))
	}
}

// A file that is used again hides what it held from its header on, also where
// the clock was set back since, or its header was lost.
func TestRecycledFileHidesItsOldRecords(t *testing.T) {
	future := uint64(time.Now().Add(24 * time.Hour).UnixNano())
	headless := sealed(t, future, "old")
	clear(headless[:framed.SegmentHeaderSize])
	older := append(sealed(t, 1, "old")[:framed.SegmentHeaderSize], sealed(t, future, "old")[framed.SegmentHeaderSize:]...)
	for name, content := range map[string][]byte{
		"the clock was set back":            sealed(t, future, "old"),
		"and its header is older than that": older,
		"its header is lost":                headless,
	} {
		path := filepath.Join(t.TempDir(), "log")
		for i, data := range [][]byte{content, sealed(t, 7, "kept")} {
			if err := os.WriteFile(rotatedName(path, time.Unix(int64(i), 0), uint64(i)), data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		l := openLog(t, path, Options{Framed: true, Keep: 1, MaxSize: 100_000})
		if s := l.Stats(); s.Recycled != 1 {
			t.Errorf("%s: Stats %+v", name, s)
		}
		if got := records(t, path); len(got) > 0 { // as after a kill right now
			t.Errorf("%s: a reader gets %q", name, got)
		}
		if _, err := l.Write([]byte("new\n")); err != nil {
			t.Fatal(err)
		}
		if got := records(t, path); len(got) != 1 || got[0] != "new" {
			t.Errorf("%s: a reader gets %q", name, got)
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
}

// A framed file whose header a power cut has taken is kept, and not in the way.
func TestLostHeader(t *testing.T) {
	headless := sealed(t, 1, "old")
	clear(headless[:framed.SegmentHeaderSize])
	for _, content := range [][]byte{make([]byte, 512), make([]byte, framed.SegmentHeaderSize), headless} {
		path := filepath.Join(t.TempDir(), "log")
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		var heard notices
		l := openLog(t, path, Options{Framed: true, Notice: heard.add})
		names := rotatedFiles(t, path)
		if len(names) != 1 || readAll(t, names...) != string(content) || !strings.Contains(heard.String(), "lost its header") {
			t.Errorf("%d bytes: files %v, notices %s", len(content), names, heard.String())
		}
		if _, err := l.Write([]byte("new\n")); err != nil {
			t.Fatal(err)
		}
		if got := records(t, path); len(got) != 1 || got[0] != "new" {
			t.Errorf("a reader gets %q", got)
		}
	}
}

package backup

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/rollway/rollway/collector/journal"
	"github.com/rollway/rollway/internal/testkit"
)

const stored = 300

// archive returns a backup of a journal with some segments, a cursor and a dead letter.
func archive(t *testing.T) []byte {
	t.Helper()
	j, err := journal.Open(t.TempDir(), journal.Options{SegmentBytes: 5000, Pack: true})
	testkit.OK(t, err)
	defer j.Close()
	_, err = j.OpenCursor("kafka", true)
	testkit.OK(t, err)
	for i := range stored {
		line := fmt.Appendf(nil, `{"time":"2026-05-28T12:40:00.%09dZ","level":"INFO","msg":"record %d"}`+"\n", i, i)
		_, err := j.AppendKeyed(context.Background(), strconv.Itoa(i), journal.Batch{Lines: line, Records: 1, MinTime: int64(i), MaxTime: int64(i)})
		testkit.OK(t, err)
	}
	var b bytes.Buffer
	w := NewWriter(&b)
	letter := []byte(`{"id":"x"}` + "\n")
	testkit.OK(t, w.Add(File{Name: Rejected + "a.json.x.ndjson", Bytes: int64(len(letter))}, bytes.NewReader(letter)))
	w.Manifest.Journal = j.ID()
	w.First, w.Next, err = j.Backup(func(f *journal.BackupFile) error {
		return w.Add(File{Name: Journal + f.Name, Bytes: f.Size, First: f.First, End: f.End, Lines: f.Lines}, f.Content)
	})
	testkit.OK(t, errors.Join(err, w.Close()))
	return b.Bytes()
}

func readAll(b []byte) (*Report, error) { return Read(bytes.NewReader(b), int64(len(b)), "") }

// restore writes b to a file and restores that.
func restore(t *testing.T, b []byte, dir string) (*Report, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "backup.tar")
	testkit.OK(t, os.WriteFile(path, b, 0o600))
	return Restore(path, dir)
}

func TestRestore(t *testing.T) {
	b := archive(t)
	r, err := readAll(b)
	if err != nil || r.Found != stored || r.Lines() != stored || r.Next != stored || len(r.Findings) > 0 || !Is(bytes.NewReader(b)) {
		t.Fatalf("%+v, %v", r, err)
	}
	dir := filepath.Join(t.TempDir(), "new", "data")
	testkit.OK(t, os.MkdirAll(filepath.Join(dir, Unfinished, "journal"), 0o750)) // of one that was interrupted
	if _, err = restore(t, b, dir); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 2 {
		t.Errorf("it has %v, %v", entries, err)
	}
	letter, err := os.ReadFile(filepath.Join(dir, "rejected", "a.json.x.ndjson"))
	if err != nil || string(letter) != `{"id":"x"}`+"\n" {
		t.Errorf("%q, %v", letter, err)
	}
	j, err := journal.Open(filepath.Join(dir, "journal"), journal.Options{})
	testkit.OK(t, err)
	if j.Next() != stored || len(j.Recovery().Findings) > 0 {
		t.Errorf("%+v", j.Recovery())
	}
	receipt, err := j.AppendKeyed(context.Background(), "7", journal.Batch{Lines: []byte("{}\n"), Records: 1})
	if !receipt.Duplicate || receipt.First != 7 || err != nil {
		t.Errorf("the keys are not restored: %+v, %v", receipt, err)
	}
	testkit.OK(t, j.Close())
	if _, err = restore(t, b, dir); err == nil || !strings.Contains(err.Error(), dir+" is not empty: it has journal") {
		t.Errorf("into a folder that is not empty: %v", err)
	}
}

// A span is where a file of an archive is.
type span struct {
	name     string
	from, to int
}

func spansOf(t *testing.T, b []byte) (spans []span) {
	t.Helper()
	in := bytes.NewReader(b)
	for archive := tar.NewReader(in); ; {
		h, err := archive.Next()
		if err == io.EOF {
			return spans
		}
		testkit.OK(t, err)
		from := len(b) - in.Len()
		spans = append(spans, span{h.Name, from, from + int(h.Size)})
	}
}

// A backup that was cut off at whatever byte is refused, and leaves nothing.
func TestCutOff(t *testing.T) {
	b := archive(t)
	spans := spansOf(t, b)
	end := spans[len(spans)-1].to
	for n := 0; n < end; n += 1 + rand.IntN(300) {
		_, err := readAll(b[:n])
		if err == nil || !strings.Contains(err.Error(), "cut off") {
			t.Fatalf("%d bytes of %d: %v", n, end, err)
		}
	}
	for range 20 {
		n, dir := rand.IntN(end), t.TempDir()
		_, err := restore(t, b[:n], dir)
		left, listErr := os.ReadDir(dir)
		if err == nil || len(left) > 0 || listErr != nil {
			t.Fatalf("%d bytes of %d: %v; left %v", n, end, err, left)
		}
	}
}

var bytesNamed = regexp.MustCompile(`byte (\d+)|bytes (\d+) and (\d+)`)

// Each bit of the files of a backup counts. What is wrong is told with a place at or around it, and the
// file.
func TestDamaged(t *testing.T) {
	b := archive(t)
	spans := spansOf(t, b)
	for range 1000 {
		s := spans[rand.IntN(len(spans))]
		at := s.from - 512 + rand.IntN(512+s.to-s.from)
		bad := bytes.Clone(b)
		bad[at] ^= 1 << rand.IntN(8)
		_, err := readAll(bad)
		if err == nil && at < s.from { // as the blank after the checksum of a header
			continue
		}
		if err == nil {
			t.Fatalf("byte %d of %s (%d to %d): no error", at, s.name, s.from, s.to)
		}
		m := bytesNamed.FindStringSubmatch(err.Error())
		if m == nil {
			t.Fatalf("byte %d of %s: no place in %v", at, s.name, err)
		}
		if at < s.from || !strings.HasPrefix(s.name, Journal) && !strings.HasPrefix(s.name, Rejected) {
			continue
		}
		from, _ := strconv.Atoi(m[1] + m[2])
		if from < s.from || from > at || !strings.Contains(err.Error(), filepath.Base(s.name)) {
			t.Fatalf("byte %d of %s, which begins at %d: %v", at, s.name, s.from, err)
		}
	}
}

// Files that do not belong into a data folder are not written, and what a newer program has written is not read.
func TestForeign(t *testing.T) {
	for name, want := range map[string]string{
		"journal/../../x": "no backup has the file", "/etc/x": "no backup has the file", "journal": "no backup has", "x": "no backup has",
		Journal + "a": "cut off", "": "cut off",
	} {
		var b bytes.Buffer
		w := tar.NewWriter(&b)
		if name != "" {
			testkit.OK(t, w.WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o600}))
		}
		testkit.OK(t, w.Close())
		dir := t.TempDir()
		_, err := restore(t, b.Bytes(), dir)
		if left, _ := os.ReadDir(dir); err == nil || !strings.Contains(err.Error(), want) || len(left) > 0 {
			t.Errorf("%q: %v; left %v", name, err, left)
		}
	}
	var b bytes.Buffer
	w := NewWriter(&b)
	w.Version = 2
	testkit.OK(t, w.Close())
	if _, err := readAll(b.Bytes()); err == nil || !strings.Contains(err.Error(), "version 2") {
		t.Errorf("version 2: %v", err)
	}
	if Is(bytes.NewReader(b.Bytes()[:100])) || Is(strings.NewReader("a line of text\n")) {
		t.Error("text is taken for a backup")
	}
}

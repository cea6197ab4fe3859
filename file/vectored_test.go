package file_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rollway/rollway/file"
	"github.com/rollway/rollway/internal/direct"
)

// withoutPadding removes what fills blocks.
func withoutPadding(data string) string {
	var b strings.Builder
	for line := range strings.Lines(data) {
		if text := strings.TrimRight(line, " \n"); text != "" {
			b.WriteString(text + "\n")
		}
	}
	return b.String()
}

// Buffers are spread over files of MaxSize, in order, none of them split.
func TestWriteBuffersRotates(t *testing.T) {
	t.Parallel()
	eachMode(t, func(t *testing.T, mode file.Mode) {
		path := filepath.Join(t.TempDir(), "log.txt")
		const maxSize = 20_000
		f := open(t, path, file.Options{Mode: mode, MaxSize: maxSize})
		want, lines := "", 0
		for i := range 30 {
			bufs := [][]byte{nil}
			for k := range i % 5 {
				text := fmt.Sprintf("%d %d %s\nand\n", i, k, strings.Repeat("x", 100*(i+k)))
				bufs = append(bufs, []byte(text), []byte{})
				want += text
				lines += 2
			}
			given := slices.Clone(bufs)
			if n, err := writeBuffers(f, bufs); err != nil || n != int64(len(bytes.Join(bufs, nil))) {
				t.Fatalf("WriteBuffers = %d, %v", n, err)
			}
			for k := range bufs {
				if len(bufs[k]) != len(given[k]) {
					t.Fatal("WriteBuffers has changed the caller's list")
				}
			}
			ledger(f).CheckSettled(t, lines, lines)
		}
		names, contents := parts(t, path, nil)
		if strings.Join(contents, "") != want {
			t.Errorf("%d bytes in the files, want %d", len(strings.Join(contents, "")), len(want))
		}
		for i, c := range contents {
			if len(c) > maxSize || !strings.HasSuffix(c, "\nand\n") || i < len(contents)-1 && len(c) < maxSize/2 {
				t.Errorf("%s has %d bytes", names[i], len(c))
			}
		}
		if s := f.Stats(); len(names) < 3 || s.Rotations != uint64(len(names)-1) || s.Bytes != uint64(len(want)) || s.PaddedBytes != 0 {
			t.Errorf("%d files, Stats %+v", len(names), s)
		}
	})
}

// More buffers than the system takes in one call.
func TestWriteManyBuffers(t *testing.T) {
	t.Parallel()
	eachMode(t, func(t *testing.T, mode file.Mode) {
		path := filepath.Join(t.TempDir(), "log")
		f := open(t, path, file.Options{Mode: mode})
		var bufs [][]byte
		for i := range 3000 {
			bufs = append(bufs, fmt.Appendf(nil, "%d\n", i))
		}
		if n, err := f.WriteBuffers(bufs, 3000); int(n) != len(bytes.Join(bufs, nil)) || err != nil {
			t.Errorf("WriteBuffers = %d, %v", n, err)
		}
		want(t, path, string(bytes.Join(bufs, nil)))
		ledger(f).CheckSettled(t, 3000, 3000)

		if n, err := writeBuffers(f, [][]byte{[]byte("a\n"), []byte("b")}); n != 0 || err == nil || !strings.Contains(err.Error(), "buffer 1 of 2 does not end with a newline") {
			t.Errorf("WriteBuffers of half a line = %d, %v", n, err)
		}
		if n, err := writeBuffers(f, nil); n != 0 || err != nil {
			t.Errorf("WriteBuffers of nothing = %d, %v", n, err)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
		if n, err := writeBuffers(f, bufs[:7]); n != 0 || !errors.Is(err, os.ErrClosed) || f.Stats().Rejected != 7 {
			t.Errorf("WriteBuffers after Close = %d, %v, Stats %+v", n, err, f.Stats())
		}
		want(t, path, string(bytes.Join(bufs, nil)))
		ledger(f).CheckSettled(t, 3000, 3000)
	})
}

func writeBuffers(f *file.File, buffers [][]byte) (n int64, err error) {
	return f.WriteBuffers(buffers, uint64(bytes.Count(bytes.Join(buffers, nil), []byte("\n"))))
}

// largeBuffers returns aligned buffers of size bytes of lines, which are released
// at the end of the test.
func largeBuffers(t testing.TB, count, size int) (bufs [][]byte) {
	t.Helper()
	set, err := direct.NewMemorySet(count, size)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := set.Free(); err != nil {
			t.Error(err)
		}
	})
	for i := range count {
		b := set.Bytes(i)
		for k := range b {
			b[k] = byte('a' + i%26)
			if k%1000 == 999 || k == len(b)-1 {
				b[k] = '\n'
			}
		}
		bufs = append(bufs, b)
	}
	return bufs
}

// Large buffers, some written in place with Direct, are in the file with
// nothing but white space between them, and are unchanged afterwards.
func TestWriteLargeBuffers(t *testing.T) {
	t.Parallel()
	eachMode(t, func(t *testing.T, mode file.Mode) {
		path := filepath.Join(t.TempDir(), "log")
		f := open(t, path, file.Options{Mode: mode, MaxSize: 8 << 20})
		bufs := largeBuffers(t, 6, 1<<20+4096+77)
		if _, err := f.Write([]byte("head\n")); err != nil {
			t.Fatal(err)
		}
		all, lines := "head\n", 1
		for round := range 3 {
			list := bufs
			if round == 1 { // between large ones
				list = slices.Insert(slices.Clone(bufs), 2, []byte("small\n"))
			}
			before := string(bytes.Join(list, nil))
			if n, err := writeBuffers(f, list); n != int64(len(before)) || err != nil {
				t.Fatalf("WriteBuffers = %d, %v", n, err)
			}
			if string(bytes.Join(list, nil)) != before {
				t.Error("WriteBuffers has changed the buffers")
			}
			all += before
			lines += strings.Count(before, "\n")
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
		_, contents := parts(t, path, nil)
		total := 0
		for _, c := range contents {
			total += len(c)
			if len(c) > 8<<20 || strings.HasSuffix(c, " \n") || strings.Contains(c, "\x00") {
				t.Errorf("a file of %d bytes, which ends with %q", len(c), c[len(c)-5:])
			}
		}
		if got := withoutPadding(strings.Join(contents, "")); got != all {
			t.Errorf("the files hold %d bytes without padding, want %d", len(got), len(all))
		}
		s := f.Stats()
		if int(s.PaddedBytes) != total-len(all) || (s.PaddedBytes > 0) != (mode == file.Direct) || s.PaddedBytes*1000 > uint64(total) {
			t.Errorf("%d bytes of padding in %d, Stats %+v", total-len(all), total, s)
		}
		ledger(f).CheckSettled(t, lines, lines)
	})
}

// A pipe takes buffers too: TestPipe.

// What a Write announced by Prepare takes is in one file, however many buffers.
func TestPreparedBuffersStayTogether(t *testing.T) {
	t.Parallel()
	eachMode(t, func(t *testing.T, mode file.Mode) {
		path := filepath.Join(t.TempDir(), "log")
		f := open(t, path, file.Options{Mode: mode, MaxSize: 100})
		write(t, f, strings.Repeat("x", 60)+"\n")
		var bufs [][]byte
		for i := range 10 {
			bufs = append(bufs, fmt.Appendf(nil, "buffer %d of many\n", i))
		}
		all := string(bytes.Join(bufs, nil))
		p := place{data: all}
		var err error
		if p.volume, p.inode, p.offset, err = f.Prepare(len(all)); err != nil || p.offset != 0 {
			t.Fatalf("Prepare = %d, %v, want a new file", p.offset, err)
		}
		if _, err := writeBuffers(f, bufs); err != nil {
			t.Fatal(err)
		}
		want(t, path, all)
		p.in(t, f, len(all))
		if s := f.Stats(); s.Rotations != 1 {
			t.Errorf("Stats %+v", s)
		}
	})
}

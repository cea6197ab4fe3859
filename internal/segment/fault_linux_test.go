package segment

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/rollway/rollway/internal/direct"
	"github.com/rollway/rollway/internal/smalldisk"
)

// faultOptions are the ways in which lines are written when there is no room.
var faultOptions = []Options{
	{Mode: direct.Direct, InPlace: 8 << 10},
	{Mode: direct.Direct, InPlace: 8 << 10, Chunk: direct.Align},
	{Mode: direct.Buffered},
	{Mode: direct.Buffered, Sync: Each},
}

// writeUntil gives rounds of buffers of numbered lines until n lines are written,
// and what was not taken again. At each error it wants whole lines in the file, as
// many as were said to be there, and calls failed.
func writeUntil(t *testing.T, l *Log, want error, n int, failed func()) (errs int) {
	t.Helper()
	rng := rand.New(rand.NewPCG(uint64(n), uint64(l.opt.Chunk)))
	set, err := direct.NewMemorySet(4, 64<<10)
	if err != nil {
		t.Fatal(err)
	}
	defer set.Free()
	for next := 0; next < n; {
		var bufs [][]byte
		for i := range 1 + rng.IntN(4) {
			b := set.Bytes(i)[:0]
			for size := 1 + rng.IntN(40_000); len(b) < size; next++ {
				b = fmt.Appendf(b, "%d %s.\n", next, strings.Repeat("x", rng.IntN(3000)))
			}
			bufs = append(bufs, b)
		}
		for tries := 0; len(bufs) > 0; tries++ {
			given := append([][]byte(nil), bufs...)
			taken, err := l.WriteBuffers(given)
			for len(bufs) > 0 && taken >= int64(len(bufs[0])) {
				taken -= int64(len(bufs[0]))
				bufs = bufs[1:]
			}
			if err == nil {
				if len(bufs) > 0 {
					t.Fatal("less than all, and no error")
				}
				break
			}
			if !errors.Is(err, want) || tries > 100 {
				t.Fatalf("WriteBuffers = %d, %v, want %v", taken, err, want)
			}
			if taken > 0 {
				if bufs[0][taken-1] != '\n' {
					t.Fatalf("a part of a line was taken: %.20q", bufs[0][max(0, taken-20):taken])
				}
				// The rest as a buffer of its own, which begins where one may.
				k := copy(bufs[0], bufs[0][taken:])
				bufs[0] = bufs[0][:k]
			}
			errs++
			failed()
		}
	}
	return errs
}

// numberedLines wants lines from 0 on in the files, each once and in order.
func numberedLines(t *testing.T, atLeast int, paths ...string) {
	t.Helper()
	next := 0
	for line := range strings.Lines(readAll(t, paths...)) {
		text := strings.TrimRight(line, " \n")
		if text == "" {
			continue
		}
		var n int
		if _, err := fmt.Sscanf(text, "%d ", &n); err != nil || n != next || !strings.HasSuffix(text, ".") {
			t.Fatalf("line %d is %.60q", next, line)
		}
		next++
	}
	if next < atLeast {
		t.Errorf("%d lines, want %d", next, atLeast)
	}
}

// A disk that is full, now and then: the file is written on when there is room.
func TestLogOnAFullDisk(t *testing.T) {
	dir := smalldisk.Mount(t, "size=4m")
	if dir == "" {
		return
	}
	for i, o := range faultOptions {
		path, ballast := filepath.Join(dir, "log"), filepath.Join(dir, "ballast")
		var heard notices
		o.Notice, o.Perm, o.CheckEvery = heard.add, 0o600, -1
		l, err := Open(path, o)
		if err != nil {
			t.Fatal(err)
		}
		size := int64(4<<20 - 70_001)
		if err := os.WriteFile(ballast, make([]byte, size), 0o600); err != nil {
			t.Fatal(err)
		}
		errs := writeUntil(t, l, syscall.ENOSPC, 600, func() {
			if data := readAll(t, path); data != "" && !strings.HasSuffix(data, "\n") || strings.Contains(data, "\x00") {
				t.Errorf("%d: the file ends in %.20q", i, data[max(0, len(data)-20):])
			}
			size = max(0, size-50_001)
			if err := os.Truncate(ballast, size); err != nil {
				t.Fatal(err)
			}
		})
		if s := l.Stats(); errs < 5 || s.Sealed > 0 || !strings.HasPrefix(heard.String(), path+" is written Buffered, not") && heard.String() != "" {
			t.Errorf("%d: %d errors, Stats %+v, heard %s", i, errs, s, heard.String())
		}
		if err := l.Close(); err != nil {
			t.Errorf("%d: Close = %v", i, err)
		}
		numberedLines(t, 600, path)
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
}

// A file that may not get longer is left for a new one.
func TestLogAtTheLimitOfAFile(t *testing.T) {
	dir := smalldisk.Dir()
	if dir == "" {
		if out, err := smalldisk.Child(t, nil); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	signal.Ignore(syscall.SIGXFSZ)
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: 200_001, Max: 200_001}); err != nil {
		t.Fatal(err)
	}
	for i, o := range faultOptions {
		path := filepath.Join(dir, fmt.Sprint("log", i))
		var heard notices
		o.Notice, o.Perm, o.CheckEvery = heard.add, 0o600, -1
		l, err := Open(path, o)
		if err != nil {
			t.Fatal(err)
		}
		errs := writeUntil(t, l, syscall.EFBIG, 600, func() {})
		if err := l.Close(); err != nil {
			t.Errorf("%d: Close = %v", i, err)
		}
		names := rotatedFiles(t, path)
		if s := l.Stats(); errs < 3 || s.Sealed != uint64(len(names)) || len(names) < 3 || strings.Contains(heard.String(), "again elsewhere") {
			t.Errorf("%d: %d errors, %d files, Stats %+v, heard %s", i, errs, len(names), s, heard.String())
		}
		numberedLines(t, 600, append(names, path)...)
	}
}

package file_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollway/rollway/file"
	"github.com/rollway/rollway/internal/smalldisk"
	"github.com/rollway/rollway/internal/testkit"
	"github.com/rollway/rollway/slab"
)

// A disk that is full within a line: nothing torn stays, and with room again
// every byte is there once. Each test runs itself again as a child, whose
// limits and mounts are its own.

// A file that may not grow any more is left for a new one.
func TestFileSizeLimit(t *testing.T) {
	t.Parallel()
	dir := smalldisk.Dir()
	if dir == "" {
		if out, err := smalldisk.Child(t, nil); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	signal.Ignore(syscall.SIGXFSZ)
	testkit.OK(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: 100_001, Max: 100_001}))
	for _, mode := range modes {
		t.Run(mode.String(), func(t *testing.T) {
			path := filepath.Join(dir, mode.String())
			var heard told
			f := open(t, path, file.Options{Mode: mode, OnError: heard.add})
			data, lines := someLines()
			for rest := data; rest != ""; {
				n := strings.LastIndexByte(rest[:min(10_007, len(rest))], '\n') + 1
				write(t, f, rest[:n])
				rest = rest[n:]
			}
			if err := f.Close(); err != nil {
				t.Error(err)
			}
			names, contents := parts(t, path, nil)
			if strings.Join(contents, "") != data || len(names) != 2 {
				t.Errorf("%d files, %d bytes of %d", len(names), len(strings.Join(contents, "")), len(data))
			}
			f.Told()
			if s := f.Stats(); s.Abandoned != 1 || s.Failing || !errors.Is(s.LastError, syscall.EFBIG) || !strings.Contains(heard.String(), "is left for another file") {
				t.Errorf("Stats = %+v, told %s", s, heard.String())
			}
			ledger(f).CheckSettled(t, lines, lines)
		})
	}
}

// someLines returns 1,000 lines, some 190 kB.
func someLines() (data string, lines int) {
	var all strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&all, `{"seq":%d,"pad":"%s"}`+"\n", i, strings.Repeat("x", 150+i%37))
	}
	return all.String(), 1000
}

func TestFullDisk(t *testing.T) {
	t.Parallel()
	dir := smalldisk.Mount(t, "size=128k")
	if dir == "" {
		return
	}
	for _, mode := range modes {
		for _, vectored := range []bool{false, true} {
			t.Run(fmt.Sprintf("%v, vectored %v", mode, vectored), func(t *testing.T) {
				smalldisk.Remount(t, dir, "size=128k")
				fillUp(t, dir, mode, vectored)
			})
		}
	}
}

// The disk fills up under a series that rotates and packs, behind a
// slab.Writer: with room again every line is there once, and what could not be
// packed is packed.
func TestFullDiskWhileRotating(t *testing.T) {
	t.Parallel()
	dir := smalldisk.Mount(t, "size=256k")
	if dir == "" {
		return
	}
	synctest.Test(t, func(t *testing.T) { fillWhileRotating(t, dir) })
}

func fillWhileRotating(t *testing.T, dir string) {
	path := filepath.Join(dir, "log")
	c := &faulty{ext: ".gz", gate: make(chan struct{}), hung: make(chan struct{})} // packing waits until the disk is full
	f := open(t, path, file.Options{MaxSize: 20_000, Compress: c})
	w, err := slab.New(f, slab.Options{Full: slab.Block, CloseTimeout: time.Minute})
	testkit.OK(t, err)
	const lines = 8000 // 500 kB
	var all strings.Builder
	done := make(chan error, 1)
	for i := range lines {
		fmt.Fprintf(&all, "%d %s\n", i, strings.Repeat(fmt.Sprint(i%10), 55))
	}
	go func() {
		for line := range strings.Lines(all.String()) {
			if _, err := w.Write([]byte(line)); err != nil {
				done <- err
				return
			}
		}
		done <- w.Close()
	}()
	eventually(t, "the disk is full", func() bool { return f.Stats().Errors > 5 })
	close(c.gate)
	packing := f.Stats().Errors + 20
	eventually(t, "it goes on failing", func() bool { return f.Stats().Errors > packing })
	if s := f.Stats(); s.Compressed > 0 {
		t.Logf("packed on the full disk: %d", s.Compressed)
	}
	smalldisk.Remount(t, dir, "size=16m")
	select {
	case err := <-done:
		testkit.OK(t, err)
	case <-time.After(2 * time.Minute):
		t.Fatal("the lines do not come through")
	}
	if s := w.Stats(); s.Accepted != lines || s.Written != lines || s.Dropped.Total() != 0 {
		t.Errorf("slab.Stats = %+v", s)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	ledger(f).CheckSettled(t, lines, lines)
	f = open(t, path, file.Options{Compress: file.Gzip{}, CloseTimeout: time.Minute})
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	names, contents := parts(t, path, nil)
	if strings.Join(contents, "") != all.String() {
		t.Errorf("the series has %d bytes, want %d", len(strings.Join(contents, "")), all.Len())
	}
	for _, name := range names[:len(names)-1] {
		if !strings.HasSuffix(name, ".gz") {
			t.Errorf("%s is not packed", name)
		}
	}
	if left := glob(t, path+"-*.part"); len(left) > 0 {
		t.Errorf("left %v", left)
	}
}

// Where there is no room for one more file, a rotation prunes first, and if
// that does not help the file in use is written on.
func TestRotationOnFullDisk(t *testing.T) {
	t.Parallel()
	dir := smalldisk.Mount(t, "size=1m,nr_inodes=20")
	if dir == "" {
		return
	}
	for _, mode := range modes {
		t.Run(mode.String(), func(t *testing.T) {
			smalldisk.Remount(t, dir, "size=1m,nr_inodes=40")
			own := filepath.Join(dir, mode.String())
			testkit.OK(t, os.Mkdir(own, 0o700))
			smalldisk.Remount(t, dir, "size=1m,nr_inodes=20")
			synctest.Test(t, func(t *testing.T) { rotateOnFullDisk(t, dir, own, mode) })
			testkit.OK(t, os.RemoveAll(own))
		})
	}
}

func rotateOnFullDisk(t *testing.T, mount, dir string, mode file.Mode) {
	path := filepath.Join(dir, "log")
	var mu sync.Mutex
	var told []string
	onError := func(err error) {
		mu.Lock()
		defer mu.Unlock()
		told = append(told, err.Error())
	}
	f := open(t, path, file.Options{Mode: mode, KeepCount: 3, OnError: onError})
	rotate(t, f, 3, 10)
	write(t, f, "four\n")
	fill := func() {
		t.Helper()
		for i := 0; ; i++ {
			err := os.WriteFile(filepath.Join(dir, fmt.Sprint("ballast", i)), nil, 0o600)
			if errors.Is(err, syscall.ENOSPC) {
				return
			}
			testkit.OK(t, err)
		}
	}
	fill()
	eventually(t, "the oldest makes room", func() bool { // while the background is at it, it does not
		err := f.Rotate()
		if err != nil && !errors.Is(err, syscall.ENOSPC) {
			t.Fatalf("Rotate = %v", err)
		}
		return err == nil
	})
	write(t, f, "five\n")
	if got := rotated(t, path); len(got) != 3 || f.Stats().Removed != 1 {
		t.Errorf("rotated %v, Stats %+v", got, f.Stats())
	}
	testkit.OK(t, f.Close())

	// Nothing may be pruned: no room.
	f = open(t, path, file.Options{Mode: mode, MaxSize: 10, OnError: onError})
	fill()
	for range 20 {
		write(t, f, "longer\n")
	}
	want(t, path, "five\n"+strings.Repeat("longer\n", 20))
	f.Told()
	mu.Lock()
	if all := strings.Join(told, "\n"); !strings.Contains(all, "file in use is written on") || !strings.Contains(all, "no space left") {
		t.Errorf("told %s", all)
	}
	mu.Unlock()
	smalldisk.Remount(t, mount, "size=1m,nr_inodes=100")
	lines := 20
	eventually(t, "rotated", func() bool {
		lines++
		write(t, f, "longer\n")
		return f.Stats().Rotations > 0
	})
	if _, got := parts(t, path, nil); strings.Count(strings.Join(got, ""), "longer\n") != lines {
		t.Errorf("parts %q, want %d lines", got, lines)
	}
	ledger(f).CheckSettled(t, lines, lines)
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}

// fillUp writes more than there is room for, in Writes of some 10 kB, makes
// room, and goes on where Write told.
func fillUp(t *testing.T, dir string, mode file.Mode, vectored bool) {
	path, ballast := filepath.Join(dir, "log"), filepath.Join(dir, "ballast")
	f := open(t, path, file.Options{Mode: mode, OnError: func(err error) {
		if !strings.Contains(err.Error(), "is written Buffered, not ") { // as a tmpfs is
			t.Errorf("OnError(%v)", err)
		}
	}})
	testkit.OK(t, os.WriteFile(ballast, make([]byte, 20<<10), 0o600))
	data, lines := someLines()
	failures := 0
	rest := []byte(data)
	for len(rest) > 0 {
		p := rest[:min(10_007, len(rest))]
		p = p[:strings.LastIndexByte(string(p), '\n')+1]
		n, err := give(f, p, vectored)
		rest = rest[n:]
		s := f.Stats()
		if s.Err() != nil || s.Pending != 0 || s.Written != uint64(lines-strings.Count(string(rest), "\n")) || s.Failing != (err != nil) {
			t.Fatalf("after %d bytes: Stats = %+v", len(data)-len(rest), s)
		}
		if err == nil {
			continue
		}
		if !errors.Is(err, syscall.ENOSPC) || n > 0 && p[n-1] != '\n' {
			t.Fatalf("Write = %d, %v, want %v at a line end", n, err, syscall.ENOSPC)
		}
		want(t, path, data[:len(data)-len(rest)])
		switch failures++; {
		case failures == 5:
			if s.TornBytes == 0 && mode != file.Direct { // there the system takes all or nothing
				t.Error("no line was torn: this tests nothing")
			}
			smalldisk.Remount(t, dir, "size=8m")
		case failures > 5:
			t.Fatalf("Write with room again = %v", err)
		}
	}
	if failures != 5 {
		t.Errorf("%d Writes failed, want 5", failures)
	}
	want(t, path, data)
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	if s := f.Stats(); s.Bytes != uint64(len(data)) || s.Errors != 5 || s.Abandoned != 0 {
		t.Errorf("Stats = %+v", s)
	}
	ledger(f).CheckSettled(t, lines, lines)
	testkit.OK(t, errors.Join(os.Remove(path), os.Remove(ballast)))
}

// give writes p, or each of its lines as a buffer.
func give(f *file.File, p []byte, vectored bool) (int, error) {
	if !vectored {
		return f.Write(p)
	}
	n, err := writeBuffers(f, slices.Collect(bytes.Lines(p)))
	return int(n), err
}

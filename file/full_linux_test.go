package file_test

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rollway/rollway/file"
	"github.com/rollway/rollway/internal/smalldisk"
	"github.com/rollway/rollway/slab"
)

// A disk that is full within a line: nothing torn stays, and with room again
// every byte is there once. Each test runs itself again as a child, whose
// limits and mounts are its own.

func TestFileSizeLimit(t *testing.T) {
	dir := smalldisk.Dir()
	if dir == "" {
		if out, err := smalldisk.Child(t, nil); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	signal.Ignore(syscall.SIGXFSZ)
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		t.Fatal(err)
	}
	max := limit.Cur
	fillUp(t, dir, syscall.EFBIG, func() {
		limit.Cur = 100_001
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
			t.Fatal(err)
		}
	}, func() {
		limit.Cur = max
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
			t.Fatal(err)
		}
	})
}

func TestFullDisk(t *testing.T) {
	dir := smalldisk.Mount(t, "size=128k")
	if dir == "" {
		return
	}
	ballast := filepath.Join(dir, "ballast")
	fillUp(t, dir, syscall.ENOSPC, func() {
		if err := os.WriteFile(ballast, make([]byte, 20<<10), 0o600); err != nil {
			t.Fatal(err)
		}
	}, func() { smalldisk.Remount(t, dir, "size=8m") })
}

// The disk fills up under a series that rotates and packs, behind a
// slab.Writer: with room again every line is there once, and what could not be
// packed is packed.
func TestFullDiskWhileRotating(t *testing.T) {
	dir := smalldisk.Mount(t, "size=256k")
	if dir == "" {
		return
	}
	path := filepath.Join(dir, "log")
	c := &faulty{ext: ".gz", gate: make(chan struct{}), hung: make(chan struct{})} // packing waits until the disk is full
	f, err := openAsTold(path, file.Options{MaxSize: 20_000, Compress: c, CloseTimeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	w, err := slab.New(f, slab.Options{CloseTimeout: time.Minute, Retry: slab.Retry{Min: time.Millisecond, Max: 10 * time.Millisecond}})
	if err != nil {
		t.Fatal(err)
	}
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
	if s := f.Stats(); s.Packed > 0 {
		t.Logf("packed on the full disk: %d", s.Packed)
	}
	smalldisk.Remount(t, dir, "size=16m")
	select {
	case err := <-done:
		if err != nil {
			t.Fatal(err)
		}
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
	dir := smalldisk.Mount(t, "size=1m,nr_inodes=20")
	if dir == "" {
		return
	}
	path := filepath.Join(dir, "log")
	var mu sync.Mutex
	var told []string
	onError := func(err error) {
		mu.Lock()
		defer mu.Unlock()
		told = append(told, err.Error())
	}
	f, err := openAsTold(path, file.Options{KeepCount: 3, OnError: onError})
	if err != nil {
		t.Fatal(err)
	}
	rotate(t, f, 3, 10)
	write(t, f, "four\n")
	fill := func() {
		t.Helper()
		for i := 0; ; i++ {
			err := os.WriteFile(filepath.Join(dir, fmt.Sprint("ballast", i)), nil, 0o600)
			if errors.Is(err, syscall.ENOSPC) {
				return
			}
			if err != nil {
				t.Fatal(err)
			}
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
	if got := rotated(t, path); len(got) != 3 || f.Stats().Pruned != 1 {
		t.Errorf("rotated %v, Stats %+v", got, f.Stats())
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}

	// Nothing may be pruned: no room.
	if f, err = openAsTold(path, file.Options{MaxSize: 10, OnError: onError}); err != nil {
		t.Fatal(err)
	}
	fill()
	for range 20 {
		write(t, f, "longer\n")
	}
	want(t, path, "five\n"+strings.Repeat("longer\n", 20))
	mu.Lock()
	if len(told) == 0 || !strings.Contains(told[0], "file in use is written on") || !strings.Contains(told[0], "no space left") {
		t.Errorf("told %q", told)
	}
	mu.Unlock()
	smalldisk.Remount(t, dir, "size=1m,nr_inodes=100")
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
func fillUp(t *testing.T, dir string, full error, limit, room func()) {
	path := filepath.Join(dir, "log")
	f, err := openAsTold(path, file.Options{OnNotice: func(s string) {
		if !strings.Contains(s, "is written Buffered, not ") { // as a tmpfs is
			t.Errorf("notice: %s", s)
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	limit()
	var all strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&all, `{"seq":%d,"pad":"%s"}`+"\n", i, strings.Repeat("x", 150+i%37))
	}
	data := all.String()
	lines := uint64(strings.Count(data, "\n"))
	failures := 0
	rest := []byte(data)
	for len(rest) > 0 {
		p := rest[:min(10_007, len(rest))]
		p = p[:strings.LastIndexByte(string(p), '\n')+1]
		n, err := f.Write(p)
		rest = rest[n:]
		s := f.Stats()
		if s.Accepted != s.Written+s.Pending || s.Pending != 0 || s.Written != lines-uint64(strings.Count(string(rest), "\n")) {
			t.Fatalf("after %d bytes: Stats = %+v", len(data)-len(rest), s)
		}
		if err == nil {
			continue
		}
		if !errors.Is(err, full) || n > 0 && p[n-1] != '\n' {
			t.Fatalf("Write = %d, %v, want %v at a line end", n, err, full)
		}
		want(t, path, data[:len(data)-len(rest)])
		switch failures++; {
		case failures == 5:
			if s.TornBytes == 0 && toldMode() != file.Direct { // of which the system takes all or nothing here
				t.Error("no line was torn: this tests nothing")
			}
			room()
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
	if s := f.Stats(); s.Written != lines || s.Bytes != uint64(len(data)) || s.Errors != 5 {
		t.Errorf("Stats = %+v", s)
	}
}

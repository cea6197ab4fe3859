package spool

import (
	"errors"
	"os"
	"syscall"
	"testing"

	"github.com/rollway/rollway/internal/smalldisk"
	"github.com/rollway/rollway/internal/testkit"
)

// A real file system that runs full and is then given room.
func TestRealDiskFull(t *testing.T) {
	dir := smalldisk.Mount(t, "size=1m")
	if dir == "" {
		return
	}
	ballast := dir + "/ballast"
	testkit.OK(t, os.WriteFile(ballast, make([]byte, 512<<10), 0o600))
	s, err := Open(dir+"/spool", Options{SegmentBytes: 100 << 10})
	testkit.OK(t, err)
	n := uint64(0)
	for ; n < 10_000; n++ {
		if err = s.Append([]byte(texts(n*100, n*100+100))); err != nil {
			break
		}
	}
	if !errors.Is(err, ErrFull) || !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("after %d batches: %v", n, err)
	}
	balanced(t, s)
	if err := s.Close(); err != nil { // there is room for no cursor, and none is due
		t.Fatal(err)
	}
	if s, err = Open(dir+"/spool", Options{SegmentBytes: 100 << 10}); err != nil {
		t.Fatal(err)
	}
	testkit.OK(t, os.Remove(ballast))
	mustAppend(t, s, texts(n*100, n*100+100))
	want(t, drain(t, s), texts(0, n*100+100))
	if f := s.Findings(); f != nil {
		t.Error(f)
	}
	testkit.OK(t, s.Close())
}

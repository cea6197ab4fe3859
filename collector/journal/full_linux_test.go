package journal

import (
	"context"
	"errors"
	"os"
	"syscall"
	"testing"
)

// The journal on a real file system that runs full, and is then given room.
func TestRealDiskFull(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("mounting a small tmpfs needs root: ENOSPC of a real file system is not tested here")
	}
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=1m"); err != nil {
		t.Skipf("this machine lets root mount no tmpfs (%v): ENOSPC of a real file system is not tested here", err)
	}
	defer syscall.Unmount(dir, syscall.MNT_DETACH)
	ballast := dir + "/ballast"
	if err := os.WriteFile(ballast, make([]byte, 512<<10), 0o600); err != nil {
		t.Fatal(err)
	}
	j, err := Open(dir, Options{SegmentBytes: 100 << 10})
	if err != nil {
		t.Fatal(err)
	}
	l := newLedger()
	n := 0
	for ; n < 10_000; n++ {
		err = l.append(j, n, n%10 == 0)
		if err != nil {
			break
		}
	}
	if !errors.Is(err, ErrFull) || !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("after %d batches: %v", n, err)
	}
	if _, err := j.Append(context.Background(), lines(0, 5000)); !errors.Is(err, ErrFull) {
		t.Fatal(err)
	}
	l.check(t, j)
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	for end := n + 100; n < end; {
		n++
		if err := l.append(j, n, true); err != nil {
			t.Fatalf("after room was made: %v", err)
		}
	}
	l.check(t, j)
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	j, err = Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	checkKinds(t, j, []FindingKind{})
	l.check(t, j)
	j.Close()
}

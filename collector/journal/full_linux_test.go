package journal

import (
	"context"
	"errors"
	"os"
	"syscall"
	"testing"

	"github.com/rollway/rollway/internal/smalldisk"

	"github.com/rollway/rollway/internal/recordlog"
	"github.com/rollway/rollway/internal/testkit"
)

// The journal on a real file system that runs full, and is then given room.
func TestRealDiskFull(t *testing.T) {
	dir := smalldisk.Mount(t, "size=1m")
	if dir == "" {
		return
	}
	ballast := dir + "/ballast"
	testkit.OK(t, os.WriteFile(ballast, make([]byte, 512<<10), 0o600))
	j, err := Open(dir, Options{SegmentBytes: 100 << 10})
	testkit.OK(t, err)
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
	testkit.OK(t, os.Remove(ballast))
	for end := n + 100; n < end; {
		n++
		if err := l.append(j, n, true); err != nil {
			t.Fatalf("after room was made: %v", err)
		}
	}
	l.check(t, j)
	testkit.OK(t, j.Close())
	j, err = Open(dir, Options{})
	testkit.OK(t, err)
	for _, f := range j.Recovery().Findings {
		if f.Kind != recordlog.NoFooter { // of a segment that was sealed on the full disk
			t.Errorf("finding %v", f)
		}
	}
	l.check(t, j)
	j.Close()
}

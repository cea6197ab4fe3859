//go:build unix

package openfiles

import (
	"testing"

	"golang.org/x/sys/unix"
)

func TestLimit(t *testing.T) {
	var before unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &before); err != nil {
		t.Fatal(err)
	}
	defer unix.Setrlimit(unix.RLIMIT_NOFILE, &before)
	lower := unix.Rlimit{Cur: 200, Max: before.Max}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &lower); err != nil {
		t.Fatal(err)
	}
	if n := Limit(); n != 200 {
		t.Errorf("%d, want 200", n)
	}
}

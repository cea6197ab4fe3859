package remote_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rollway/rollway/internal/smalldisk"
	"github.com/rollway/rollway/line"
	"github.com/rollway/rollway/remote"
)

// A folder on a real disk that runs full: the caller keeps what does not fit,
// and what is there is delivered, also by the next Writer.
func TestSpillDiskFull(t *testing.T) {
	t.Parallel()
	dir := smalldisk.Mount(t, "size=256k")
	if dir == "" {
		return
	}
	peer := newKeyedPeer(t)
	o := remote.Options{Spill: remote.Spill{Dir: dir}, CloseTimeout: 10 * time.Millisecond}
	w := open(t, peer.url(), o)
	n := 0
	for ; n < 10_000; n++ {
		if _, err := w.Write([]byte(numbered(n*10, n*10+10))); err != nil {
			if !strings.Contains(err.Error(), "no space left") {
				t.Fatal(err)
			}
			break
		}
	}
	if s := balanced(t, w); n < 100 || s.Spill.Lines != uint64(n*10) || s.Pending != s.Spill.Lines || s.Returned != 10 || !errors.Is(s.Spill.LastError, syscall.ENOSPC) {
		t.Fatalf("after %d writes Stats = %+v", n, s)
	}
	if err := w.Close(); !errors.Is(err, line.ErrPending) {
		t.Errorf("Close = %v", err)
	}
	w = open(t, peer.url(), o)
	if s := balanced(t, w); s.Recovered != uint64(n*10) {
		t.Fatalf("Stats = %+v", s)
	}
	peer.up()
	flush(t, w)
	write(t, w, numbered(n*10, n*10+10))
	flush(t, w)
	peer.want(t, numbered(0, n*10+10))
	settled(t, w, n*10+10, n*10+10)

	// When others have taken the disk, a Write sends by itself.
	n++
	if err := os.WriteFile(filepath.Join(dir, "others"), make([]byte, 1<<20), 0o600); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("filling the disk = %v", err)
	}
	for i := range 100 {
		write(t, w, numbered((n+i)*10, (n+i)*10+10))
	}
	peer.want(t, numbered(0, (n+100)*10))
	settled(t, w, (n+100)*10, (n+100)*10)
	peer.down()
	if got, err := w.Write([]byte(numbered(0, 10))); got != 0 || err == nil || !strings.Contains(err.Error(), "it cannot wait on disk either") || !strings.Contains(err.Error(), "no space left") {
		t.Errorf("Write = %d, %v", got, err)
	}
	balanced(t, w)
}

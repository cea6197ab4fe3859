package probe

import (
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/rollway/rollway/internal/smalldisk"
)

func TestParseMount(t *testing.T) {
	for line, want := range map[string]Mount{
		"36 35 98:0 /a /mnt\\040x rw,noatime shared:1 - ext4 /dev/vda rw,errors=continue\n": {"ext4", "/dev/vda", "/mnt x", "rw,noatime", false},
		"36 35 0:33 / / ro,relatime - tmpfs none rw":                                        {"tmpfs", "none", "/", "ro,relatime", true},
		"36 35 0:33 / /x rw master:1 propagate_from:2 - nfs4 host:/a\\011b ro,hard\n":       {"nfs4", "host:/a\tb", "/x", "rw", true},
	} {
		if got, ok := parseMount(line); !ok || got != want {
			t.Errorf("%q: %+v", line, got)
		}
	}
	for _, line := range []string{"", "x", "1 2 3 4 5 6 ext4 /dev/vda rw", "1 2 - ext4 /dev/vda rw", "1 2 3 4 5 6 - ext4"} {
		if got, ok := parseMount(line); ok {
			t.Errorf("%q: %+v", line, got)
		}
	}
	for in, want := range map[string]string{`a\040b`: "a b", `a\04`: `a\04`, `\134`: `\`, `\xyz`: `\xyz`, `\`: `\`} {
		if got := unescape(in); got != want {
			t.Errorf("%q: %q", in, got)
		}
	}
}

// A small file system of its own: it is recognised, and no more than a quarter
// of what is free is taken.
func TestSmallDisk(t *testing.T) {
	dir := smalldisk.Mount(t, "size=1m,nr_inodes=20")
	if dir == "" {
		return
	}
	if err := os.Mkdir(dir+"/sub", 0o700); err != nil {
		t.Fatal(err)
	}
	r, err := Run(t.Context(), dir+"/sub", Options{Time: time.Hour, chunks: []int{4096, 128 << 10, 512 << 10}})
	if err != nil || !r.Files.OK {
		t.Fatal(err, r.Files)
	}
	if r.Mount.Type != "tmpfs" || r.Mount.Point != dir || r.Mount.ReadOnly {
		t.Errorf("%+v", r.Mount)
	}
	if s := r.Space; s == nil || s.Total != 1<<20 || s.Free != 1<<20 || s.TotalIDs != 20 || s.FreeIDs >= 20 {
		t.Errorf("%+v", s)
	}
	if len(r.Writes) == 0 || !r.Cut {
		t.Fatalf("%+v", r)
	}
	for _, w := range r.Writes {
		if w.Err != "" || w.Chunk > 128<<10 {
			t.Errorf("%+v", w)
		}
	}
	empty(t, dir+"/sub")

	if err := syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	r, err = Run(t.Context(), dir+"/sub", Options{})
	if err != nil || r.Files.OK || !r.Mount.ReadOnly {
		t.Fatalf("%v %+v", err, r)
	}
}

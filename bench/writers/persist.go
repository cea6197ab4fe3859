package writers

import (
	"io"
	"os"
	"path/filepath"
	"sync"

	"github.com/rollway/rollway/slab"
)

// CanPersist reports whether a slab.Writer with Persist really has its slabs in
// the file here: it is for linux and darwin.
var CanPersist = sync.OnceValue(func() bool {
	dir, err := os.MkdirTemp(PersistDir(), "rollway-bench-")
	if err != nil {
		return false
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "slabs")
	w, err := slab.New(io.Discard, slab.Options{Persist: path})
	if err != nil {
		return false
	}
	info, err := os.Stat(path)
	w.Close()
	return err == nil && info.Size() >= 8*64<<10
})

// PersistDir is where mapped slabs are put: /dev/shm where there is one, which
// is a tmpfs, or else the folder for temporary files.
func PersistDir() string {
	if info, err := os.Stat("/dev/shm"); err == nil && info.IsDir() {
		return "/dev/shm"
	}
	return ""
}

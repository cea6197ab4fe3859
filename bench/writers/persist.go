package writers

import (
	"io"
	"os"
	"path/filepath"
	"reflect"
	"sync"

	"github.com/rollway/rollway/slab"
)

// SetPersist sets o.Persist and reports whether there is such a field: the
// module is built and its tables are made before and after slabs learn to
// outlive the process.
func SetPersist(o *slab.Options, path string) bool {
	field := reflect.ValueOf(o).Elem().FieldByName("Persist")
	if !field.IsValid() || field.Kind() != reflect.String {
		return false
	}
	field.SetString(path)
	return true
}

// CanPersist reports whether a slab.Writer with Persist really has its slabs in
// the file: a field that is not obeyed yet would be measured as heap.
var CanPersist = sync.OnceValue(func() bool {
	dir, err := os.MkdirTemp(PersistDir(), "rollway-bench-")
	if err != nil {
		return false
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "slabs")
	var o slab.Options
	if !SetPersist(&o, path) {
		return false
	}
	w, err := slab.New(io.Discard, o)
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

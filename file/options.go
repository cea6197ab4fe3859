package file

import (
	"cmp"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"github.com/rollway/rollway/internal/direct"
)

// Options says how a File is opened, rotated and kept. The zero value suits a file that a
// tool such as logrotate rotates: one file, followed when it is moved. MaxSize or Every
// makes it a series.
type Options struct {
	// Perm is what a new file gets, before the umask. An existing file keeps its own; a
	// rotation passes permissions and owner on. Default 0o640.
	Perm fs.FileMode

	// MaxSize is the size in bytes beyond which a Write goes to a new file. A larger Write
	// gets a file of its own; it is neither refused nor split. Default 0: no rotation by
	// size.
	MaxSize int64

	// Every rotates the file by time; at least a second. 24 hours is every midnight; less
	// is at multiples since midnight; more is at multiples since Monday, 1 January of year
	// 1 (a week: on Mondays). The first Write after that rotates; an empty file is not
	// rotated. Default 0: no rotation by time.
	Every time.Duration

	// Location is the time zone of midnight and of the times in names. Default nil: UTC.
	Location *time.Location

	// KeepCount, KeepAge and KeepSize bound the number of rotated files, the time since
	// their rotation, and the bytes of the whole series on disk, where the current file
	// counts with its size or MaxSize, whichever is larger. The oldest rotated file goes
	// first, the current one never. Default 0: no bound.
	KeepCount int
	KeepAge   time.Duration
	KeepSize  int64

	// Compress compresses rotated files in the background, except the newest KeepPlain.
	// Gzip is built in; bridge/zstd has another. Default nil: no compression.
	Compress  Compressor
	KeepPlain int

	// Folder is where rotated files go. It must exist and be on the same file system.
	// Default "": the folder of the file.
	Folder string

	// Link is a symbolic link that always points at the current file. Anything else of that
	// name is left alone. Default "": none.
	Link string

	// NoFollow stops Writes from checking, once a second, that the path still names the
	// open file. Without it, the lines go to the file that the path names now. A missing
	// file is created after one more second, in which the program that moved it may do so.
	NoFollow bool

	// Failover is a folder on another disk, for lines while the first folder is full,
	// read-only, gone or failing, from Open on. The first folder is tried again every
	// minute and by Reopen. What was written to Failover stays there. Default "": none.
	Failover string

	// Mode is how bytes get to the disk. Where the file system refuses one, the File uses
	// Buffered and reports it to OnError and in Stats. Where the operating system has none,
	// Open fails. Default Buffered.
	Mode Mode

	// Sync says when written bytes are forced to the disk.
	Sync SyncPolicy
	// SyncEvery is the time between two calls of fsync with SyncInterval. Default 1 s.
	SyncEvery time.Duration

	// CloseTimeout bounds Close and Sync, which take no context. Default 5 s.
	CloseTimeout time.Duration

	// OnRotated is called in the background with the path of each file that this File has
	// rotated, in its last form: compressed, with Compress. The next rotated file, Close up
	// to its deadline, and removal wait for it; Writes do not. It may move, remove or chmod
	// the file, and must not call the File. After a kill the next process compresses the
	// file and calls it then, but without Compress does not. Default nil.
	OnRotated func(path string)

	// OnError gets errors that fail no call, such as of a rotation or of background work,
	// and what the owner should know: bytes cut from the end of the file, a file that was
	// moved away, a move to Failover and back. A lasting condition is told at most once a
	// minute. One goroutine calls OnError; only Close and Shutdown wait for it, 20 ms at
	// most, and afterwards it is not called again. Default nil: errors go to os.Stderr,
	// unless the path means that.
	OnError func(error)
}

// A SyncPolicy says when a File calls fsync.
type SyncPolicy int

const (
	// SyncNever leaves it to the operating system: written lines survive the process, and a
	// crash of the machine may lose the last half minute. Sync still forces everything to
	// the disk, rotated files too; more than 16 of them are synced in the background.
	SyncNever SyncPolicy = iota
	// SyncInterval calls fsync in the background, every SyncEvery while lines come and once
	// more in Close.
	SyncInterval
	// SyncEachWrite calls fsync before Write returns.
	SyncEachWrite
)

// String returns the name of the constant.
func (p SyncPolicy) String() string {
	if p < SyncNever || p > SyncEachWrite {
		return fmt.Sprintf("SyncPolicy(%d)", int(p))
	}
	return [...]string{"SyncNever", "SyncInterval", "SyncEachWrite"}[p]
}

func (o Options) rotates() bool { return o.MaxSize > 0 || o.Every > 0 }

func (o Options) keeps() bool { return o.KeepCount > 0 || o.KeepAge > 0 || o.KeepSize > 0 }

func (o Options) series() bool {
	return o.rotates() || o.keeps() || o.Compress != nil || o.Folder != ""
}

func (o Options) withDefaults() (Options, error) {
	o.Perm = cmp.Or(o.Perm, 0o640)
	o.Location = cmp.Or(o.Location, time.UTC)
	o.CloseTimeout = cmp.Or(o.CloseTimeout, 5*time.Second)
	o.SyncEvery = cmp.Or(o.SyncEvery, time.Second)
	for _, field := range []struct {
		bad   bool
		name  string
		value any
		give  string
	}{
		{o.Perm&^fs.ModePerm != 0, "Perm", o.Perm, "permission bits only, or 0 for 0o640"},
		{o.MaxSize < 0, "MaxSize", o.MaxSize, "a number of bytes, or 0 for no rotation by size"},
		{o.Every < 0 || o.Every > 0 && o.Every < time.Second, "Every", o.Every, "1s or more, or 0 for no rotation by time"},
		{o.KeepCount < 0, "KeepCount", o.KeepCount, "a number of files, or 0 for no bound"},
		{o.KeepAge < 0, "KeepAge", o.KeepAge, "a positive time, or 0 for no bound"},
		{o.KeepSize < 0, "KeepSize", o.KeepSize, "a number of bytes, or 0 for no bound"},
		{o.KeepSize > 0 && o.KeepSize <= o.MaxSize, "KeepSize", o.KeepSize, fmt.Sprintf("more than MaxSize %d, as it counts the current file", o.MaxSize)},
		{o.KeepPlain < 0, "KeepPlain", o.KeepPlain, "a number of files, or 0"},
		{o.Sync < SyncNever || o.Sync > SyncEachWrite, "Sync", o.Sync, "file.SyncNever, file.SyncInterval or file.SyncEachWrite"},
		{o.SyncEvery < 0, "SyncEvery", o.SyncEvery, "a positive time, or 0 for 1s"},
		{o.CloseTimeout < 0, "CloseTimeout", o.CloseTimeout, "a positive time, or 0 for 5s"},
		{o.Mode < Buffered || o.Mode > Uncached, "Mode", o.Mode, "file.Buffered, file.Direct or file.Uncached"},
	} {
		if field.bad {
			return o, fmt.Errorf("bad Options.%s %v: give %s", field.name, field.value, field.give)
		}
	}
	if err := direct.Supported(direct.Mode(o.Mode)); err != nil {
		return o, fmt.Errorf("bad Options.Mode %v: %w", o.Mode, err)
	}
	if o.Compress != nil {
		if err := checkExtension(o.Compress.Extension()); err != nil {
			return o, fmt.Errorf("bad Options.Compress: %w", err)
		}
	}
	var err error
	for _, path := range []*string{&o.Folder, &o.Link, &o.Failover} {
		if *path != "" {
			if *path, err = filepath.Abs(*path); err != nil {
				return o, err
			}
		}
	}
	return o, nil
}

// checkExtension returns an error for an extension that parse would not recognize.
func checkExtension(ext string) error {
	letters, ok := strings.CutPrefix(ext, ".")
	for _, c := range letters {
		ok = ok && (c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9')
	}
	if !ok || letters == "" || ext == partial {
		return fmt.Errorf("extension %q: give a dot and letters or digits, such as .gz", ext)
	}
	return nil
}

package file

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/rollway/rollway/internal/direct"
)

// Options says how a File is opened, rotated and kept. The zero value is the
// recommended setting for a file that a tool such as logrotate rotates: one
// file, followed when it is moved. MaxSize, Every or Daily make it a series.
type Options struct {
	// Perm is what a new file gets, before the umask. An existing one keeps its
	// own, and a rotation hands permissions and owner on. Default 0o640.
	Perm fs.FileMode

	// MaxSize is the size in bytes that a Write does not take the file beyond:
	// it goes to a new file. A Write that is larger by itself has a file of its
	// own; it is neither refused nor split. Default 0: no rotation by size.
	MaxSize int64

	// Every rotates the file by time, at least a second: one up to a day at its
	// multiples since midnight (an hour: at the full hour), a longer one at its
	// multiples since Monday, 1 January of year 1 (a week: on Mondays). Daily
	// rotates at midnight. Rotation is done by the first Write after that time;
	// an empty file is not rotated. Default 0 and false: no rotation by time.
	Every time.Duration
	Daily bool

	// Location is the time zone of midnight and of the times in names.
	// time.Local is the machine's. Default nil: UTC.
	Location *time.Location

	// KeepCount, KeepAge and KeepSize bound what is kept; the oldest rotated
	// file goes first, the current one never. KeepCount is the number of
	// rotated files, KeepAge the time since a file was rotated, KeepSize the
	// bytes of the whole series on the disk, where the current file counts with
	// its size or MaxSize, whichever is larger. Default 0: no bound.
	KeepCount int
	KeepAge   time.Duration
	KeepSize  int64

	// Compress packs rotated files in the background, but the newest
	// KeepPlain, which stay as they are for who reads them. Default nil: none
	// is packed. Gzip is built in; bridge/zstd has another.
	Compress  Compressor
	KeepPlain int

	// Folder is where rotated files go; it must exist and be on the same file
	// system. Default "": the folder of the file.
	Folder string

	// Link is the path of a symbolic link that is kept pointing at the current
	// file. Something else of that name is left alone. Default "": none.
	Link string

	// CheckEvery is how often a Write looks whether the path still names the
	// open file, which it follows if it was moved or removed; 0 means 1 s, a
	// negative value never. A removed one is made anew when it is still gone a
	// second later, so as not to be in the way of who moved it.
	CheckEvery time.Duration

	// Mode is how bytes get to the disk: Buffered (default), Direct or Uncached.
	// Where the file system refuses one, it is Buffered, which OnNotice and
	// Stats tell; where no file of the system can be written that way, Open
	// fails.
	Mode Mode

	// Sync says when what was written is forced to the disk. Default Never.
	Sync SyncPolicy
	// SyncEvery is the time between two calls of fsync with Interval. Default
	// 1 s.
	SyncEvery time.Duration

	// CloseTimeout bounds Close and Sync, which take no context. Default 5 s.
	CloseTimeout time.Duration

	// OnRotated is called in the background with the path of each file that this
	// File has rotated, once it has its last form: packed, with Compress. The
	// next file's turn, and Close up to its deadline, wait for it; Writes do
	// not. A file that falls under KeepCount, KeepAge or KeepSize is removed
	// after it. It may move, remove or chmod the file, and must not call the
	// File. A process that is killed may leave a file for which it was not
	// called: the next one packs it and calls it then, but without Compress it
	// does not. Default nil.
	OnRotated func(path string)

	// OnNotice is told what the owner of the file should know: bytes cut from
	// its end, a torn line that could not be taken back, a file moved away.
	// OnError is told what failed without failing a call: a rotation that did
	// not take place and will be tried again, and the work of the background.
	// Both are called from the goroutine of Open, Write, Rotate or Reopen or
	// from the background, at times at once, and must not call the File. nil
	// means nobody is told; Stats counts all the same.
	OnNotice func(string)
	OnError  func(error)
}

// A SyncPolicy says when a File calls fsync.
type SyncPolicy int

const (
	// Never leaves it to the operating system: what was written survives the
	// process, and a crash of the machine may take the last half minute.
	// Sync still forces everything out, rotated files too; where more than 16
	// of them wait for a Sync, the background does it.
	Never SyncPolicy = iota
	// EachWrite calls fsync before Write returns.
	EachWrite
	// Interval calls fsync in the background, every SyncEvery while lines come
	// and once more in Close. Writes do not wait for it.
	Interval
)

func (p SyncPolicy) String() string {
	switch p {
	case Never:
		return "Never"
	case EachWrite:
		return "EachWrite"
	case Interval:
		return "Interval"
	}
	return fmt.Sprintf("SyncPolicy(%d)", int(p))
}

// rotates reports whether a Write may rotate the file.
func (o Options) rotates() bool { return o.MaxSize > 0 || o.Every > 0 || o.Daily }

// keeps reports whether rotated files are removed some time.
func (o Options) keeps() bool { return o.KeepCount > 0 || o.KeepAge > 0 || o.KeepSize > 0 }

// series reports whether the File has anything to do with rotated files.
func (o Options) series() bool {
	return o.rotates() || o.keeps() || o.Compress != nil || o.Folder != ""
}

func (o Options) withDefaults() (Options, error) {
	o.Perm = cmp.Or(o.Perm, 0o640)
	o.Location = cmp.Or(o.Location, time.UTC)
	o.CloseTimeout = cmp.Or(o.CloseTimeout, 5*time.Second)
	o.SyncEvery = cmp.Or(o.SyncEvery, time.Second)
	o.CheckEvery = cmp.Or(o.CheckEvery, time.Second)
	switch {
	case o.Perm&^fs.ModePerm != 0:
		return o, fmt.Errorf("bad Options.Perm %v: give permission bits only, or 0 for 0o640", o.Perm)
	case o.MaxSize < 0:
		return o, fmt.Errorf("bad Options.MaxSize %d: give a number of bytes, or 0 for no rotation by size", o.MaxSize)
	case o.Every < 0 || o.Every > 0 && o.Every < time.Second:
		return o, fmt.Errorf("bad Options.Every %v: give 1s or more, or 0 for no rotation by interval", o.Every)
	case o.KeepCount < 0:
		return o, fmt.Errorf("bad Options.KeepCount %d: give a number of files, or 0 for no bound", o.KeepCount)
	case o.KeepAge < 0:
		return o, fmt.Errorf("bad Options.KeepAge %v: give a positive time, or 0 for no bound", o.KeepAge)
	case o.KeepSize < 0:
		return o, fmt.Errorf("bad Options.KeepSize %d: give a number of bytes, or 0 for no bound", o.KeepSize)
	case o.KeepSize > 0 && o.KeepSize <= o.MaxSize:
		return o, fmt.Errorf("bad Options.KeepSize %d: it counts the current file, so give more than MaxSize %d", o.KeepSize, o.MaxSize)
	case o.KeepPlain < 0:
		return o, fmt.Errorf("bad Options.KeepPlain %d: give a number of files, or 0", o.KeepPlain)
	case o.Sync != Never && o.Sync != EachWrite && o.Sync != Interval:
		return o, fmt.Errorf("bad Options.Sync %v: give file.Never, file.Interval or file.EachWrite", o.Sync)
	case o.SyncEvery < 0:
		return o, fmt.Errorf("bad Options.SyncEvery %v: give a positive time, or 0 for 1s", o.SyncEvery)
	case o.CloseTimeout < 0:
		return o, fmt.Errorf("bad Options.CloseTimeout %v: give a positive time, or 0 for 5s", o.CloseTimeout)
	}
	if o.Mode < Buffered || o.Mode > Uncached {
		return o, fmt.Errorf("bad Options.Mode %v: give file.Buffered, file.Direct or file.Uncached", o.Mode)
	}
	if err := direct.Supported(o.Mode.inside()); err != nil {
		return o, fmt.Errorf("bad Options.Mode %v: %w", o.Mode, err)
	}
	if o.Compress != nil {
		if err := checkExtension(o.Compress.Extension()); err != nil {
			return o, fmt.Errorf("bad Options.Compress: %w", err)
		}
	}
	var err error
	for _, path := range []*string{&o.Folder, &o.Link} {
		if *path != "" {
			if *path, err = filepath.Abs(*path); err != nil {
				return o, err
			}
		}
	}
	return o, nil
}

// checkExtension wants what makes a packed file's name one that parse finds.
func checkExtension(ext string) error {
	if len(ext) < 2 || ext[0] != '.' || ext == partial {
		return fmt.Errorf("extension %q: give a dot and letters or digits, such as .gz", ext)
	}
	for _, c := range ext[1:] {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') {
			return fmt.Errorf("extension %q: give a dot and letters or digits, such as .gz", ext)
		}
	}
	return nil
}

var errNotRegular = errors.New("it is not a regular file: only such are rotated")

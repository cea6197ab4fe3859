package segment

import (
	"io/fs"
	"time"

	"github.com/rollway/rollway/internal/direct"
)

// A SyncPolicy says when a Log calls fsync.
type SyncPolicy int

const (
	Never    SyncPolicy = iota // when Sync is called and when a file is done
	Interval                   // every SyncEvery, in the background
	Each                       // before each write returns
)

// Options configures a Log. All fields are checked by the caller.
type Options struct {
	Framed     bool          // the caller uses WriteBatches, not WriteBuffers
	Mode       direct.Mode   // Buffered is used where the file system refuses
	Chunk      int           // bytes of one system call; 0 is direct's default
	InPlace    int           // direct's, of lines; 0 is its default
	Perm       fs.FileMode   // of new files
	Longest    int64         // bytes of the longest line that is given: a crash may leave as much of one
	MaxSize    int64         // bytes that no file exceeds, unless one buffer is more; 0: no bound
	Keep       int           // files that are done and stay, by age of their names; 0: all. Framed ones are used again
	Sync       SyncPolicy    // when to call fsync
	SyncEvery  time.Duration // under Interval
	StallAfter time.Duration // under Interval: how long an fsync may take before Notice is told
	CheckEvery time.Duration // how often to look whether the path still names the file; < 0: never
	Failover   string        // folder to go to when the first one fails, "" for none
	HomeAfter  time.Duration // how long to stay there before the first one is tried again
	Notice     func(error)   // is told what fails no call; from the goroutine of a call or the background
}

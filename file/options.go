package file

import (
	"fmt"
	"io/fs"
	"time"
)

// Options says how a File is opened and kept. The zero value is the
// recommended setting.
type Options struct {
	// Perm is what a new file gets, before the umask. An existing one keeps
	// its own. Default 0o640.
	Perm fs.FileMode

	// Sync says when what was written is forced to the disk. Default Never.
	Sync SyncPolicy

	// CloseTimeout bounds Close and Sync, which take no context. Default 5 s.
	CloseTimeout time.Duration

	// OnNotice is told, from the goroutine of Open, Write or Reopen, what the
	// owner of the file should know: bytes cut from its end, a torn line that
	// could not be taken back. It must not call the File. nil means nobody is
	// told; Stats counts all the same.
	OnNotice func(string)
}

// A SyncPolicy says when a File calls fsync.
type SyncPolicy int

const (
	// Never leaves it to the operating system: what was written survives the
	// process, and a crash of the machine may take the last half minute.
	// Sync still forces everything out.
	Never SyncPolicy = iota
	// EachWrite calls fsync before Write returns.
	EachWrite
)

func (p SyncPolicy) String() string {
	switch p {
	case Never:
		return "Never"
	case EachWrite:
		return "EachWrite"
	}
	return fmt.Sprintf("SyncPolicy(%d)", int(p))
}

func (o Options) withDefaults() (Options, error) {
	if o.Perm == 0 {
		o.Perm = 0o640
	}
	if o.CloseTimeout == 0 {
		o.CloseTimeout = 5 * time.Second
	}
	switch {
	case o.Perm&^fs.ModePerm != 0:
		return o, fmt.Errorf("bad Options.Perm %v: give permission bits only, or 0 for 0o640", o.Perm)
	case o.Sync != Never && o.Sync != EachWrite:
		return o, fmt.Errorf("bad Options.Sync %v: give file.Never or file.EachWrite", o.Sync)
	case o.CloseTimeout < 0:
		return o, fmt.Errorf("bad Options.CloseTimeout %v: give a positive time, or 0 for 5s", o.CloseTimeout)
	}
	return o, nil
}

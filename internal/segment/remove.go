package segment

import (
	"os"
	"time"
)

const (
	// freePiece is how many bytes of a removed file are freed at a time.
	freePiece = 4 << 20
	// freePause comes after each piece: 4 MiB in 5 ms is faster than a log is
	// written.
	freePause = 5 * time.Millisecond
)

// A freer gives back the blocks of removed files piece by piece. Where the file
// system is mounted with discard, one that is removed at once has the disk told
// of all its blocks, and writes wait for that: 140 ms were measured for 512 MiB.
// The zero value is ready for use; remove and stop are for one goroutine.
type freer struct {
	truncate func(f *os.File, size int64) error // nil: File.Truncate
	files    chan *os.File                      // without a name, for free alone; nil until there is one
	quit     chan struct{}
	done     chan struct{}
}

// remove takes the name away at once. The blocks follow, unless another process
// reads the file or it has another name.
func (r *freer) remove(name string) error {
	f, err := unname(name)
	if f == nil {
		return err
	}
	if r.files == nil {
		r.files, r.quit, r.done = make(chan *os.File, 2), make(chan struct{}), make(chan struct{})
		go r.run()
	}
	select {
	case r.files <- f:
	default: // files are removed faster than that
		_ = f.Close()
	}
	return nil
}

func (r *freer) run() {
	defer close(r.done)
	for f := range r.files {
		r.free(f)
	}
}

// free gives back what f has. Whatever fails, Close does it at once.
func (r *freer) free(f *os.File) {
	defer f.Close()
	truncate := r.truncate
	if truncate == nil {
		truncate = (*os.File).Truncate
	}
	info, err := f.Stat()
	if err != nil {
		return
	}
	for size := info.Size() - freePiece; size > 0; size -= freePiece {
		if truncate(f, size) != nil {
			return
		}
		select {
		case <-time.After(freePause):
		case <-r.quit:
			return
		}
	}
}

// stop frees what is left at once and ends the goroutine.
func (r *freer) stop() {
	if r.files != nil {
		close(r.quit)
		close(r.files)
		<-r.done
	}
}

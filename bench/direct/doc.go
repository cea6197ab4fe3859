// Package direct measures slab.Writer with several shards, over a file past the
// page cache, against the design that was published for the same job, "Async
// Logger with Direct I/O", and against the steps that led its authors there.
// These are written anew from the text, with what it says and shows of them,
// losses included.
//
// Every record carries its producer, its number and, where it is large, a
// checksum. After each run the whole file is read back and compared, record by
// record, with what the logger accepted. A refused record is a drop that the
// caller knows of; an accepted record that is in no file is lost.
package direct

import (
	"errors"
	"time"

	"github.com/rollway/rollway/bench/internal/measure"
	"github.com/rollway/rollway/file"
	"github.com/rollway/rollway/internal/promtext"
	"github.com/rollway/rollway/slab"
)

// The headline load: from that many goroutines a record of that many bytes, its
// newline included, in each period, which is a thousand times a second. It is a
// little less than a millisecond, so that what is done in each does not keep
// step with the system's clock, which would see all of it or nothing.
const (
	period          = 997 * time.Microsecond
	headlineBytes   = 300 << 10
	headlineThreads = 100
)

// ErrFull is what a baseline returns for a record that it refuses.
var ErrFull = errors.New("buffer full")

// A Logger takes records from many goroutines.
type Logger interface {
	// LogBytes appends p, which has no newline, and a newline, or returns an
	// error and nothing of p is to be written. The byte after p is a newline, too.
	LogBytes(p []byte) error
	// Close writes what is left. Nobody logs any more.
	Close() error
	// Figures is called after Close.
	Figures() Figures
}

// Figures are what a Logger says of itself.
type Figures struct {
	Flushes uint64 // writes of buffers to the file
	Write   measure.Quantiles
	Memory  int // bytes of all buffers
}

// Config is what every design is configured with.
type Config struct {
	Path       string
	BufferSize int // bytes of one set of buffers, over all shards
	Shards     int
	Flush      time.Duration
	IO         Engine // how sets get to the file; Vectored unless it is the subject
	Unpooled   bool   // with Copied: new memory for each flush
}

// A Design is a way to make a Logger.
type Design struct {
	Name string
	// Own is set for this project's writer, Lossy where accepted records may
	// be missing in the file by design: in all others that fails the run.
	Own, Lossy bool
	Open       func(Config) (Logger, error)
}

// Names of designs that experiments choose.
const (
	Published = "published: sharded double buffer CAS"
	OwnDrop   = "slab, shards, Drop"
)

// Designs lists the steps of the publication in its order and then ours.
func Designs() []Design {
	return []Design{
		{Name: "mutex", Open: openMutex(true)},
		{Name: "sharded mutex", Open: openMutex(false)},
		{Name: "CAS", Lossy: true, Open: openCAS(func(c Config) (sets, shards int) { return 1, 1 })},
		{Name: "sharded CAS", Lossy: true, Open: openCAS(func(c Config) (sets, shards int) { return c.Shards, 1 })},
		{Name: Published, Lossy: true, Open: openCAS(func(c Config) (sets, shards int) { return 1, c.Shards })},
		ownDesign(OwnDrop, ownOptions{mode: file.Direct, full: slab.Drop}),
		ownDesign("slab, shards, Block", ownOptions{mode: file.Direct, full: slab.Block}),
	}
}

// design returns the one of that name.
func design(name string) Design {
	for _, d := range Designs() {
		if d.Name == name {
			return d
		}
	}
	panic("no design " + name)
}

// figures are those of writes that took as long as h says.
func figures(h *promtext.Histogram) Figures {
	return Figures{Flushes: h.Count(), Write: measure.QuantilesOf(h)}
}

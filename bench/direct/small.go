package direct

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/rollway/rollway/bench/internal/rivals"
	"github.com/rollway/rollway/bench/writers"
	"github.com/rollway/rollway/file"
	"github.com/rollway/rollway/slab"
)

// smallGoroutines is how many write small lines.
var smallGoroutines = []int{2, 8, 64}

// smallDesigns lists the writers of small lines, ours first, in several forms, then the
// step of the publication that loses nothing and has shards. Others have the
// settings that they are documented with. A diode may lose lines, the rest not.
func smallDesigns() []Design {
	all := []Design{
		shardedSlabs(ownOptions{mode: file.Direct}, 2<<20),
		shardedSlabs(ownOptions{mode: file.Direct, sets: 8}, 2<<20),
		shardedSlabs(ownOptions{mode: file.Uncached}, 2<<20),
		shardedSlabs(ownOptions{mode: file.Buffered}, 2<<20),
		shardedSlabs(ownOptions{mode: file.Buffered, sets: 8}, 64<<10),
		design(ShardedMutex),
		{Name: "slab over file", Open: func(c Config) (Logger, error) {
			f, err := file.Open(c.Path, file.Options{})
			if err != nil {
				return nil, err
			}
			w, err := rivals.Slab(slab.Options{Full: slab.Block})(f)
			return lineWriter{w, f}, err
		}},
	}
	for _, w := range writers.Writers() {
		switch w.Name {
		case "mutex + bufio 64 KiB", "zap BufferedWriteSyncer 256 KiB", "phuslu AsyncWriter 4096", "zerolog diode 1000", "zerolog diode 100000":
			all = append(all, Design{Name: w.Name, Lossy: w.Lossy, Open: func(c Config) (Logger, error) {
				f, err := os.Create(c.Path)
				if err != nil {
					return nil, err
				}
				out, err := w.Open(struct{ io.Writer }{f}) // zap's would call fsync, and the diode close it
				return lineWriter{out, f}, err
			}})
		}
	}
	return all
}

// smallShards is how many shards the writers of small lines have that have shards.
const smallShards = 2

// shardedSlabs is our writer with slabs of that many bytes.
func shardedSlabs(o ownOptions, size int) Design {
	o.full, o.sets = slab.Block, cmp.Or(o.sets, 2)
	return Design{
		Name: fmt.Sprintf("slab, %d shards, %d × %d KiB, %v", smallShards, smallShards*o.sets, size>>10, o.mode), Own: true,
		Open: func(c Config) (Logger, error) {
			c.BufferSize = c.Shards * size
			return openOwn(c, o)
		},
	}
}

func (s Settings) small() []Subject {
	var subjects []Subject
	for _, goroutines := range smallGoroutines {
		for _, d := range smallDesigns() {
			u := Subject{
				Case: CaseSmall, Mode: smallMode(goroutines), Design: d,
				load:   load{goroutines: goroutines, each: s.records(400_000) / goroutines, size: writers.LineBytes},
				config: Config{BufferSize: 4 << 20, Shards: smallShards, Flush: 100 * time.Millisecond},
			}
			subjects = append(subjects, u)
			if goroutines == syncedGoroutines {
				u.Mode, u.Design = SyncedMode, synced(d)
				subjects = append(subjects, u)
			}
		}
	}
	return subjects
}

// SyncedMode is that of lines that have to be on the disk. Written through the
// page cache they are not when they are in the file.
const (
	syncedGoroutines = 8
	SyncedMode       = "8 goroutines, on the disk"
)

// synced is d with an fsync of its file at the end.
func synced(d Design) Design {
	open := d.Open
	d.Open = func(c Config) (Logger, error) {
		l, err := open(c)
		return syncing{l, c.Path}, err
	}
	return d
}

type syncing struct {
	Logger
	path string
}

func (s syncing) Close() error {
	if err := s.Logger.Close(); err != nil {
		return err
	}
	f, err := os.OpenFile(s.path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// smallMode names a number of goroutines.
func smallMode(goroutines int) string { return fmt.Sprintf("%d goroutines", goroutines) }

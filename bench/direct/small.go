package direct

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/rollway/rollway/bench/internal/measure"
	"github.com/rollway/rollway/bench/writers"
	"github.com/rollway/rollway/file"
	"github.com/rollway/rollway/slab"
)

// Goroutines lists how many write small lines.
func Goroutines() []int { return []int{2, 8, 64} }

// Rivals lists the writers of small lines, ours first, in several forms, then the
// step of the publication that loses nothing and has shards. Others have the
// settings that they are documented with. A diode may lose lines, the rest not.
func Rivals() []Design {
	rivals := []Design{
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
			w, err := slab.New(f, slab.Options{Full: slab.Block})
			return lineWriter{w, f}, err
		}},
	}
	for _, w := range writers.Writers() {
		switch w.Name {
		case "mutex + bufio 64 KiB", "zap BufferedWriteSyncer 256 KiB", "phuslu AsyncWriter 4096", "zerolog diode 1000", "zerolog diode 100000":
			rivals = append(rivals, Design{Name: w.Name, Lossy: w.Lossy, Open: func(c Config) (Logger, error) {
				f, err := os.Create(c.Path)
				if err != nil {
					return nil, err
				}
				out, err := w.Open(struct{ io.Writer }{f}) // zap's would call fsync, and the diode close it
				return lineWriter{out, f}, err
			}})
		}
	}
	return rivals
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
	for _, goroutines := range Goroutines() {
		for _, d := range Rivals() {
			u := Subject{
				Case: CaseSmall, Mode: SmallMode(goroutines), Design: d,
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

func smallTable(g *grid) (string, error) {
	modes := []string{}
	for _, n := range Goroutines() {
		modes = append(modes, SmallMode(n))
	}
	modes = append(modes, SyncedMode)
	head := []string{"a line until all are in the file: median (least to most)"}
	for _, mode := range modes {
		head = append(head, mode+", ns", "CPU ns")
	}
	t := measure.NewTable(append(head, "lines lost")...)
	for _, d := range Rivals() {
		row := []string{d.Name}
		lost, given := 0.0, 0.0
		for _, mode := range modes {
			s, err := g.at(d.Name, mode)
			if err != nil {
				return "", err
			}
			row = append(row, fmt.Sprintf("%s (%s–%s)", measure.Number(s.Ns), measure.Number(s.MinNs), measure.Number(s.MaxNs)), measure.Number(s.CPUNs))
			lost, given = lost+g.total(d.Name, mode, "lost"), given+g.total(d.Name, mode, "given")
		}
		t.Row(append(row, percent(lost, given))...)
	}
	return "\n" + t.String(), nil
}

// SmallMode names a number of goroutines.
func SmallMode(goroutines int) string { return fmt.Sprintf("%d goroutines", goroutines) }

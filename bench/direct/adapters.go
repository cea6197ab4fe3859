package direct

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/rollway/rollway/bench/writers"
	"github.com/rollway/rollway/file"
	"github.com/rollway/rollway/shard"
	"github.com/rollway/rollway/slab"
)

// NoCall is the design that logs nothing: what it takes is the loop's.
const NoCall = "no call"

type none struct{}

func openNone(c Config) (Logger, error) { return none{}, os.WriteFile(c.Path, nil, 0o644) }

func (none) LogBytes([]byte) error { return ErrFull }
func (none) Close() error          { return nil }
func (none) Figures() Figures      { return Figures{} }

// unpooled is d as the publication had it before its pools: each record is
// copied to new memory to get its newline.
func unpooled(d Design) Design {
	open := d.Open
	d.Open = func(c Config) (Logger, error) {
		l, err := open(c)
		return copying{l}, err
	}
	return d
}

type copying struct{ Logger }

func (c copying) LogBytes(p []byte) error {
	line := append(append(make([]byte, 0, 308<<10), p...), '\n')
	return c.Logger.LogBytes(line[:len(p)])
}

// lineWriter is an io.Writer of lines as a Logger. LogBytes takes the byte
// behind p as its newline: the lines of package lines have it there.
type lineWriter struct {
	io.WriteCloser
	dst io.Closer
}

func (w lineWriter) LogBytes(p []byte) error {
	_, err := w.Write(p[:len(p)+1])
	return err
}

func (w lineWriter) Close() error { return errors.Join(w.WriteCloser.Close(), w.dst.Close()) }

func (lineWriter) Figures() Figures { return Figures{} }

// Goroutines lists how many write small lines.
func Goroutines() []int { return []int{2, 8, 64} }

// Rivals lists the writers of small lines, ours first. Each has the settings
// that it is documented with; none may lose a line.
func Rivals() []Design {
	rivals := []Design{
		{Name: "shard, Direct", Own: true, Open: openLines(shard.Direct)},
		{Name: "shard, Buffered", Own: true, Open: openLines(shard.Buffered)},
		{Name: "slab over file", Open: func(c Config) (Logger, error) {
			f, err := file.Open(c.Path, file.Options{})
			if err != nil {
				return nil, err
			}
			w, err := slab.New(f, slab.Options{})
			return lineWriter{w, f}, err
		}},
	}
	for _, w := range writers.Writers() {
		switch w.Name {
		case "mutex + bufio 64 KiB", "zap BufferedWriteSyncer 256 KiB", "phuslu AsyncWriter 4096":
			rivals = append(rivals, Design{Name: w.Name, Open: func(c Config) (Logger, error) {
				f, err := os.Create(c.Path)
				if err != nil {
					return nil, err
				}
				out, err := w.Open(f)
				return lineWriter{out, f}, err
			}})
		}
	}
	return rivals
}

// ownLines is own with lines given whole, as the rivals get them.
type ownLines struct{ own }

func openLines(mode shard.Mode) func(Config) (Logger, error) {
	return func(c Config) (Logger, error) {
		w, err := openOwn(c, ownOptions{mode: mode, full: shard.Block})
		return ownLines{w}, err
	}
}

func (o ownLines) LogBytes(p []byte) error {
	_, err := o.Write(p[:len(p)+1])
	return err
}

func (s Settings) small() []Subject {
	var subjects []Subject
	for _, goroutines := range Goroutines() {
		for _, d := range Rivals() {
			subjects = append(subjects, Subject{
				CaseSmall, SmallMode(goroutines), d,
				load{goroutines: goroutines, each: s.records(400_000) / goroutines, size: writers.LineBytes},
				Config{BufferSize: 4 << 20, Shards: 2, Flush: 100 * time.Millisecond},
			})
		}
	}
	return subjects
}

// SmallMode names a number of goroutines.
func SmallMode(goroutines int) string { return fmt.Sprintf("%d goroutines", goroutines) }

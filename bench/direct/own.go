package direct

import (
	"cmp"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/rollway/rollway/file"
	"github.com/rollway/rollway/internal/promtext"
	"github.com/rollway/rollway/line"
	"github.com/rollway/rollway/slab"
)

// own is slab.Writer over file.File.
type own struct {
	*slab.Writer
	full    slab.Policy
	writes  *promtext.Histogram
	memory  int           // bytes of all slabs
	refused atomic.Uint64 // records
}

type ownOptions struct {
	full slab.Policy
	mode file.Mode
	sets int   // of buffers; default 2
	max  int64 // file.Options.MaxSize
}

func ownDesign(name string, o ownOptions) Design {
	return Design{Name: name, Own: true, Open: func(c Config) (Logger, error) { return openOwn(c, o) }}
}

// openOwn opens a Writer with as much memory as the sets have. A set has a slab for
// each shard.
func openOwn(c Config, o ownOptions) (*own, error) {
	f, err := file.Open(c.Path, file.Options{Mode: o.mode, MaxSize: o.max})
	if err != nil {
		return nil, err
	}
	size, count := c.BufferSize/c.Shards, c.Shards*cmp.Or(o.sets, 2)
	timed := &timedFile{File: f}
	w, err := slab.New(timed, slab.Options{
		Shards: c.Shards, SlabSize: size, SlabCount: count, FlushInterval: c.Flush, Full: o.full, NoNotice: true,
		CloseTimeout: time.Minute,    // other programs may keep the disk busy
		OnError:      func(error) {}, // stalls are among the results
	})
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &own{Writer: w, full: o.full, writes: &timed.writes, memory: size * count}, nil
}

// LogBytes returns ErrFull where Write would drop the record and return nil.
// TryWriteLevel reserves slabs for important lines; with LevelError a record may use
// every slab.
func (o *own) LogBytes(p []byte) error {
	record := p[:len(p)+1]
	if o.full == slab.Block {
		_, err := o.Write(record)
		return err
	}
	err := o.TryWriteLevel(slog.LevelError, record)
	if errors.Is(err, line.ErrFull) {
		o.refused.Add(1)
		return ErrFull
	}
	return err
}

func (o *own) Figures() Figures {
	f := figures(o.writes)
	f.Memory = o.memory
	return f
}

// A timedFile times the writes of a slab.Writer to a File.
type timedFile struct {
	*file.File
	writes promtext.Histogram
}

func (f *timedFile) WriteBuffers(buffers [][]byte, lines uint64) (n int64, err error) {
	begin := time.Now()
	defer func() { f.writes.Record(time.Since(begin)) }()
	return f.File.WriteBuffers(buffers, lines)
}

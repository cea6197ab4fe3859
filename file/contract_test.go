package file_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rollway/rollway/file"
	"github.com/rollway/rollway/rollwaytest"
	"github.com/rollway/rollway/slab"
)

// The contract of a line writer, with every kind of options, in every mode, and
// behind a slab.Writer.
func TestLineWriter(t *testing.T) {
	t.Parallel()
	options := map[string]file.Options{
		"one file":          {},
		"by size":           {MaxSize: 50_000, Compress: file.Gzip{Level: 1}, KeepPlain: 1},
		"by time":           {Every: time.Second},
		"fsync by interval": {MaxSize: 100_000, Sync: file.SyncInterval, SyncEvery: time.Millisecond},
		"fsync each write":  {MaxSize: 100_000, Sync: file.SyncEachWrite},
	}
	for name, o := range options {
		for _, mode := range modes {
			if o.Sync == file.SyncEachWrite && mode != file.Buffered {
				continue // the modes differ in the write, and a disk takes long for each fsync
			}
			t.Run(fmt.Sprintf("%s, %v", name, mode), func(t *testing.T) {
				need(t, mode)
				t.Parallel()
				o := o
				o.Mode = mode
				rollwaytest.TestLineWriter(t, rollwaytest.Subject{Virtual: true, Slow: mode == file.Direct, Open: func(t *testing.T) *rollwaytest.Instance {
					_, in := instance(t, o)
					return in
				}})
				if o.MaxSize > 0 && o.Sync == file.SyncNever { // the others are what they are without a slab
					t.Run("behind a slab", func(t *testing.T) {
						rollwaytest.TestLineWriter(t, rollwaytest.Subject{Virtual: true, Slow: mode == file.Direct, Open: func(t *testing.T) *rollwaytest.Instance {
							return behindSlab(t, o)
						}})
					})
				}
			})
		}
	}
}

// instance is a File for the suite.
func instance(t *testing.T, o file.Options) (*file.File, *rollwaytest.Instance) {
	path := filepath.Join(fastDir(t, o.Mode), "log")
	o.OnError = func(err error) { t.Errorf("OnError(%v)", err) }
	f := open(t, path, o)
	return f, &rollwaytest.Instance{
		Midway: true, // a line that is in two pages comes one page after the other
		Writer: f,
		Delivered: func() []byte {
			_, contents := parts(t, path, nil)
			return []byte(strings.Join(contents, ""))
		},
		Ledger: func() rollwaytest.Ledger { return ledger(f) },
	}
}

func behindSlab(t *testing.T, o file.Options) *rollwaytest.Instance {
	f, in := instance(t, o)
	dst := &gated{File: f}
	t.Cleanup(dst.heal)
	w, err := slab.New(dst, slab.Options{Full: slab.Block, CloseTimeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	in.Writer, in.Stall, in.Fail, in.Heal = w, dst.stall, dst.fail, dst.heal
	in.Ledger = func() rollwaytest.Ledger {
		s := w.Stats()
		return rollwaytest.Ledger{Ledger: s.Ledger}
	}
	return in
}

// gated is a File whose disk hangs or fails when told to.
type gated struct {
	*file.File
	mu      sync.Mutex
	failing bool
	stalled chan struct{} // closed by heal
}

func (g *gated) Write(p []byte) (int, error) {
	if err := g.pass(); err != nil {
		return 0, err
	}
	return g.File.Write(p)
}

func (g *gated) WriteBuffers(buffers [][]byte, lines uint64) (int64, error) {
	if err := g.pass(); err != nil {
		return 0, err
	}
	return g.File.WriteBuffers(buffers, lines)
}

// pass waits while the disk hangs, and fails if it does.
func (g *gated) pass() error {
	g.mu.Lock()
	failing, stalled := g.failing, g.stalled
	g.mu.Unlock()
	if stalled != nil {
		<-stalled
	}
	if failing {
		return rollwaytest.ErrFault
	}
	return nil
}

func (g *gated) stall() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.stalled = make(chan struct{})
}

func (g *gated) fail() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.failing = true
}

func (g *gated) heal() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.failing = false
	if g.stalled != nil {
		close(g.stalled)
		g.stalled = nil
	}
}

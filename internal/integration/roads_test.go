package integration

import (
	"bytes"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/rollway/rollway/file"
	"github.com/rollway/rollway/line"
	"github.com/rollway/rollway/remote"
	"github.com/rollway/rollway/rollwaytest"
	"github.com/rollway/rollway/slab"
)

// A combination is a writer that buffers before one that writes.
type combination struct {
	name string
	head func(t testing.TB, dst, spare io.Writer) (*head, error)
	end  func(testing.TB) *end

	keeps    bool // what Close cannot deliver is kept for the next writer
	failover bool // the head has a failover, an end of the same kind
	drops    bool // lines that find no room are dropped: not in the suite
	virtual  bool // no network: runs in a bubble of testing/synctest
	longLine int  // see rollwaytest.Subject
}

// combinations are what a user may build, each with small buffers and short
// waits, so that much happens.
func combinations() []combination {
	var (
		plain   = file.Options{}
		rotates = file.Options{MaxSize: 50_000, Compress: file.Gzip{Level: 1}, KeepPlain: 1}
		fsyncs  = file.Options{MaxSize: 400_000, Sync: file.SyncEachWrite}
		past    = file.Options{Mode: direct, MaxSize: 50_000, Compress: file.Gzip{Level: 1}}
		far     = file.Options{Mode: direct}
		timed   = file.Options{Every: time.Second, Sync: file.SyncInterval, SyncEvery: 10 * time.Millisecond}
		tiny    = slab.Options{SlabSize: 1024, SlabCount: 16}
		urgent  = slab.Options{SlabSize: 4096, WriteThrough: slog.LevelWarn, MaxWait: 20 * time.Millisecond}
		four    = slab.Options{Shards: 4, SlabCount: 16}
		large   = slab.Options{SlabSize: 1 << 20, SlabCount: 4}
		shards  = slab.Options{SlabSize: 1 << 20, SlabCount: 8, Shards: 4}
	)
	all := []combination{
		{name: "slab over file", head: slabHead(slab.Options{}), end: fileEnd(plain), virtual: true},
		{name: "tiny slabs over file", head: slabHead(tiny), end: fileEnd(plain), virtual: true},
		{name: "slab over file that rotates by size and packs", head: slabHead(slab.Options{SlabSize: 8 << 10}), end: fileEnd(rotates), virtual: true},
		{name: "slab over file that rotates by time", head: slabHead(tiny), end: fileEnd(timed), virtual: true},
		{name: "slab over file with fsync of each write", head: slabHead(slab.Options{}), end: fileEnd(fsyncs), virtual: true},
		{name: "slab with write-through over file", head: slabHead(urgent), end: fileEnd(plain), virtual: true},
		{name: "slab with failover from file to file", head: slabHead(slab.Options{SlabSize: 4096}), end: fileEnd(plain), virtual: true, failover: true},
		{name: "slab over file past the page cache", head: slabHead(slab.Options{SlabSize: 8 << 10}), end: fileEnd(past), virtual: true},
		{name: "slab over file uncached", head: slabHead(tiny), end: fileEnd(file.Options{Mode: uncached}), virtual: true},
		{name: "slab over slab", head: slabHead(slab.Options{SlabSize: 4096}), end: slabEnd, virtual: true},
		{name: "sharded slab over file", head: slabHead(four), end: fileEnd(plain), virtual: true, longLine: 60_000},
		{name: "sharded slab over file that rotates by size and packs", head: slabHead(four), end: fileEnd(rotates), virtual: true, longLine: 60_000},
		{name: "sharded slab over file past the page cache", head: slabHead(four), end: fileEnd(past), virtual: true, longLine: 60_000},
		{name: "sharded slab with failover from file to file", head: slabHead(four), end: fileEnd(plain), virtual: true, failover: true, longLine: 60_000},
		{name: "sharded slab over slab", head: slabHead(four), end: slabEnd, virtual: true, longLine: 60_000},
		{name: "large slabs over file past the page cache", head: slabHead(large), end: fileEnd(far), virtual: true},
		{name: "sharded large slabs over file past the page cache", head: slabHead(shards), end: fileEnd(far), virtual: true},
		{name: "slab that drops over file", head: slabHead(slab.Options{SlabSize: 1024, Full: slab.Drop}), end: fileEnd(plain), virtual: true, drops: true},
		{name: "sharded slab that drops over file", head: slabHead(slab.Options{SlabSize: 32 << 10, SlabCount: 8, Shards: 4, Full: slab.Drop}), end: fileEnd(plain), virtual: true, drops: true},

		{name: "slab over http", head: slabHead(slab.Options{}), end: httpEnd(remote.Options{Compress: remote.Gzip{}})},
		{name: "slab over http with a spill", head: slabHead(slab.Options{SlabSize: 8 << 10}), end: httpEnd(remote.Options{Spill: remote.Spill{Dir: "made by the end"}})},
		{name: "slab over tcp", head: slabHead(slab.Options{}), end: streamEnd("tcp")},
		{name: "slab over tls", head: slabHead(slab.Options{}), end: streamEnd("tls")},
		{name: "slab over unix", head: slabHead(tiny), end: streamEnd("unix")},
		{name: "slab over udp", head: slabHead(slab.Options{SlabSize: 8 << 10}), end: gramEnd("udp"), longLine: 60_000},
		{name: "slab over loki", head: slabHead(slab.Options{}), end: lokiEnd()},
		{name: "slab over elastic", head: slabHead(slab.Options{}), end: elasticEnd()},
		{name: "slab over syslog by tcp", head: slabHead(slab.Options{}), end: syslogTCPEnd},
		{name: "sharded slab over loki", head: slabHead(four), end: lokiEnd(), longLine: 60_000},
		{name: "sharded slab over http", head: slabHead(four), end: httpEnd(remote.Options{}), longLine: 60_000},
		{name: "sharded slab over tcp", head: slabHead(four), end: streamEnd("tcp"), longLine: 60_000},
	}
	if runtime.GOOS == "linux" {
		all = append(all, combination{name: "slab over unixgram", head: slabHead(slab.Options{SlabSize: 8 << 10}), end: gramEnd("unixgram"), longLine: 60_000},
			combination{name: "slab over syslog by datagrams", head: slabHead(slab.Options{SlabSize: 8 << 10}), end: messageEnd("syslog+unix", inSyslog, messageLine), longLine: 60_000},
			combination{name: "slab over journald", head: slabHead(slab.Options{SlabSize: 8 << 10}), end: messageEnd("journald", inJournal, entryLine)})
	}
	if runtime.GOOS == "linux" || runtime.GOOS == "darwin" {
		all = append(all, persisted()...)
	}
	return all
}

// persisted are combinations with slabs in a file.
func persisted() []combination {
	head := func(o slab.Options) func(testing.TB, io.Writer, io.Writer) (*head, error) {
		o.Persist = "made by the head"
		return slabHead(o)
	}
	rotates := file.Options{MaxSize: 50_000, Compress: file.Gzip{Level: 1}, KeepPlain: 1}
	urgent := slab.Options{SlabSize: 4096, WriteThrough: slog.LevelWarn, MaxWait: 20 * time.Millisecond}
	return []combination{
		{name: "persisted slab over file", keeps: true, head: head(slab.Options{}), end: fileEnd(file.Options{}), virtual: true},
		{name: "tiny persisted slabs over file that rotates by size and packs", keeps: true, head: head(slab.Options{SlabSize: 1024, SlabCount: 16}), end: fileEnd(rotates), virtual: true},
		{name: "persisted slab with write-through over file", keeps: true, head: head(urgent), end: fileEnd(file.Options{}), virtual: true},
		{name: "persisted slab with failover from file to file", keeps: true, head: head(slab.Options{SlabSize: 4096}), end: fileEnd(file.Options{}), virtual: true, failover: true},
		{name: "persisted slab over file past the page cache", keeps: true, head: head(slab.Options{SlabSize: 4096}), end: fileEnd(file.Options{Mode: direct, MaxSize: 50_000}), virtual: true},
		{name: "persisted slab over slab", keeps: true, head: head(slab.Options{SlabSize: 4096}), end: slabEnd, virtual: true},
		{name: "persisted slab that drops over file", keeps: true, head: head(slab.Options{SlabSize: 1024, Full: slab.Drop}), end: fileEnd(file.Options{}), virtual: true, drops: true},

		{name: "persisted slab over http", keeps: true, head: head(slab.Options{}), end: httpEnd(remote.Options{Compress: remote.Gzip{}})},
		{name: "persisted slab over http with a spill", keeps: true, head: head(slab.Options{SlabSize: 8 << 10}), end: httpEnd(remote.Options{Spill: remote.Spill{Dir: "made by the end"}})},
		{name: "persisted slab over tcp", keeps: true, head: head(slab.Options{}), end: streamEnd("tcp")},
	}
}

// inMemory returns a new folder, on a tmpfs if there is one.
func inMemory(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "combine-test-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// A head is the first writer of a road.
type head struct {
	line.Writer
	ledger  func() rollwaytest.Ledger
	notices func() uint64 // lines that it wrote by itself
}

// WriteLevel is that of the writer.
func (h *head) WriteLevel(level slog.Level, p []byte) (int, error) {
	return h.Writer.(interface {
		WriteLevel(slog.Level, []byte) (int, error)
	}).WriteLevel(level, p)
}

func slabLedger(w *slab.Writer) rollwaytest.Ledger {
	s := w.Stats()
	return rollwaytest.Ledger{Ledger: s.Ledger}
}

func slabHead(o slab.Options) func(t testing.TB, dst, spare io.Writer) (*head, error) {
	return func(t testing.TB, dst, spare io.Writer) (*head, error) {
		o := o
		if o.Persist != "" {
			o.Persist = filepath.Join(inMemory(t), "slabs")
		}
		o.FlushInterval = 5 * time.Millisecond
		o.CloseTimeout = time.Minute
		if o.Full != slab.Drop {
			o.Full = slab.Block
		}
		if spare != nil {
			o.Failover, o.MaxWait = spare, 8*time.Millisecond
		}
		w, err := slab.New(dst, o)
		if err != nil {
			return nil, err
		}
		return &head{
			Writer:  w,
			ledger:  func() rollwaytest.Ledger { return slabLedger(w) },
			notices: func() uint64 { return w.Stats().Notices },
		}, nil
	}
}

// A road is a combination at work: head, gate, end, and with a failover a
// second gate and end.
type road struct {
	*head
	gates []*gate
	ends  []*end
}

func (c combination) open(t testing.TB) *road {
	t.Helper()
	r := new(road)
	add := func() io.Writer {
		e := c.end(t)
		g := &gate{Writer: e.Writer}
		r.ends, r.gates = append(r.ends, e), append(r.gates, g)
		if _, is := e.Writer.(vectored); is {
			return vectoredGate{g}
		}
		return g
	}
	dst := add()
	var spare io.Writer
	if c.failover {
		spare = add()
	}
	h, err := c.head(t, dst, spare)
	if err != nil {
		t.Fatal(err)
	}
	r.head = h
	t.Cleanup(func() {
		for _, g := range r.gates {
			g.heal()
		}
		h.Close()
	})
	return r
}

// A gate is before an end and makes it stall or fail.
type gate struct {
	line.Writer
	mu      sync.Mutex
	calls   int // of Write
	failing bool
	panics  bool
	syncErr error
	next    []int         // how many lines the next Writes take before they fail
	stalled chan struct{} // closed by heal
}

func (g *gate) Write(p []byte) (int, error) {
	lines := g.pass()
	if lines == everyLine {
		return g.Writer.Write(p)
	}
	return g.take(p, lines)
}

// everyLine is what pass returns for a call that does not fail.
const everyLine = -1

// pass waits while the end stalls, and returns how many lines it takes.
func (g *gate) pass() (lines int) {
	g.mu.Lock()
	g.calls++
	failing, panics, stalled, lines := g.failing, g.panics, g.stalled, everyLine
	if len(g.next) > 0 {
		lines, g.next = g.next[0], g.next[1:]
	}
	g.mu.Unlock()
	if stalled != nil {
		<-stalled
	}
	switch {
	case panics:
		panic("bang")
	case failing:
		return 0
	}
	return lines
}

// take passes on so many lines of p, and fails.
func (g *gate) take(p []byte, lines int) (int, error) {
	n := 0
	for ; lines > 0 && n < len(p); lines-- {
		n += bytes.IndexByte(p[n:], '\n') + 1
	}
	if n > 0 {
		if m, err := g.Writer.Write(p[:n]); err != nil {
			return m, err
		}
	}
	return n, rollwaytest.ErrFault
}

// A vectoredGate is before an end that takes several buffers at once.
type vectoredGate struct{ *gate }

func (g vectoredGate) WriteBuffers(buffers [][]byte, lines uint64) (int64, error) {
	most := g.pass()
	if most == everyLine {
		return g.Writer.(vectored).WriteBuffers(buffers, lines)
	}
	n, err := g.take(bytes.Join(buffers, nil), most)
	return int64(n), err
}

type vectored interface {
	WriteBuffers(buffers [][]byte, lines uint64) (int64, error)
}

func (g *gate) Sync() error {
	g.mu.Lock()
	err := g.syncErr
	g.mu.Unlock()
	if err != nil {
		return err
	}
	return g.Writer.Sync()
}

func (g *gate) called() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.calls
}

func (g *gate) failSync() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.syncErr = rollwaytest.ErrFault
}

func (g *gate) panicAlways() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.panics = true
}

// trip makes Writes to come fail after so many lines, one each.
func (g *gate) trip(lines ...int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.next = append(g.next, lines...)
}

func (g *gate) stall() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.stalled = make(chan struct{})
}

func (g *gate) fail() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.failing = true
}

func (g *gate) heal() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.failing, g.panics, g.syncErr, g.next = false, false, nil, nil
	if g.stalled != nil {
		close(g.stalled)
		g.stalled = nil
	}
}

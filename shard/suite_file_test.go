package shard_test

import (
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/rollway/rollway/internal/direct"
	"github.com/rollway/rollway/internal/segment"
	"github.com/rollway/rollway/rollwaytest"
	"github.com/rollway/rollway/shard"
)

// faultyLog is a file whose calls hang or fail while a test wants it.
type faultyLog struct {
	*segment.Log

	mu      sync.Mutex
	gate    chan struct{} // closed by heal; nil while nothing stalls
	err     error         // of every call
	panics  bool          // every call that writes
	syncErr error         // of Sync
}

// pass waits while the file stalls.
func (f *faultyLog) pass() error {
	for {
		f.mu.Lock()
		gate, err, panics := f.gate, f.err, f.panics
		f.mu.Unlock()
		if panics {
			panic("bang")
		}
		if gate == nil {
			return err
		}
		<-gate
	}
}

func (f *faultyLog) Write(p []byte) (int, error) {
	if err := f.pass(); err != nil {
		return 0, err
	}
	return f.Log.Write(p)
}

func (f *faultyLog) WriteBuffers(bufs [][]byte) (int64, error) {
	if err := f.pass(); err != nil {
		return 0, err
	}
	return f.Log.WriteBuffers(bufs)
}

func (f *faultyLog) Sync() error {
	if err := f.pass(); err != nil {
		return err
	}
	f.mu.Lock()
	err := f.syncErr
	f.mu.Unlock()
	if err != nil {
		return err
	}
	return f.Log.Sync()
}

func (f *faultyLog) stall() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.gate == nil {
		f.gate = make(chan struct{})
	}
}

func (f *faultyLog) fail() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.err = rollwaytest.ErrFault
}

func (f *faultyLog) panicAlways() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.panics = true
}

func (f *faultyLog) failSync() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.syncErr = rollwaytest.ErrFault
}

func (f *faultyLog) heal() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.gate != nil {
		close(f.gate)
	}
	f.gate, f.err, f.panics, f.syncErr = nil, nil, false, nil
}

// The files that Open writes to, with a fault before each call of them.
func TestLineWriterOnAFaultyFile(t *testing.T) {
	for _, mode := range []direct.Mode{direct.Direct, direct.Uncached, direct.Buffered} {
		t.Run(mode.String(), func(t *testing.T) {
			rollwaytest.TestLineWriter(t, rollwaytest.Subject{Virtual: true, Open: func(t *testing.T) *rollwaytest.Instance {
				path := filepath.Join(t.TempDir(), "log")
				file, err := segment.Open(path, segment.Options{Mode: mode, Perm: 0o600, CheckEvery: time.Second})
				if err != nil {
					t.Fatal(err)
				}
				dst := &faultyLog{Log: file}
				w, err := shard.New(dst, shard.Options{
					BufferSize: 2 << 20, Shards: 2, Full: shard.Block, FlushInterval: 5 * time.Millisecond, CloseDestination: true,
					Retry: shard.Retry{Min: time.Millisecond, Max: 5 * time.Millisecond},
				})
				if err != nil {
					t.Fatal(err)
				}
				return &rollwaytest.Instance{
					Writer: w,
					Delivered: func() []byte {
						data, err := os.ReadFile(path)
						if err != nil {
							t.Error(err)
						}
						return data
					},
					Midway: mode == direct.Direct,
					Ledger: func() rollwaytest.Ledger { return ledger(w) },
					Stall:  dst.stall,
					Fail:   dst.fail,
					Heal:   dst.heal,

					Panic:    dst.panicAlways,
					FailSync: dst.failSync,
				}
			}})
		})
	}
}

//go:build unix

package shard_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/rollway/rollway/shard"
)

// A process that is killed at any moment has lost no record that a Flush had
// written, and the file is whole but for its last line, which the next Open
// cuts.

const crashEnv = "ROLLWAY_SHARD_TEST_CRASH" // PATH|KIND|FIRST ROUND|GOROUTINES, and |LAST ROUND if it ends

const perRound = 20 // records of each goroutine between two Flushes

// TestMain is the writing process if the environment says so.
func TestMain(m *testing.M) {
	if spec := os.Getenv(crashEnv); spec != "" {
		if err := crashWriter(strings.Split(spec, "|")); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// smallFiles is the first of four kinds behind kinds that rotate all the time, half
// of them with old files removed or used again.
const smallFiles = 6

func crashOptions(kind int) shard.Options {
	if kind >= smallFiles {
		o := shard.Options{BufferSize: 512 << 10, Shards: 4, Full: shard.Block, FlushInterval: time.Millisecond, CloseTimeout: time.Minute}
		n := kind - smallFiles
		o.File = shard.FileOptions{Framed: n%2 == 1, Mode: shard.Direct, MaxSize: 250 << 10, Keep: n / 2 * 2, Sync: shard.SyncEach}
		return o
	}
	o := shard.Options{BufferSize: 8 << 20, Shards: 4, Full: shard.Block, FlushInterval: time.Millisecond}
	o.File = kinds[kind]
	o.File.MaxSize = 6 << 20
	return o
}

// crashWriter writes rounds of records for ever and tells the number of each on
// standard output once it was flushed.
func crashWriter(spec []string) error {
	kind, err1 := strconv.Atoi(spec[1])
	round, err2 := strconv.Atoi(spec[2])
	goroutines, err3 := strconv.Atoi(spec[3])
	w, err := shard.Open(spec[0], crashOptions(kind))
	if err := errors.Join(err, err1, err2, err3); err != nil {
		return err
	}
	last := -1
	if len(spec) > 4 {
		if last, err = strconv.Atoi(spec[4]); err != nil {
			return err
		}
	}
	for ; round != last; round++ {
		done := make(chan error)
		for g := range goroutines {
			go func() {
				var err error
				for i := round * perRound; i < (round+1)*perRound; i++ {
					err = errors.Join(err, w.LogBytes(crashRecord(g, i)))
				}
				done <- err
			}()
		}
		for range goroutines {
			err = errors.Join(err, <-done)
		}
		if err = errors.Join(err, w.Flush(context.Background())); err != nil {
			return err
		}
		if _, err := os.Stdout.Write(binary.LittleEndian.AppendUint64(nil, uint64(round+1))); err != nil {
			return err
		}
	}
	return w.Close()
}

func crashRecord(g, i int) []byte {
	size := 1 + (g*7919+i*104729)%1500
	if i%(3*perRound) == 7 {
		size = 100_000
	}
	return record(g, i, size)
}

// rounds takes what crashWriter tells.
type rounds struct{ n atomic.Int64 }

func (a *rounds) Write(p []byte) (int, error) {
	if len(p)%8 != 0 {
		return 0, errors.New("a torn number") // pipes do not tear 8 bytes
	}
	for b := p; len(b) > 0; b = b[8:] {
		a.n.Store(int64(binary.LittleEndian.Uint64(b)))
	}
	return len(p), nil
}

func TestKilled(t *testing.T) {
	const tries, goroutines = 4, 6
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 0))
	for kind := range smallFiles {
		mode := nameOf(kinds[kind])
		path := filepath.Join(t.TempDir(), "log")
		round, torn := 0, 0
		for try := range tries {
			tell := &rounds{}
			tell.n.Store(-1)
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s|%d|%d|%d", crashEnv, path, kind, round, goroutines))
			var stderr bytes.Buffer
			cmd.Stdout, cmd.Stderr = tell, &stderr
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			eventually(t, "a first round", func() bool { return tell.n.Load() > int64(round) })
			time.Sleep(time.Duration(rng.IntN(30_000)) * time.Microsecond)
			cmd.Process.Kill()
			var exit *exec.ExitError
			if err := cmd.Wait(); !errors.As(err, &exit) || !exit.Sys().(syscall.WaitStatus).Signaled() {
				t.Fatalf("%v, try %d: the writer ended with %v: %s", mode, try, err, &stderr)
			}
			data, err := os.ReadFile(path)
			if err != nil && !errors.Is(err, fs.ErrNotExist) { // killed between the two steps of a rotation
				t.Fatal(err)
			}
			if bytes.IndexByte(data, 0) >= 0 && !kinds[kind].Framed {
				t.Errorf("%v: a byte 0 after the kill", mode)
			}
			if len(data) > 0 && data[len(data)-1] != '\n' && !kinds[kind].Framed {
				torn++
			}
			// What an Open and a Close make of it is whole.
			w := openFile(t, path, crashOptions(kind))
			closeFile(t, w)
			acked := int(tell.n.Load())
			survived(t, goroutines, acked*perRound, round*perRound, seriesOf(t, path))
			round = nextRound(t, path)
		}
		t.Logf("%v: %d rounds, %d ended within a line; seed %d", mode, round, torn, seed)
	}
}

// survived wants every record below acked that was written by the last process,
// which began at first; of those before there is what was there then.
func survived(t *testing.T, goroutines, acked, first int, paths []string) {
	t.Helper()
	found := map[[2]int]bool{}
	last := map[int]int{}
	for _, path := range paths {
		readTorn(t, path, true, func(g, i int) {
			if n, ok := last[g]; ok && i <= n {
				t.Fatalf("%s: record %d of goroutine %d comes after %d", path, i, g, n)
			}
			last[g] = i
			found[[2]int{g, i}] = true
		})
	}
	for g := range goroutines {
		for i := first; i < acked; i++ {
			if !found[[2]int{g, i}] {
				t.Fatalf("record %d of goroutine %d was flushed and is not there", i, g)
			}
		}
	}
}

// nextRound returns the number of a round behind all that is in the files.
func nextRound(t *testing.T, path string) int {
	t.Helper()
	most := 0
	for _, name := range seriesOf(t, path) {
		readTorn(t, name, true, func(_, i int) { most = max(most, i) })
	}
	return most/perRound + 1
}

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rollway/rollway/shard"
)

const (
	killedGoroutines = 4
	killedRound      = 25 // records of each goroutine between two flushes
)

// runKilled is a service that logs framed records into files that it uses again
// and again, and prints how many rounds were flushed, until it is killed. A
// record says of which process and goroutine it is, and which one.
func runKilled(path, mode string, process int) error {
	o := shard.Options{BufferSize: 256 << 10, Shards: 4, Full: shard.Block, FlushInterval: time.Millisecond}
	o.File = shard.FileOptions{Framed: true, MaxSize: 400 << 10, Keep: 3}
	if mode == "direct" {
		o.File.Mode = shard.Direct
	}
	w, err := shard.Open(path, o)
	for round := 1; err == nil; round++ {
		var done sync.WaitGroup
		errs := make([]error, killedGoroutines)
		for g := range killedGoroutines {
			done.Go(func() {
				for i := (round - 1) * killedRound; i < round*killedRound; i++ {
					text := fmt.Sprintf("%d %d %d %s", process, g, i, strings.Repeat("x", (g*7919+i*104729)%1500))
					errs[g] = errors.Join(errs[g], w.LogBytes([]byte(text)))
				}
			})
		}
		done.Wait()
		if err = errors.Join(append(errs, w.Flush(context.Background()))...); err == nil {
			_, err = fmt.Println(round)
		}
	}
	return err
}

// Twenty processes after each other log into the same few files, each killed at
// any point. verify finds no damage, and cat prints what they had flushed: of
// each process that the files still know, every goroutine's records without a
// gap, up to the last one flushed at least.
func TestKilledServices(t *testing.T) {
	for _, mode := range []string{"buffered", "direct"} {
		t.Run(mode, func(t *testing.T) {
			seed := rand.Uint64()
			rnd := rand.New(rand.NewPCG(seed, 0))
			path := filepath.Join(t.TempDir(), "log.rec")
			flushed, reused := map[int]int{}, 0
			for process := range 20 {
				flushed[process] = killedService(t, path, mode, process, rnd.IntN(25))
				files, err := filepath.Glob(filepath.Join(filepath.Dir(path), "log*.rec"))
				if err != nil || len(files) == 0 {
					t.Fatalf("%v, %v", files, err)
				}
				if r := cli(t, "", append([]string{"verify"}, files...)...); r.code != exitOK {
					t.Fatalf("seed %d, process %d: %s%s", seed, process, r.stdout, r.stderr)
				}
				slices.Reverse(files) // the order in which they are named does not matter
				r := cli(t, "", append([]string{"cat"}, files...)...)
				r.want(t, exitOK)
				if oldest := checkKilled(t, r.stdout, flushed, process); oldest > 0 {
					reused++
				}
				if t.Failed() {
					t.Fatalf("seed %d, process %d: %s", seed, process, r.stderr)
				}
			}
			if reused == 0 {
				t.Error("no file was used again")
			}
		})
	}
}

// checkKilled looks at what cat printed after process was killed and returns the
// oldest process of which there are records.
func checkKilled(t *testing.T, text string, flushed map[int]int, process int) (oldest int) {
	t.Helper()
	oldest, latest := process, 0
	next := map[[2]int]int{} // by process and goroutine: number behind the last record
	for line := range strings.Lines(text) {
		var p, g, i int
		var pad string
		if n, err := fmt.Sscan(line, &p, &g, &i, &pad); n < 3 || len(pad) != (g*7919+i*104729)%1500 {
			t.Fatalf("%.60q: %v", line, err)
		}
		if p < latest {
			t.Fatalf("a record of process %d comes after one of %d", p, latest)
		}
		oldest, latest = min(oldest, p), p
		if n, ok := next[[2]int{p, g}]; (ok || p > oldest) && i != n {
			t.Fatalf("process %d, goroutine %d: record %d comes where %d was due", p, g, i, n)
		}
		next[[2]int{p, g}] = i + 1
	}
	for p := oldest; p <= process; p++ {
		for g := range killedGoroutines {
			n, ok := next[[2]int{p, g}]
			if least := flushed[p] * killedRound; n < least && (ok || p > oldest) {
				t.Errorf("process %d had flushed %d records of goroutine %d, %d are there", p, least, g, n)
			}
		}
	}
	return oldest
}

// killedService runs a service, kills it after so many flushes and returns how
// many it knew to be done.
func killedService(t *testing.T, path, mode string, process, flushes int) (done int) {
	t.Helper()
	cmd := exec.Command("mill", "log", path, fmt.Sprint(process), mode)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(out)
	for killed := false; ; {
		line, err := lines.ReadString('\n')
		if errors.Is(err, io.EOF) { // also within a line
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, err := fmt.Sscan(line, &done); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		if done > flushes && !killed {
			killed = true
			if err := cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
				t.Fatal(err)
			}
		}
	}
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) || exit.Exited() {
		t.Fatalf("process %d ended by itself: %v", process, err)
	}
	return done
}

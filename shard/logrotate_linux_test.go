package shard_test

import (
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/rollway/rollway/internal/needs"
	"github.com/rollway/rollway/shard"
)

// The configuration that docs/DEPLOYMENT.md shows, run by the real program
// while records come: each is in one of the files, packed ones included.
func TestLogrotate(t *testing.T) {
	logrotate := needs.Program(t, "logrotate")
	text := string(snapshot(t, filepath.Join("..", "docs", "logrotate.conf")))
	if doc := string(snapshot(t, filepath.Join("..", "docs", "DEPLOYMENT.md"))); !strings.Contains(doc, text) {
		t.Error("docs/DEPLOYMENT.md shows another configuration than docs/logrotate.conf")
	}
	for _, mode := range modes {
		t.Run(mode.String(), func(t *testing.T) {
			const goroutines, rounds = 4, 4
			path := filepath.Join(t.TempDir(), "payment.log")
			other := t.TempDir() // logrotate takes no folder for its own that it rotates in
			pid, conf := filepath.Join(other, "pid"), filepath.Join(other, "conf")
			own := strings.NewReplacer("/var/log/payment/payment.log", path, "/run/payment.pid", pid).Replace(text)
			if own == text {
				t.Fatal("the paths of the configuration have changed")
			}
			for name, data := range map[string]string{pid: fmt.Sprintln(os.Getpid()), conf: own} {
				if err := os.WriteFile(name, []byte(data), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			o := shard.Options{BufferSize: 512 << 10, Shards: 2, Full: shard.Block, FlushInterval: 2 * time.Millisecond, StallAfter: time.Minute}
			o.OnError = func(err error) {
				if !strings.Contains(err.Error(), "is written Buffered, not") {
					t.Errorf("OnError(%v)", err)
				}
			}
			o.File.Mode, o.File.CheckEvery = mode, -1 // on the signal only
			w := openFile(t, path, o)
			defer w.ReopenOn(syscall.SIGHUP)()
			var stop atomic.Bool
			var writers sync.WaitGroup
			var given [goroutines]int
			for g := range goroutines {
				writers.Go(func() {
					for ; !stop.Load(); given[g]++ {
						if err := w.LogBytes(record(g, given[g], 1+given[g]*7919%3000)); err != nil {
							t.Error(err)
						}
						time.Sleep(time.Millisecond)
					}
				})
			}
			for round := range rounds {
				from := w.Stats().Written
				eventually(t, "records in the new file", func() bool { return w.Stats().Written > from+20 })
				if out, err := exec.Command(logrotate, "-f", "-s", conf+".state", conf).CombinedOutput(); err != nil {
					t.Fatalf("logrotate: %v\n%s", err, out)
				}
				eventually(t, "the new file is in use", func() bool { return w.Stats().File.Reopens > uint64(round) })
			}
			stop.Store(true)
			writers.Wait()
			closeFile(t, w)
			files := []string{path, path + ".1"}
			for n := 2; n <= rounds; n++ {
				files = append(files, unpack(t, fmt.Sprintf("%s.%d.gz", path, n)))
			}
			last, found := map[int]int{}, 0
			for i := len(files) - 1; i >= 0; i-- { // from old to new: order holds across files
				readRecords(t, files[i], func(g, seq int) {
					if seq != last[g] {
						t.Fatalf("%s: record %d of goroutine %d, want %d", files[i], seq, g, last[g])
					}
					last[g]++
					found++
				})
			}
			total := 0
			for g, n := range given {
				if total += n; last[g] != n {
					t.Errorf("goroutine %d: %d records of %d", g, last[g], n)
				}
			}
			ledger(w).CheckSettled(t, total, found)
		})
	}
}

// unpack returns the path of a file with what a .gz holds.
func unpack(t *testing.T, packed string) string {
	t.Helper()
	in, err := os.Open(packed)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	r, err := gzip.NewReader(in)
	if err != nil {
		t.Fatalf("%s: %v", packed, err)
	}
	data, err := io.ReadAll(r)
	if err != nil {
		t.Fatalf("%s: %v", packed, err)
	}
	path := filepath.Join(t.TempDir(), filepath.Base(packed))
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

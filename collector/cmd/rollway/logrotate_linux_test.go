package main

import (
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/rollway/rollway/file"
	"github.com/rollway/rollway/internal/testkit"
	"github.com/rollway/rollway/slab"
)

// The configuration that docs/DEPLOYMENT.md shows, run by the real program while
// lines come: each line is in one of the files, packed ones included.
func TestDeploymentLogrotate(t *testing.T) {
	logrotate := testkit.Program(t, "logrotate")
	docs := filepath.Join("..", "..", "..", "docs")
	text := readText(t, filepath.Join(docs, "logrotate.conf"))
	if !strings.Contains(readText(t, filepath.Join(docs, "DEPLOYMENT.md")), text) {
		t.Error("docs/DEPLOYMENT.md shows another configuration than docs/logrotate.conf")
	}
	for _, mode := range []file.Mode{file.Buffered, file.Direct, file.Uncached} {
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
				writeFile(t, name, data)
			}
			f, err := file.Open(path, file.Options{Mode: mode, NoFollow: true, OnError: func(err error) { // on the signal only
				if !strings.Contains(err.Error(), "is written Buffered, not") {
					t.Errorf("OnError(%v)", err)
				}
			}})
			if err != nil {
				t.Fatal(err)
			}
			defer f.ReopenOn(syscall.SIGHUP)()
			w, err := slab.New(f, slab.Options{Shards: 2, Full: slab.Block, FlushInterval: 2 * time.Millisecond, OnError: func(error) {}})
			if err != nil {
				t.Fatal(err)
			}
			defer w.Close()
			var stop atomic.Bool
			var writers sync.WaitGroup
			var given [goroutines]int
			for g := range goroutines {
				writers.Go(func() {
					for ; !stop.Load(); given[g]++ {
						if _, err := io.WriteString(w, numberedLine(g, given[g])); err != nil {
							t.Error(err)
						}
						time.Sleep(time.Millisecond) // a load that four files can hold
					}
				})
			}
			for round := range rounds {
				from := w.Stats().Written
				until(t, "lines in the new file", func() bool { return w.Stats().Written > from+20 })
				if out, err := exec.Command(logrotate, "-f", "-s", conf+".state", conf).CombinedOutput(); err != nil {
					t.Fatalf("logrotate: %v\n%s", err, out)
				}
				until(t, "the new file is in use", func() bool { return f.Stats().Reopens > uint64(round) })
			}
			stop.Store(true)
			writers.Wait()
			if err := w.Close(); err != nil {
				t.Error(err)
			}
			all := ""
			for n := rounds; n > 1; n-- {
				all += unpacked(t, fmt.Sprintf("%s.%d.gz", path, n))
			}
			all += readText(t, path+".1") + readText(t, path)
			var found [goroutines]int
			for line := range strings.Lines(all) {
				if line = strings.TrimSpace(line); line == "" { // it fills a block
					continue
				}
				var g int
				if _, err := fmt.Sscan(line, &g); err != nil || g < 0 || g >= goroutines {
					t.Fatalf("%.60q: %v", line, err)
				}
				if want := strings.TrimSpace(numberedLine(g, found[g])); line != want {
					t.Fatalf("%.60q, want %.60q", line, want)
				}
				found[g]++
			}
			if s := w.Stats(); found != given || s.Accepted != s.Written {
				t.Errorf("lines of each goroutine: %v, want %v; %+v", found, given, s)
			}
		})
	}
}

// numberedLine is line n of goroutine g.
func numberedLine(g, n int) string {
	return fmt.Sprintf("%d %d %s\n", g, n, strings.Repeat("x", n*7919%3000))
}

func until(t *testing.T, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !done(); runtime.Gosched() {
		if time.Now().After(end) {
			t.Fatalf("not within 30 s: %s", what)
		}
	}
}

func unpacked(t *testing.T, path string) string {
	t.Helper()
	in, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	r, err := gzip.NewReader(in)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	text, err := io.ReadAll(r)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return string(text)
}

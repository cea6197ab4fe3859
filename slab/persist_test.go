//go:build linux || darwin

package slab_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollway/rollway/file"
	"github.com/rollway/rollway/internal/slabfile"
	"github.com/rollway/rollway/internal/testkit"
	"github.com/rollway/rollway/line"
	"github.com/rollway/rollway/rollwaytest"
	"github.com/rollway/rollway/slab"
)

// inMemory returns the path of a slab file that does not exist yet, on a tmpfs
// if there is one.
func inMemory(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "slab-test-")
	if err != nil {
		dir = t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return filepath.Join(dir, "slabs")
}

func TestLineWriterPersisted(t *testing.T) {
	for name, o := range map[string]slab.Options{
		"defaults":    {},
		"small slabs": {SlabSize: 512, FlushInterval: time.Millisecond, Full: slab.Block},
		"large slabs": {SlabSize: 256 << 10, SlabCount: 32, Full: slab.Drop}, // room for all lines of a rule
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rollwaytest.TestLineWriter(t, rollwaytest.Subject{Virtual: true, Open: func(t *testing.T) *rollwaytest.Instance {
				o := o
				o.Persist = inMemory(t)
				w, dst := open(t, o)
				return &rollwaytest.Instance{
					Writer:    w,
					Keeps:     true,
					Delivered: dst.Bytes,
					Ledger:    func() rollwaytest.Ledger { return ledger(w) },
					Stall:     dst.Stall,
					Fail:      func() { dst.Fail(nil) },
					Heal:      dst.Heal,
					Calls:     dst.Calls,
				}
			}})
		})
	}
}

// TestPersistKeepsWhatCloseCannotDeliver leaves lines to the next Writer, short
// ones and one that is longer than a slab, also if that wants other slabs.
func TestPersistKeepsWhatCloseCannotDeliver(t *testing.T) {
	for _, next := range []slab.Options{
		{SlabSize: 512, SlabCount: 4},
		{SlabSize: 4096, SlabCount: 2},
		{SlabSize: 512, SlabCount: 4, MaxLine: 512},
	} {
		path := inMemory(t)
		dst := new(rollwaytest.Destination)
		dst.Fail(nil)
		w, err := slab.New(dst, slab.Options{SlabSize: 512, SlabCount: 4, Full: slab.Block, Persist: path, CloseTimeout: 100 * time.Millisecond, OnError: func(error) {}})
		testkit.OK(t, err)
		var want []byte
		for i, size := range []int{10, 300, 300, 5000, 20} {
			p := fmt.Appendf(nil, "%d %s\n", i, strings.Repeat("x", size))
			want = append(want, p...)
			if _, err := w.Write(p); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); !errors.Is(err, line.ErrPending) || !strings.Contains(err.Error(), "lines pending: 5, kept in "+path) {
			t.Errorf("Close: %v", err)
		}
		if s := w.Stats(); s.Pending != 5 || s.Dropped.Total() != 0 || s.Accepted != 5 {
			t.Errorf("Stats after Close: %+v", s)
		}

		next.Persist, next.CloseTimeout = path, time.Minute
		var notes reports
		next.OnError = notes.add
		good := new(rollwaytest.Destination)
		w, err = slab.New(good, next)
		testkit.OK(t, err)
		if _, err := w.Write([]byte("new\n")); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Error(err)
		}
		if got := good.Bytes(); !bytes.Equal(got, append(want, "new\n"...)) {
			t.Errorf("got %.80q…", got)
		}
		s := w.Stats()
		if s.Recovered != 5 || s.Accepted != 6 || s.Written != 6 || s.Pending != 0 {
			t.Errorf("Stats of the next: %+v", s)
		}
		if next.SlabSize != 512 {
			notes.await(t, "until the next start")
		}

		// Nothing is left, and the slabs are as asked for.
		w, err = slab.New(good, next)
		testkit.OK(t, err)
		if s := w.Stats(); s.Recovered != 0 || s.Slabs != next.SlabCount {
			t.Errorf("Stats of the one after: %+v", s)
		}
		w.Close()
	}
}

// TestPersistShutdownAtAnyMoment has the deadline pass before, while and after the
// destination is called. What it did not get, the next Writer delivers, once.
func TestPersistShutdownAtAnyMoment(t *testing.T) {
	written, kept := 0, 0
	for round := range 100 {
		path := inMemory(t)
		dst := new(rollwaytest.Destination)
		if round%3 == 0 {
			dst.Always(rollwaytest.Fault{Delay: 50 * time.Microsecond, Take: 1 << 30})
		}
		w, err := slab.New(dst, slab.Options{SlabSize: 64, SlabCount: 16, Persist: path, KeepOpen: true, OnError: func(error) {}})
		testkit.OK(t, err)
		const n = 10
		var all []string
		for i := range n { // two in each slab
			all = append(all, numbered(i, 30))
		}
		put(t, w, all...)
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(round%20)*5*time.Microsecond)
		shutdown := w.Shutdown(ctx)
		cancel()
		if shutdown != nil && !errors.Is(shutdown, context.DeadlineExceeded) {
			t.Fatalf("Shutdown = %v, want nil or context.DeadlineExceeded", shutdown)
		}
		inside := shutdown != nil && strings.Contains(shutdown.Error(), "inside the destination's Write")
		next, err := slab.New(dst, slab.Options{Persist: path, KeepOpen: true, CloseTimeout: time.Minute, OnError: func(error) {}})
		for inside && errors.Is(err, slabfile.ErrLocked) { // until the call has returned
			time.Sleep(time.Millisecond)
			next, err = slab.New(dst, slab.Options{Persist: path, KeepOpen: true, CloseTimeout: time.Minute, OnError: func(error) {}})
		}
		if err != nil {
			t.Fatalf("after Shutdown = %v: %v", shutdown, err)
		}
		s := w.Stats()
		ledger(w).Check(t)
		if next := next.Stats().Recovered; s.Dropped.Total() != 0 || s.Written+next != n || s.Pending != next {
			t.Errorf("Stats %+v, and %d lines for the next Writer, want all of %d", s, next, n)
		}
		if s.Written > 0 {
			written++
		}
		if s.Pending > 0 {
			kept++
		}
		if err := next.Close(); err != nil {
			t.Error(err)
		}
		want(t, "lines", dst.Lines(), all)
	}
	t.Logf("in %d of 100 rounds lines were written, in %d lines were kept", written, kept)
}

// When Shutdown or Close has returned its result the file is free, also after another's
// deadline or with an abandoned Sync.
func TestPersistFileIsFreeAfterClose(t *testing.T) {
	next := func(t *testing.T, path string, lines int) {
		t.Helper()
		dst := new(rollwaytest.Destination)
		w, err := slab.New(dst, slab.Options{Persist: path})
		if err != nil {
			t.Error(err)
			return
		}
		if err := w.Close(); err != nil {
			t.Error(err)
		}
		if got := len(dst.Lines()); got != lines {
			t.Errorf("the next Writer delivers %d lines, want %d", got, lines)
		}
	}
	t.Run("another's deadline", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			path := inMemory(t)
			w, dst := open(t, slab.Options{Persist: path, CloseTimeout: time.Hour})
			dst.Fail(nil)
			put(t, w, "one")
			time.Sleep(time.Second) // the destination has failed
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			go w.Shutdown(ctx)
			if err := w.Close(); !errors.Is(err, context.Canceled) {
				t.Errorf("Close = %v, want the other's context.Canceled", err)
			}
			next(t, path, 1)
		})
	})
	t.Run("an abandoned Sync", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			path := inMemory(t)
			w, err := slab.New(&slowSyncer{takes: time.Hour}, slab.Options{Persist: path, Failover: new(rollwaytest.Destination), CloseTimeout: time.Second, KeepOpen: true, OnError: func(error) {}})
			testkit.OK(t, err)
			defer time.Sleep(2 * time.Hour) // that Sync returns
			put(t, w, "one")
			if err := w.Sync(); err == nil {
				t.Error("Sync = nil, though the destination's does not return")
			}
			if err := w.Close(); err != nil {
				t.Error(err)
			}
			next(t, path, 0)
		})
	})
}

func TestPersistHasOneOwner(t *testing.T) {
	path := inMemory(t)
	w, err := slab.New(io.Discard, slab.Options{Persist: path})
	testkit.OK(t, err)
	_, err = slab.New(io.Discard, slab.Options{Persist: path})
	if err == nil || !strings.Contains(err.Error(), "in use by process") || !strings.Contains(err.Error(), path) {
		t.Errorf("a second Writer: %v", err)
	}
	testkit.OK(t, w.Close())
	w, err = slab.New(io.Discard, slab.Options{Persist: path})
	if err != nil {
		t.Fatalf("after Close: %v", err)
	}
	w.Close()
	if _, err := slab.New(io.Discard, slab.Options{Persist: filepath.Join(path, "no", "folder")}); err == nil {
		t.Error("a path in a file was taken")
	}
}

// The child of TestPersistKill: producers that say what was accepted, until
// they are killed or told to end.
const persistChild = "SLAB_PERSIST_CHILD"

func init() {
	if args := os.Getenv(persistChild); args != "" {
		if err := persistedChild(args); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
}

const persistProducers = 4

func persistedChild(args string) error {
	var dir, slabs, kind string
	var run, each int
	if _, err := fmt.Sscanf(args, "%s %s %s %d %d", &dir, &slabs, &kind, &run, &each); err != nil {
		return err
	}
	var dst io.WriteCloser
	f, err := file.Open(filepath.Join(dir, "log"), killOptions(kind))
	if err != nil {
		return err
	}
	dst = f
	switch {
	case kind == "any":
		dst = struct{ io.WriteCloser }{f} // hides Prepare and Holds
	case kind == "torn" && each > 1000: // not the last one
		dst = torn{f, f}
	}
	if run%3 == 2 { // as the command for recovery
		s, err := slabfile.Open(slabs, slabfile.Options{})
		if err != nil {
			return err
		}
		r, err := slabfile.Recover(s, dst, []func() error{nil, f.Sync}[run%2])
		if err = errors.Join(err, errors.Join(r.Problems...), s.Close()); err != nil {
			return err
		}
	}
	w, err := slab.New(dst, slab.Options{
		SlabSize: 2048 + 1024*(run%2), SlabCount: 6, FlushInterval: time.Millisecond, MaxLine: 8 << 10,
		Persist: slabs, Full: slab.Block, CloseTimeout: time.Minute, OnError: func(error) {}, // the size changes
	})
	if err != nil {
		return err
	}
	var wg sync.WaitGroup
	for p := range persistProducers {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(run), uint64(p)))
			for seq := range each {
				size := rng.IntN(300)
				if rng.IntN(200) == 0 {
					size = 5000
				}
				if rng.IntN(20) == 0 { // a notice comes before what follows
					if _, err := w.Write(make([]byte, 9<<10)); !errors.Is(err, line.ErrTooLarge) {
						fmt.Fprintln(os.Stderr, err)
						os.Exit(1)
					}
				}
				text := fmt.Appendf(nil, "%d %d %d %s\n", run, p, seq, strings.Repeat("x", size))
				if _, err := w.Write(text); err != nil {
					fmt.Fprintln(os.Stderr, err)
					os.Exit(1)
				}
				os.Stdout.Write(fmt.Appendf(nil, "%d %d\n", p, seq))
			}
		})
	}
	wg.Wait()
	return w.Close()
}

// torn is a file that now and then kills its process in the middle of a Write.
type torn struct {
	slabfile.Positioner
	io.WriteCloser
}

func (d torn) Write(p []byte) (int, error) {
	if rand.IntN(100) > 0 {
		return d.WriteCloser.Write(p)
	}
	f, err := os.OpenFile(d.Positioner.(*file.File).Name(), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return 0, err
	}
	f.Write(p[:rand.IntN(len(p))])
	self, _ := os.FindProcess(os.Getpid())
	self.Kill()
	select {}
}

func killOptions(kind string) file.Options {
	if kind == "rotating" {
		return file.Options{MaxSize: 64 << 10, Compress: file.Gzip{}, CloseTimeout: time.Minute}
	}
	return file.Options{}
}

// TestPersistKill kills a process at random moments, again and again, also while it
// recovers and writes, and then looks for each line that the process said was accepted.
func TestPersistKill(t *testing.T) {
	kills := 25
	if testing.Short() || testkit.Race(t, "more kills") { // which takes a second to start
		kills = 5
	}
	for _, kind := range []string{"plain", "rotating", "torn", "any"} {
		t.Run(kind, func(t *testing.T) { persistKill(t, kind, kills) })
	}
}

func persistKill(t *testing.T, kind string, kills int) {
	dir, slabs := t.TempDir(), inMemory(t)
	accepted := map[[3]int]bool{}
	for run := range kills {
		cmd := exec.Command(os.Args[0])
		each := 1 << 30
		if run == kills-1 {
			each = 100
		}
		cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s %s %s %d %d", persistChild, dir, slabs, kind, run, each))
		cmd.Stderr = os.Stderr
		out, err := cmd.StdoutPipe()
		testkit.OK(t, err)
		testkit.OK(t, cmd.Start())
		lines := bufio.NewScanner(out)
		enough := 1 + rand.IntN(3000)
		for n := 0; lines.Scan(); n++ {
			var p, seq int
			if _, err := fmt.Sscan(lines.Text(), &p, &seq); err != nil {
				t.Fatalf("the child said %q", lines.Text())
			}
			accepted[[3]int{run, p, seq}] = true
			if n == enough && run < kills-1 {
				cmd.Process.Kill() // and read what it had said
			}
		}
		if err := cmd.Wait(); err != nil && run == kills-1 {
			t.Fatalf("the last child: %v", err)
		}
	}

	last := map[[2]int]int{}
	seen := map[[3]int]int{}
	repeated := 0
	notices := 0
	for line := range bytes.Lines(series(t, filepath.Join(dir, "log"))) {
		if isNotice(string(line)) {
			notices++
			continue
		}
		var run, p, seq int
		var pad string
		n, err := fmt.Sscanf(string(line), "%d %d %d %s", &run, &p, &seq, &pad)
		if n < 3 || err != nil && !errors.Is(err, io.EOF) && n != 3 || line[len(line)-1] != '\n' || strings.Trim(pad, "x") != "" {
			t.Fatalf("torn: %.80q", line)
		}
		key := [3]int{run, p, seq}
		if seen[key]++; seen[key] > 1 {
			repeated++
			continue
		}
		if before, ok := last[[2]int{run, p}]; ok && seq != before+1 || !ok && seq != 0 {
			t.Fatalf("run %d, producer %d: %d comes after %d", run, p, seq, before)
		}
		last[[2]int{run, p}] = seq
	}
	lost := 0
	for key := range accepted {
		if seen[key] == 0 {
			lost++
		}
	}
	t.Logf("%d kills: %d lines accepted, %d found, %d lost, %d repeated", kills-1, len(accepted), len(seen), lost, repeated)
	if lost > 0 || notices == 0 {
		t.Errorf("%d accepted lines are lost, %d notices", lost, notices)
	}
	if repeated > 0 && kind != "any" {
		t.Errorf("%d lines are there twice", repeated)
	}
}

// series returns the content of a file and its rotated members, oldest first.
func series(t *testing.T, path string) (all []byte) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(filepath.Dir(path), "*"))
	testkit.OK(t, err)
	for _, name := range names { // their times make this the order; the current one has none
		if name == path {
			continue
		}
		f, err := os.Open(name)
		testkit.OK(t, err)
		var r io.Reader = f
		if strings.HasSuffix(name, ".gz") {
			if r, err = gzip.NewReader(f); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		data, err := io.ReadAll(r)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		all = append(all, data...)
		f.Close()
	}
	data, err := os.ReadFile(path)
	testkit.OK(t, err)
	return append(all, data...)
}

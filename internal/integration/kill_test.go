//go:build linux || darwin

package integration

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rollway/rollway/file"
	"github.com/rollway/rollway/internal/testkit"
	"github.com/rollway/rollway/remote"
	"github.com/rollway/rollway/slab"
)

// killRoads are combinations that outlive their process, by name.
var killRoads = map[string]struct {
	open  func(dir, url string) (io.WriteCloser, error)
	exact bool // no line comes twice
}{
	"file": {func(dir, _ string) (io.WriteCloser, error) {
		return file.Open(filepath.Join(dir, "log"), file.Options{})
	}, true},
	"file that rotates and packs": {func(dir, _ string) (io.WriteCloser, error) {
		return file.Open(filepath.Join(dir, "log"), file.Options{MaxSize: 50_000, Compress: file.Gzip{Level: 1}, KeepPlain: 1})
	}, true},
	"http": {func(_, url string) (io.WriteCloser, error) {
		return remote.Open(url, remote.Options{Timeout: 3 * time.Second, CloseTimeout: patience})
	}, false},
	"http with a spill": {func(dir, url string) (io.WriteCloser, error) {
		return remote.Open(url, remote.Options{Timeout: 3 * time.Second, CloseTimeout: patience, Spill: remote.Spill{Dir: filepath.Join(dir, "spill")}})
	}, false},
}

// The child of TestKill: producers that say which lines were accepted, until
// they are killed or have written theirs.
const killChild = "COMBINE_KILL_CHILD"

func init() {
	if args := os.Getenv(killChild); args != "" {
		if err := killedChild(args); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
}

const killProducers = 4

func killedChild(args string) error {
	var dir, memory, url string
	var run, each int
	road, rest, _ := strings.Cut(args, "|")
	if _, err := fmt.Sscan(rest, &dir, &memory, &url, &run, &each); err != nil {
		return err
	}
	dst, err := killRoads[road].open(dir, url)
	if err != nil {
		return err
	}
	w, err := slab.New(dst, slab.Options{
		SlabSize: 2048, SlabCount: 8, FlushInterval: time.Millisecond, CloseTimeout: patience,
		Full: slab.Block, Persist: filepath.Join(memory, "slabs"),
	})
	if err != nil {
		return err
	}
	var writing sync.WaitGroup
	for p := range killProducers {
		writing.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(run), uint64(p)))
			for seq := range each {
				size := rng.IntN(200)
				if rng.IntN(100) == 0 {
					size = 5000 // longer than a slab
				}
				if _, err := w.Write(appendLine(nil, run*killProducers+p, seq, size)); err != nil {
					fmt.Fprintln(os.Stderr, err)
					os.Exit(1)
				}
				os.Stdout.Write(fmt.Appendf(nil, "%d %d\n", run*killProducers+p, seq))
			}
		})
	}
	writing.Wait()
	return w.Close()
}

// TestKill kills a process with persisted slabs at random moments, before a peer
// that is away now and then. The next process delivers what the one before had
// accepted: every line is there, whole and in its producer's order.
func TestKill(t *testing.T) {
	kills := testkit.Rounds(t, testkit.Kills, 4, 50)
	for name, road := range killRoads {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := new(peer)
			keep := p.newConn()
			server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
				data, err := io.ReadAll(r.Body)
				p.mu.Lock()
				away := p.away
				p.mu.Unlock()
				switch {
				case err != nil: // the child is gone
				case away:
					rw.WriteHeader(http.StatusServiceUnavailable)
				default:
					keep.Write(data)
				}
			}))
			defer server.Close()
			dir, memory := t.TempDir(), inMemory(t)
			var accepted []place
			for run := range kills {
				last := run == kills-1
				p.setAway(run%3 == 1 && !last && strings.Contains(name, "spill"))
				accepted = append(accepted, runChild(t, fmt.Sprintf("%s|%s %s %s %d", name, dir, memory, server.URL+"/", run), last)...)
			}
			got := p.bytes()
			if strings.HasPrefix(name, "file") {
				got = readSeries(t, filepath.Join(dir, "log"))
			}
			found, twice := followAgain(t, got)
			lost := 0
			for _, at := range accepted {
				if !found[at] {
					lost++
				}
			}
			t.Logf("%d kills: %d lines accepted, %d found, %d lost, %d twice", kills-1, len(accepted), len(found), lost, twice)
			if lost > 0 || road.exact && twice > 0 {
				t.Errorf("%d lines lost, %d twice", lost, twice)
			}
		})
	}
}

// runChild runs a child, kills it at some moment unless it is the last, and
// returns what it said was accepted.
func runChild(t *testing.T, args string, last bool) (accepted []place) {
	t.Helper()
	each := 1 << 30
	if last {
		each = 100
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s %d", killChild, args, each))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	enough := 1 + rand.IntN(2000)
	for lines := bufio.NewScanner(out); lines.Scan(); {
		var at place
		if _, err := fmt.Sscan(lines.Text(), &at.producer, &at.seq); err != nil {
			t.Fatalf("the child said %q", lines.Text())
		}
		if accepted = append(accepted, at); len(accepted) == enough && !last {
			cmd.Process.Kill() // and read what it had said
		}
	}
	if err := cmd.Wait(); err != nil && last {
		t.Fatalf("the last child: %v", err)
	}
	return accepted
}

// followAgain is follow where lines may come again: it wants each whole, and of
// each producer none to come before the one before it has.
func followAgain(t *testing.T, b []byte) (found map[place]bool, twice int) {
	t.Helper()
	found = map[place]bool{}
	for line := range bytes.Lines(b) {
		at := parseLine(t, line)
		if found[at] {
			twice++
		} else if at.seq > 0 && !found[place{at.producer, at.seq - 1}] {
			t.Fatalf("producer %d: line %d comes before %d", at.producer, at.seq, at.seq-1)
		}
		found[at] = true
	}
	return found, twice
}

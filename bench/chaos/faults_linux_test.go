package chaos

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/rollway/rollway/bench/internal/child"
	"github.com/rollway/rollway/bench/internal/measure"
	"github.com/rollway/rollway/internal/testkit"
)

// A scene is one fault in the making.
type scene struct {
	*collector
	load    *load
	account *account
	rng     *rand.Rand
	short   bool
	dir     string

	view view // of the lines of load
}

// pick returns what a run that counts does, or a short one.
func pick[T any](s *scene, whole, short T) T {
	if s.short {
		return short
	}
	return whole
}

// faults are what is done, by name.
var faults = map[string]func(*scene) error{
	"kill": kills, "stop": stops, "full": full, "clock": clocks, "clients": badClients,
	"connections": manyConnections, "kafka": kafkaAway,
	"write":    injected(false, "pwrite64", "pwrite64:error=EIO:when=3+3"),
	"rollback": injected(false, "pwrite64,ftruncate", "pwrite64:error=EIO:when=3+3", "ftruncate:error=EIO"),
	"fsync":    injected(true, "fdatasync", "fdatasync:error=EIO:when=2+2"),
	"rename":   injected(true, "rename,renameat,renameat2,fsync", "rename,renameat,renameat2:error=EIO", "fsync:error=EIO"),
}

// A fault is one thing that goes wrong.
type fault struct {
	name  string
	needs string // besides linux: "", "root", "strace", "java" or "go"
}

// all lists the faults.
var all = []fault{
	{"kill", ""}, {"stop", ""}, {"full", "root"},
	{"write", "strace"}, {"rollback", "strace"}, {"fsync", "strace"}, {"rename", "strace"},
	{"clock", "go"}, {"clients", ""}, {"connections", ""}, {"kafka", "java"},
}

// missing says what the fault needs and this machine lacks, or "".
func (f fault) missing() string {
	switch f.needs {
	case "root":
		if os.Geteuid() != 0 {
			return "root, to mount a tmpfs"
		}
	case "strace", "java", "go":
		if _, err := exec.LookPath(f.needs); err != nil {
			return f.needs
		}
	}
	if f.name == "kafka" {
		if err := kafkaJars(); err != nil {
			return err.Error()
		}
	}
	return ""
}

var (
	outFlag   = flag.String("o", "", "do everything as long as the table takes, and write the raw results to this file")
	faultFlag = flag.String("fault", "", "only this fault")
	seedFlag  = flag.Uint64("seed", 1, "of the moments of kills")
)

// TestFaults does to a collector under load what can go wrong.
func TestFaults(t *testing.T) {
	if *outFlag == "" {
		testkit.Nightly(t, testkit.Bench, "it takes minutes")
	}
	dir := t.TempDir()
	program, err := child.BuildRollway(dir)
	if err != nil {
		t.Fatal(err)
	}
	results := Results{Results: *measure.NewResults(Kind, 1), Missing: map[string]string{}}
	for _, f := range all {
		if *faultFlag != "" && *faultFlag != f.name {
			continue
		}
		t.Run(f.name, func(t *testing.T) {
			if lacks := f.missing(); lacks != "" {
				results.Missing[f.name] = lacks
				testkit.Missing(t, lacks)
			}
			try, err := f.try(program, filepath.Join(dir, f.name))
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%.1f s, %d times, %d requests, %d events, %d wrong", try.Seconds, try.Rounds, try.Requests, try.Events, try.Wrong())
			results.Tries = append(results.Tries, *try)
		})
	}
	for _, err := range results.Unexpected() {
		t.Error(err)
	}
	if *outFlag != "" {
		if err := measure.Save(*outFlag, results); err != nil {
			t.Error(err)
		}
	}
}

// try tries the fault.
func (f fault) try(program, dir string) (_ *Try, err error) {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	addr, err := testkit.FreeAddr()
	if err != nil {
		return nil, err
	}
	sc := newScene(f.name, program, dir, addr)
	try := sc.try
	begin := time.Now()
	defer sc.kill()
	if err := faults[f.name](sc); err != nil {
		return nil, fmt.Errorf("%s: %w", f.name, err)
	}
	try.Seconds = time.Since(begin).Seconds()
	for number, r := range sc.account.snapshot() {
		if r.acked {
			try.Requests++
			try.Events += events(number)
		}
	}
	return try, nil
}

// newScene is a scene in a folder that is there.
func newScene(name, program, dir, addr string) *scene {
	try := &Try{Fault: name}
	sc := &scene{
		account: &account{}, rng: rand.New(rand.NewPCG(*seedFlag, 1)), short: *outFlag == "", dir: dir,
		collector: &collector{program: program, addr: addr, data: filepath.Join(dir, "data"), config: "journal:\n  segment_size: 4MiB\n", try: try},
	}
	sc.load = newLoad(addr, name, sc.account, try)
	return sc
}

// check looks up all acknowledged events in a journal that is not being written.
func (s *scene) check(answered bool) error {
	before := s.account.snapshot()
	s.load.mu.Lock()
	defer s.load.mu.Unlock()
	if err := lookUp(s.try, s.journal(), before, answered, s.view); err != nil {
		return err
	}
	return s.reconcile(false)
}

// restart kills the collector, looks at what it stored, and starts it again.
func (s *scene) restart() error {
	s.kill()
	if err := s.check(false); err != nil {
		return err
	}
	return s.start()
}

// end has the clients finish, and looks at what is left.
func (s *scene) end() error {
	if err := s.load.drain(); err != nil {
		return fmt.Errorf("%w: %s", err, s.Said())
	}
	if err := s.reconcile(true); err != nil {
		return err
	}
	if err := s.stop(false); err != nil {
		return err
	}
	return s.check(true)
}

// kills kills the collector at random moments.
func kills(s *scene) error {
	if err := s.start(); err != nil {
		return err
	}
	s.load.begin(8, 0)
	for range pick(s, 100, 5) {
		time.Sleep(time.Duration(20+s.rng.IntN(400)) * time.Millisecond)
		s.try.Rounds++
		if err := s.restart(); err != nil {
			return err
		}
	}
	return s.end()
}

// stops ends the collector as its user would: what is stored is answered.
func stops(s *scene) error {
	if err := s.start(); err != nil {
		return err
	}
	s.load.begin(8, 0)
	for range pick(s, 20, 2) {
		time.Sleep(time.Duration(50+s.rng.IntN(200)) * time.Millisecond)
		if err := s.stop(false); err != nil {
			return err
		}
		s.try.Rounds++
		resume := s.load.pause()
		err := s.check(true)
		resume()
		if err != nil {
			return err
		}
		if err := s.start(); err != nil {
			return err
		}
	}
	return s.end()
}

// refused returns how many answers were no acknowledgement.
func (s *scene) refused() (n int) {
	s.load.count(func(t *Try) { n = t.Refused })
	return n
}

// more waits for n more acknowledged requests.
func (s *scene) more(n int) error {
	want := s.account.acked() + n
	return await("acknowledgements", s.account.acked, func() bool { return s.account.acked() >= want })
}

// full fills a small file system and then makes it larger.
func full(s *scene) error {
	if err := os.Mkdir(s.data, 0o700); err != nil {
		return err
	}
	if err := syscall.Mount("tmpfs", s.data, "tmpfs", 0, "size=6m"); err != nil {
		return fmt.Errorf("mount: %w", err)
	}
	defer func() {
		s.kill()
		syscall.Unmount(s.data, syscall.MNT_DETACH)
	}()
	s.config = "journal:\n  segment_size: 1MiB\n  compression: none\n"
	if err := s.start(); err != nil {
		return err
	}
	s.load.begin(8, 0)
	for round := range pick(s, 5, 1) {
		before := s.refused()
		filling := func() int { return s.refused() + s.account.acked() }
		if err := await("a full disk", filling, func() bool { return s.refused() > before+200 }); err != nil {
			return err
		}
		s.try.Rounds++
		if round%2 == 1 { // killed while it is full
			if err := s.restart(); err != nil {
				return err
			}
		} else if err := s.reconcile(true); err != nil {
			return err
		}
		if err := syscall.Mount("tmpfs", s.data, "tmpfs", syscall.MS_REMOUNT, fmt.Sprintf("size=%dm", 6*(round+2))); err != nil {
			return fmt.Errorf("remount: %w", err)
		}
		if err := s.more(200); err != nil {
			return err
		}
	}
	if err := syscall.Mount("tmpfs", s.data, "tmpfs", syscall.MS_REMOUNT, "size=512m"); err != nil {
		return fmt.Errorf("remount: %w", err)
	}
	return s.end()
}

// injected has system calls fail for a while, and then no more. lossy says that
// the collector then has lines that it could not make durable.
func injected(lossy bool, trace string, specs ...string) func(*scene) error {
	return func(s *scene) error {
		s.config = "journal:\n  segment_size: 1MiB\n"
		if err := s.start(); err != nil {
			return err
		}
		s.load.begin(8, 2*time.Millisecond)
		for range pick(s, 5, 1) {
			if err := s.more(100); err != nil {
				return err
			}
			end, err := s.inject(trace, specs...)
			if err != nil {
				return err
			}
			time.Sleep(pick(s, 2*time.Second, time.Second))
			s.try.Rounds++
			if err := errors.Join(s.reconcile(true), end()); err != nil {
				return err
			}
			// A request for synced lines whose fsync has failed is refused until the
			// next start, which looks at the file anew.
			if err := s.stop(lossy); err != nil {
				return err
			}
			if err := s.check(false); err != nil {
				return err
			}
			if err := s.start(); err != nil {
				return err
			}
		}
		return s.end()
	}
}

// badClients go away in every second body, and send each request three times.
func badClients(s *scene) error {
	if err := s.start(); err != nil {
		return err
	}
	s.load.abortEvery, s.load.again = 2, 3
	s.load.begin(8, 0)
	for range pick(s, 10, 2) {
		if err := s.more(300); err != nil {
			return err
		}
		s.try.Rounds++
		if err := s.reconcile(true); err != nil {
			return err
		}
	}
	return s.end()
}

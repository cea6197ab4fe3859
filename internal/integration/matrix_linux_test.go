package integration

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rollway/rollway"
	"github.com/rollway/rollway/file"
	"github.com/rollway/rollway/internal/smalldisk"
	"github.com/rollway/rollway/internal/testkit"
	"github.com/rollway/rollway/line"
	"github.com/rollway/rollway/remote"
	"github.com/rollway/rollway/slab"
)

// TestStuckMatrix: every writer, in every way of being stuck, with a healthy
// output after it, through Info, Error and every way of ending the process. Each
// cell is a process of its own that says what it saw.

const (
	matrixEnv     = "COMBINE_MATRIX_CHILD"
	matrixWait    = 100 * time.Millisecond // Options.MaxWait and the writers' own bound: the default
	matrixClose   = time.Second            // Options.CloseTimeout
	matrixProcess = 500 * time.Millisecond // what the end may take besides
	matrixSlack   = 500 * time.Millisecond // what a call may take besides, on a busy machine

	matrixPatience = 20 * time.Second // until calls that must return are said not to have
)

// cell is what a child is to do.
type cell struct {
	Front, Stuck, Ending string

	Address string // of the collector
	Dir     string // on the disk that is full
	Good    string // the file of the healthy output
}

// report is the file for what was seen.
func (c *cell) report() string { return c.Good + ".report" }

// seen is what a child saw.
type seen struct {
	Called   [matrixProducers]int // calls begun by each producer
	Returned [matrixProducers]int
	MaxCall  time.Duration // the longest of those that returned
	MaxError time.Duration // the same at ERROR
	Errors   int           // calls at ERROR that returned
	End      time.Duration // the end of the process, as the program sees it
	EndError string        // of Close
	Stuck    rollwayStats
	Good     rollwayStats
	Writer   line.Ledger // of the stuck writer, where it has one
	Ledger   string      // what is wrong with a ledger, of any of the writers
}

type rollwayStats struct{ Accepted, Written, Dropped, Pending uint64 }

const (
	matrixProducers = 4
	matrixErrors    = 20
)

// fronts are the writers before the destination. Their ledgers are those of the
// writer they return, nil where it has none.
var fronts = map[string]func(c *cell, dst io.Writer) (w io.Writer, ledger func() line.Ledger, err error){
	"direct":         func(_ *cell, dst io.Writer) (io.Writer, func() line.Ledger, error) { return dst, nil, nil },
	"slab":           slabFront(func(*cell, *slab.Options) {}),
	"slab, Block":    slabFront(func(_ *cell, o *slab.Options) { o.Full = slab.Block }),
	"slab, Drop":     slabFront(func(_ *cell, o *slab.Options) { o.Full = slab.Drop }),
	"slab, Persist":  slabFront(func(c *cell, o *slab.Options) { o.Persist = c.Good + ".slabs" }),
	"slab, failover": slabFront(func(c *cell, o *slab.Options) { o.Failover = &secondFile{path: c.Good + ".second"} }),
	"slab, shards":   slabFront(func(_ *cell, o *slab.Options) { o.Shards = 2 }),
}

func slabFront(set func(*cell, *slab.Options)) func(*cell, io.Writer) (io.Writer, func() line.Ledger, error) {
	return func(c *cell, dst io.Writer) (io.Writer, func() line.Ledger, error) {
		var o slab.Options
		set(c, &o)
		w, err := slab.New(dst, o)
		if err != nil {
			return nil, nil, err
		}
		return w, func() line.Ledger { return w.Stats().Ledger }, nil
	}
}

// secondFile is a file that is made when it is needed.
type secondFile struct {
	path string
	f    *os.File
}

func (s *secondFile) Write(p []byte) (int, error) {
	if s.f == nil {
		f, err := os.Create(s.path)
		if err != nil {
			return 0, err
		}
		s.f = f
	}
	return s.f.Write(p)
}

// ways are the ways of being stuck.
var ways = map[string]way{
	"pipe that nobody reads": {
		open:  func(*cell) (io.Writer, error) { return os.NewFile(3, "pipe"), nil },
		lines: 400, hangs: true,
	},
	"standard error that nobody reads": {
		open:  func(*cell) (io.Writer, error) { return os.Stderr, nil },
		lines: 400, hangs: true, mute: true,
	},
	"os.File on a full disk": {open: openFile, lines: 400},
	"os.File on a full disk, and standard error that nobody reads": {open: openFile, lines: 400, mute: true},
	"file.File on a full disk": {
		open: func(c *cell) (io.Writer, error) {
			return file.Open(filepath.Join(c.Dir, fmt.Sprint("file", os.Getpid())), file.Options{})
		},
		lines: 400,
	},
	"collector absent, http":  {open: openRemote, lines: 400},
	"collector absent, tcp":   {open: openRemote, lines: 400},
	"collector stopped, http": {open: openRemote, lines: 400, hangs: true},
	"collector absent, http, with a spill": {
		open: func(c *cell) (io.Writer, error) {
			return remote.Open(c.Address, remote.Options{Spill: remote.Spill{Dir: c.Good + ".spill"}})
		},
		lines: 400, keeps: true,
	},
	"collector stopped, tcp": {open: openRemote, lines: 3000, hangs: true},
}

type way struct {
	open  func(c *cell) (io.Writer, error)
	lines int  // of each producer: enough to fill every buffer on the way
	hangs bool // a Write does not return for as long as the child lives; else it fails
	keeps bool // what is not delivered is on disk for the next process
	mute  bool // standard error is a pipe that is full
}

func openFile(c *cell) (io.Writer, error) {
	return os.Create(filepath.Join(c.Dir, fmt.Sprint("os", os.Getpid())))
}

func openRemote(c *cell) (io.Writer, error) { return remote.Open(c.Address, remote.Options{}) }

// endingsOf are the ways to end, each with its exit status and the message of its
// last line.
var endingsOf = map[string]struct {
	status int
	last   string
}{
	"Close":   {0, ""},
	"Fatal":   {1, "last"},
	"Panic":   {2, "last"},
	"SIGTERM": {128 + 15, "signal: terminated"},
}

func init() {
	switch spec := os.Getenv(matrixEnv); {
	case spec == "":
	case spec == "collector":
		matrixCollector()
	default:
		var c cell
		if err := json.Unmarshal([]byte(spec), &c); err != nil {
			panic(err)
		}
		if err := matrixChild(&c); err != nil {
			fmt.Fprintln(os.Stderr, "child:", err)
			os.Exit(99)
		}
		os.Exit(0)
	}
}

// matrixCollector takes requests over HTTP and lines over TCP, until it is
// stopped. Its receive buffers are small, so that little is lost in them.
func matrixCollector() {
	small := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) (err error) {
		e := c.Control(func(fd uintptr) { err = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, 4096) })
		return cmp.Or(e, err)
	}}
	var addresses []string
	for _, serve := range []func(net.Listener){
		func(l net.Listener) {
			_ = http.Serve(l, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { io.Copy(io.Discard, r.Body) }))
		},
		func(l net.Listener) {
			for {
				conn, err := l.Accept()
				if err != nil {
					panic(err)
				}
				go io.Copy(io.Discard, conn)
			}
		},
	} {
		l, err := small.Listen(context.Background(), "tcp", "127.0.0.1:0")
		if err != nil {
			panic(err)
		}
		addresses = append(addresses, l.Addr().String())
		go serve(l)
	}
	fmt.Println(strings.Join(addresses, " "))
	_, _ = io.Copy(io.Discard, os.Stdin) // until the parent ends
	os.Exit(0)
}

func matrixChild(c *cell) error {
	way := ways[c.Stuck]
	dst, err := way.open(c)
	if err != nil {
		return err
	}
	w, ledger, err := fronts[c.Front](c, dst)
	if err != nil {
		return err
	}
	f, err := os.Create(c.Good)
	if err != nil {
		return err
	}
	good, err := slab.New(f, slab.Options{Full: slab.Block}) // loses nothing on a busy machine
	if err != nil {
		return err
	}
	var s seen
	var log *rollway.Logger
	var begun time.Time // of the end
	report := func() {
		s.End = time.Since(begun)
		stats := log.Stats().Outputs
		errs := []error{stats[0].Err(), stats[1].Err(), good.Stats().Err()}
		if ledger != nil {
			s.Writer = ledger()
			errs = append(errs, s.Writer.Err())
		}
		if err := errors.Join(errs...); err != nil {
			s.Ledger = err.Error()
		}
		for i, to := range []*rollwayStats{&s.Stuck, &s.Good} {
			l := stats[i].Ledger
			*to = rollwayStats{l.Accepted, l.Written, l.Dropped.Total(), l.Pending}
		}
		b, err := json.Marshal(&s)
		if err == nil {
			err = os.WriteFile(c.report(), b, 0o600)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "child:", err)
			os.Exit(99)
		}
	}
	log, err = rollway.New(rollway.Options{
		Outputs:      []rollway.Output{{Name: "stuck", Writer: w}, {Name: "good", Writer: good}},
		CloseTimeout: matrixClose,
		Exit: func(code int) {
			report()
			os.Exit(code)
		},
	})
	if err != nil {
		return err
	}

	stay := c.stay()
	logUntilStuck(log, way.lines, stay, &s)
	errorsDone := make(chan struct{})
	var maxError, errorCalls atomic.Int64
	go func() {
		defer close(errorsDone)
		for i := range matrixErrors {
			start := time.Now()
			log.Error(context.Background(), "an error", slog.Int("i", i))
			maxError.Store(max(maxError.Load(), int64(time.Since(start))))
			errorCalls.Add(1)
		}
	}()
	patience := matrixPatience
	if stay > 1 {
		patience = 2 * (matrixWait + matrixSlack)
	}
	select {
	case <-errorsDone:
	case <-time.After(patience):
	}
	s.MaxError, s.Errors = time.Duration(maxError.Load()), int(errorCalls.Load())

	begun = time.Now()
	switch c.Ending {
	case "Close":
		if err := log.Close(); err != nil {
			s.EndError = err.Error()
		}
		report()
	case "Fatal":
		log.Fatal(context.Background(), "last")
	case "Panic":
		defer report()
		log.Panic(context.Background(), "last")
	case "SIGTERM":
		log.ExitOnSignal()
		if err := syscall.Kill(os.Getpid(), syscall.SIGTERM); err != nil {
			return err
		}
		select {}
	}
	return nil
}

// stay returns how many producers may stay inside a call for ever.
func (c *cell) stay() int {
	switch {
	case c.Front == "slab, Block":
		return matrixProducers
	case c.Front == "direct" && ways[c.Stuck].hangs:
		return 1 // inside the Write that hangs
	}
	return 0
}

// safe reports whether what the stuck destination does not take goes elsewhere.
func (c *cell) safe() bool { return ways[c.Stuck].keeps || c.Front == "slab, failover" }

// logUntilStuck logs lines from several goroutines. It goes on when all have
// returned, or when stay or fewer are left and none of them has returned for a while.
func logUntilStuck(log *rollway.Logger, lines, stay int, s *seen) {
	var called, returned [matrixProducers]atomic.Int64
	var longest atomic.Int64
	pad := slog.String("pad", strings.Repeat("p", 1000))
	done := make(chan struct{})
	var producers sync.WaitGroup
	for p := range matrixProducers {
		producers.Go(func() {
			for seq := 1; seq <= lines; seq++ {
				called[p].Store(int64(seq))
				start := time.Now()
				log.Info(context.Background(), "line", slog.Int("p", p), slog.Int("seq", seq), pad)
				took := int64(time.Since(start))
				for old := longest.Load(); took > old && !longest.CompareAndSwap(old, took); old = longest.Load() {
				}
				returned[p].Store(int64(seq))
			}
		})
	}
	go func() {
		producers.Wait()
		close(done)
	}()
	sum := func() (n int64) {
		for p := range returned {
			n += returned[p].Load()
		}
		return n
	}
	left := func() (n int) {
		for p := range returned {
			if returned[p].Load() < int64(lines) {
				n++
			}
		}
		return n
	}
	quiet, end := 0, time.Now().Add(matrixPatience)
	for before := int64(-1); left() > 0 && quiet < 2 && time.Now().Before(end); {
		select {
		case <-done:
		case <-time.After(matrixWait + matrixSlack):
		}
		now := sum()
		if quiet++; now != before || left() > stay {
			quiet = 0
		}
		before = now
	}
	for p := range called {
		s.Called[p], s.Returned[p] = int(called[p].Load()), int(returned[p].Load())
	}
	s.MaxCall = time.Duration(longest.Load())
}

func TestStuckMatrix(t *testing.T) {
	dir := smalldisk.Mount(t, "size=64k")
	if dir == "" {
		return
	}
	if err := os.WriteFile(filepath.Join(dir, "filler"), make([]byte, 64<<10), 0o600); err != nil {
		t.Fatal(err)
	}
	stopped := stoppedCollector(t)
	absent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	absent.Close() // nobody listens there
	addresses := map[string]string{
		"collector absent, http":               "http://" + absent.Addr().String() + "/api/logs",
		"collector absent, http, with a spill": "http://" + absent.Addr().String() + "/api/logs",
		"collector absent, tcp":                "tcp://" + absent.Addr().String(),
		"collector stopped, http":              "http://" + stopped[0] + "/api/logs",
		"collector stopped, tcp":               "tcp://" + stopped[1],
	}
	// The children wait far more than they work: many run at once, whatever
	// -parallel says.
	slots := make(chan struct{}, 24)
	var running sync.WaitGroup
	outcomes := make(map[*cell]chan outcome)
	cells, every := 0, testkit.RaceRounds(t, 4, 1) // the order is random, and so is which ones
	for front := range fronts {
		for stuck := range ways {
			for ending := range endingsOf {
				if ways[stuck].mute && ending == "Panic" {
					continue // Go's own words about a panic wait for standard error
				}
				if cells++; cells%every > 0 {
					continue
				}
				c := &cell{Front: front, Stuck: stuck, Ending: ending, Address: addresses[stuck], Dir: dir, Good: filepath.Join(t.TempDir(), "good")}
				ended := make(chan outcome, 1)
				outcomes[c] = ended
				running.Go(func() {
					slots <- struct{}{}
					ended <- runCell(t.Context(), c)
					<-slots
				})
			}
		}
	}
	for c, ended := range outcomes {
		t.Run(c.Front+"/"+c.Stuck+"/"+c.Ending, func(t *testing.T) {
			o := <-ended
			for try := 0; try < 5 && o.err == nil && late(c, &o.seen) != nil; try++ { // of so many at once: what does it take alone?
				running.Wait()
				alone := *c
				alone.Good = filepath.Join(t.TempDir(), "good")
				c, o = &alone, runCell(t.Context(), &alone)
			}
			checkCell(t, c, &o)
		})
	}
}

// stoppedCollector returns the addresses for HTTP and TCP of a collector that
// listens and gets no time.
func stoppedCollector(t *testing.T) []string {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), matrixEnv+"=collector")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		cmd.Process.Kill()
		cmd.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	return strings.Fields(line)
}

// outcome is how a child ended.
type outcome struct {
	err    error // it did not end as it should, or has no report
	stderr string
	seen   seen
}

func runCell(ctx context.Context, c *cell) (o outcome) {
	spec, err := json.Marshal(c)
	if err != nil {
		return outcome{err: err}
	}
	r, w, err := os.Pipe() // never read, never closed before the child has ended
	if err != nil {
		return outcome{err: err}
	}
	defer r.Close()
	defer w.Close()
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	var stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Env = append(os.Environ(), matrixEnv+"="+string(spec))
	cmd.ExtraFiles = []*os.File{w}
	cmd.Stderr = &stderr
	if ways[c.Stuck].mute {
		const size = 4096
		if _, err := unix.FcntlInt(w.Fd(), unix.F_SETPIPE_SZ, size); err != nil {
			return outcome{err: err}
		}
		if _, err := w.Write(make([]byte, size)); err != nil {
			return outcome{err: err}
		}
		cmd.Stderr = w
	}
	err = cmd.Run()
	o.stderr = stderr.String()
	if want := endingsOf[c.Ending].status; cmd.ProcessState.ExitCode() != want {
		o.err = fmt.Errorf("want exit status %d: %w", want, err)
		return o
	}
	b, err := os.ReadFile(c.report())
	if err == nil {
		err = json.Unmarshal(b, &o.seen)
	}
	o.err = err
	return o
}

// late returns an error if something took longer than it may, or was dropped
// because of that.
func late(c *cell, s *seen) error {
	if longest := max(s.MaxCall, s.MaxError); c.Front != "slab, Block" && longest > matrixWait+matrixSlack {
		return fmt.Errorf("a call took %v, at ERROR %v", s.MaxCall, s.MaxError)
	}
	if s.End > matrixClose+matrixProcess {
		return fmt.Errorf("the end took %v", s.End)
	}
	if c.safe() && c.Front != "slab, Drop" && s.Writer.Dropped.Total()+s.Writer.Pending+s.Stuck.Dropped != 0 {
		return fmt.Errorf("lost in spite of a second destination: %+v, %+v", s.Writer, s.Stuck)
	}
	return nil
}

func checkCell(t *testing.T, c *cell, o *outcome) {
	way, end, s := ways[c.Stuck], endingsOf[c.Ending], &o.seen
	if o.err != nil {
		t.Fatalf("%v\n%s", o.err, o.stderr)
	}
	t.Logf("%+v", *s)
	if err := late(c, s); err != nil {
		t.Error(err)
	}

	inside := 0 // calls that have not returned
	for p := range s.Called {
		inside += s.Called[p] - s.Returned[p]
	}
	if stay := c.stay(); inside > stay || stay <= 1 && s.Errors != matrixErrors {
		t.Errorf("%d calls have not returned, want %d at most; %d of %d at ERROR", inside, stay, s.Errors, matrixErrors)
	}
	if s.Ledger != "" {
		t.Errorf("ledger: %s", s.Ledger)
	}
	said := o.stderr + s.EndError
	if !way.mute && !c.safe() && !strings.Contains(said, "stuck: ") || strings.Contains(said, "good: ") {
		t.Errorf("what was not delivered is not said: %s", said)
	}
	checkGood(t, c, s, end.last)
}

// checkGood checks that the healthy output has every line, in order.
func checkGood(t *testing.T, c *cell, s *seen, last string) {
	f, err := os.Open(c.Good)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var next [matrixProducers]int
	lines, errorLines, msg := 0, 0, ""
	in := bufio.NewScanner(f)
	for in.Scan() {
		var line struct {
			Msg   string
			Attrs struct{ P, Seq, I int }
		}
		if err := json.Unmarshal(in.Bytes(), &line); err != nil {
			t.Fatalf("%v: %.200s", err, in.Bytes())
		}
		lines++
		switch msg = line.Msg; msg {
		case "line":
			if next[line.Attrs.P]++; line.Attrs.Seq != next[line.Attrs.P] {
				t.Fatalf("line %d of producer %d where %d was due", line.Attrs.Seq, line.Attrs.P, next[line.Attrs.P])
			}
		case "an error":
			if line.Attrs.I != errorLines {
				t.Fatalf("error %d where %d was due", line.Attrs.I, errorLines)
			}
			errorLines++
		}
	}
	if err := in.Err(); err != nil {
		t.Fatal(err)
	}
	for p, n := range next {
		// The call that hangs in a plain writer may have found the good output full,
		// and left it for later.
		if n != s.Called[p] && (c.stay() != 1 || n != s.Returned[p]) {
			t.Errorf("%d lines of producer %d, which has called %d times", n, p, s.Called[p])
		}
	}
	if c.Front != "slab, Block" && errorLines != matrixErrors {
		t.Errorf("%d lines at ERROR, want %d", errorLines, matrixErrors)
	}
	if last != "" && msg != last {
		t.Errorf("the last line is %q, want %q", msg, last)
	}
	if s.Good.Accepted != uint64(lines) || s.Good.Written != uint64(lines) {
		t.Errorf("%+v for %d lines", s.Good, lines)
	}
}

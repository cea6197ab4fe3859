package slab_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/rollway/rollway/internal/testkit"
	"github.com/rollway/rollway/rollwaytest"
	"github.com/rollway/rollway/slab"
)

// What may be done to a slab file while a Writer uses it.
var fileFaults = []struct {
	name string
	do   func(path string, rng *rand.Rand) error
	told string // what OnError says of it, a regular expression; "" if it may go unnoticed
}{
	{"unlinked", func(path string, _ *rand.Rand) error { return os.Remove(path) }, "it was deleted or renamed"},
	{"renamed", func(path string, _ *rand.Rand) error { return os.Rename(path, path+".away") }, "it was deleted or renamed"},
	{"replaced", func(path string, _ *rand.Rand) error { return replaced(path, "") }, "it was replaced by another file"},
	{"replaced by something else", func(path string, _ *rand.Rand) error { return replaced(path, "# a shell script\n") }, "it was replaced by another file"},
	{"cut to nothing", func(path string, _ *rand.Rand) error { return os.Truncate(path, 0) }, "it was cut to 0 of"},
	{"cut", func(path string, rng *rand.Rand) error { return os.Truncate(path, rng.Int64N(faultSize)) }, "it was cut to"},
	{"cut and grown again", func(path string, rng *rand.Rand) error {
		return errors.Join(os.Truncate(path, rng.Int64N(2)*rng.Int64N(faultSize)), os.Truncate(path, faultSize))
	}, ""},
	{"a hole", func(path string, rng *rand.Rand) error {
		from := rng.Int64N(faultSize)
		return punch(path, from, 1+rng.Int64N(faultSize-from))
	}, ""},
	{"a hole of a page", func(path string, rng *rand.Rand) error {
		return punch(path, rng.Int64N(faultSize/4096)*4096, 4096)
	}, ""},
	{"all a hole", func(path string, rng *rand.Rand) error { return punch(path, 0, faultSize) }, ""},
	{"written over", func(path string, rng *rand.Rand) error { // as cp does
		return os.WriteFile(path, bytes.Repeat([]byte("0 0 forged\n"), faultSize), 0o600)
	}, "it was cut to|its header was written over"}, // cut first, and not written in one step
}

// faultSize is what the slab files of these tests have besides lines longer than
// a slab.
const faultSize = 8192 + 8*8192

func faultOptions(path string) slab.Options {
	return slab.Options{SlabSize: 8192, SlabCount: 8, MaxLine: 1 << 16, Persist: path, CloseTimeout: time.Minute}
}

func replaced(path, content string) error {
	return errors.Join(os.WriteFile(path+".other", []byte(content), 0o600), os.Rename(path+".other", path))
}

func punch(path string, at, n int64) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	const keepSize, punchHole = 1, 2
	for {
		if err := syscall.Fallocate(int(f.Fd()), keepSize|punchHole, at, n); err != syscall.EINTR {
			return err
		}
	}
}

// faultLine is line n of a producer: each part of it says which it is.
func faultLine(p, n, size int) []byte {
	id := fmt.Sprintf("%d %d ", p, n)
	return append([]byte(strings.Repeat(id, 1+size/len(id))), '\n')
}

// checkFaultLine is the inverse of faultLine.
func checkFaultLine(line string) (p, n int, err error) {
	if _, err := fmt.Sscanf(line, "%d %d ", &p, &n); err != nil {
		return 0, 0, fmt.Errorf("%.60q: %w", line, err)
	}
	if id := fmt.Sprintf("%d %d ", p, n); strings.ReplaceAll(line, id, "") != "" {
		return 0, 0, fmt.Errorf("%.60q of %d bytes is torn or mixed", line, len(line))
	}
	return p, n, nil
}

// Each fault comes while slabs are queued and one is open. Every line is delivered
// whole, in order, and once; OnError is told; and then the lines are in a new file,
// from which the next Writer delivers them.
func TestPersistFileFault(t *testing.T) {
	for _, fault := range fileFaults {
		t.Run(fault.name, func(t *testing.T) {
			t.Parallel()
			path := inMemory(t)
			var mu sync.Mutex
			var told []string
			say := func(err error) {
				mu.Lock()
				defer mu.Unlock()
				told = append(told, err.Error())
			}
			heard := func(words string) bool {
				mu.Lock()
				defer mu.Unlock()
				return slices.ContainsFunc(told, regexp.MustCompile(words).MatchString)
			}
			o := faultOptions(path)
			o.OnError = say
			w, dst := open(t, o)
			dst.Stall()
			n := 0
			add := func(lines int) {
				for range lines {
					if _, err := w.Write(faultLine(0, n, 60+n*37%400)); err != nil {
						t.Fatal(err)
					}
					n++
				}
			}
			add(90) // a slab with the destination, two queued, one open
			if _, err := w.Write(faultLine(0, n, 20000)); err != nil {
				t.Fatal(err)
			}
			n++
			add(20)
			rng := rand.New(rand.NewPCG(1, 7))
			testkit.OK(t, fault.do(path, rng))
			add(10)
			await(t, "word of the fault", func() bool { return heard("lines are not kept in a file any more") })
			if err := w.Stats().PersistError; fault.told != "" && !heard(fault.told) {
				t.Errorf("told %q, PersistError %v, want %q", told, err, fault.told)
			}
			if fault.name == "replaced by something else" { // which is not ours to remove
				testkit.OK(t, os.Remove(path))
			}
			await(t, "a new file", func() bool { return w.Stats().PersistError == nil })
			if s := w.Stats(); s.Unkept == 0 {
				t.Errorf("%+v: no line was unkept", s)
			}
			dst.Heal()
			testkit.OK(t, w.Flush(t.Context()))
			dst.Stall()
			first := n
			add(40)
			image, err := os.ReadFile(path)
			testkit.OK(t, err)
			dst.Heal()
			if err := w.Close(); err != nil {
				t.Error(err)
			}
			s := w.Stats()
			ledger(w).CheckSettled(t, n, n)
			checkDelivered(t, dst, 1, n, s)

			// As if the process had been killed after the last line.
			testkit.OK(t, os.WriteFile(path, image, 0o600))
			later := new(rollwaytest.Destination)
			o.OnError = nil
			if w, err = slab.New(later, o); err != nil {
				t.Fatal(err)
			}
			if err := w.Close(); err != nil {
				t.Error(err)
			}
			var want []string
			for i := first; i < n; i++ {
				want = append(want, strings.TrimSuffix(string(faultLine(0, i, 60+i*37%400)), "\n"))
			}
			if got := later.Lines(); !slices.Equal(got, want) {
				t.Errorf("the next Writer delivers %d lines, want the %d since the new file: %.100q", len(got), len(want), got)
			}
		})
	}
}

// Lines longer than a slab get their checksums wherever their slabs are.
func TestPersistSealsLongLines(t *testing.T) {
	path := inMemory(t)
	o := faultOptions(path)
	o.SlabCount = 4
	w, dst := open(t, o)
	dst.Stall()
	for n := range o.SlabCount {
		if _, err := w.Write(faultLine(0, n, 60000)); err != nil {
			t.Fatal(err)
		}
	}
	await(t, "checksums", func() bool { return sealedSlabs(t, path) == o.SlabCount })
	dst.Heal()
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	checkDelivered(t, dst, 1, o.SlabCount, w.Stats())
}

// A caller's memory that is gone while it is copied panics in the caller, and
// leaves the Writer as it was: here the line is the first of a slab.
func TestPersistCallersFault(t *testing.T) {
	p, err := syscall.Mmap(-1, 0, 3*4096, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	testkit.OK(t, err)
	defer syscall.Munmap(p)
	for i := range p {
		p[i] = 'x'
	}
	p[10], p[len(p)-1] = '\n', '\n'
	testkit.OK(t, syscall.Mprotect(p[4096:8192], syscall.PROT_NONE))
	o := faultOptions(inMemory(t))
	o.SlabSize, o.FlushInterval = 16384, time.Millisecond
	w, dst := open(t, o)
	write := func(p []byte) (panicked bool) {
		defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
		defer func() { panicked = recover() != nil }()
		w.Write(p)
		return false
	}
	for n := range 3 {
		if !write(p) {
			t.Fatal("no panic")
		}
		testkit.OK(t, w.Flush(t.Context()))
		if write(faultLine(0, n, 100)) {
			t.Fatal("a line panics")
		}
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	s := w.Stats()
	ledger(w).CheckSettled(t, 3, 3)
	checkDelivered(t, dst, 1, 3, s)
	if s.PersistError != nil || s.SlabsFree != s.Slabs {
		t.Errorf("%+v", s)
	}
}

// checkDelivered wants whole lines, each producer's in order and once, as many
// as s says.
func checkDelivered(t *testing.T, dst *rollwaytest.Destination, producers, each int, s slab.Stats) {
	t.Helper()
	last := make([]int, producers)
	for i := range last {
		last[i] = -1
	}
	found, _ := lines(dst)
	for _, line := range found {
		p, n, err := checkFaultLine(line)
		if err != nil || p >= producers || n <= last[p] || n >= each {
			t.Fatalf("line %d of producer %d after %d: %v", n, p, last[p], err)
		}
		last[p] = n
	}
	if uint64(len(found)) != s.Written || uint64(producers*each) != s.Written+s.Dropped.Total() {
		t.Errorf("%d of %d lines delivered, Stats %+v", len(found), producers*each, s)
	}
}

// The child of TestPersistFaultsAtRandom: its slab file, a seed, how many faults.
const faultChild = "SLAB_FAULT_CHILD"

func init() {
	if args := os.Getenv(faultChild); args != "" {
		if err := faultedChild(args); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
}

// faultedChild writes lines by four producers while one goroutine does one fault
// after another, and checks what is delivered.
func faultedChild(args string) error {
	var path string
	var seed uint64
	var faults int
	if _, err := fmt.Sscan(args, &path, &seed, &faults); err != nil {
		return err
	}
	rng := rand.New(rand.NewPCG(seed, 0))
	dst := &checkedDestination{rng: rand.New(rand.NewPCG(seed, 1)), last: map[int]int{}}
	var lost, renewed atomic.Int64 // times that OnError heard of
	o := faultOptions(path)
	o.FlushInterval = time.Millisecond
	o.Full = slab.Block // on a busy machine lines are late, and not lost
	o.OnError = func(err error) {
		if strings.Contains(err.Error(), "not kept in a file any more") {
			lost.Add(1)
		} else if strings.Contains(err.Error(), "kept in a new file") {
			renewed.Add(1)
		}
	}
	w, err := slab.New(dst, o)
	if err != nil {
		return err
	}
	var stop atomic.Bool
	var written atomic.Uint64
	var wg sync.WaitGroup
	for p := range 4 {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(seed, uint64(p+2)))
			for n := 0; !stop.Load(); n++ {
				size := rng.IntN(300)
				if rng.IntN(300) == 0 {
					size = rng.IntN(20000)
				}
				if _, err := w.Write(faultLine(p, n, size)); err != nil {
					fmt.Fprintln(os.Stderr, err)
					os.Exit(1)
				}
				written.Add(1)
			}
		})
	}
	for i := range faults {
		for renewed.Load() < lost.Load() {
			time.Sleep(time.Millisecond)
		}
		before := lost.Load()
		for at := written.Load() + rng.Uint64N(3000); written.Load() < at; {
			time.Sleep(100 * time.Microsecond)
		}
		fault := fileFaults[rng.IntN(len(fileFaults))]
		if err := fault.do(path, rng); err != nil {
			return fmt.Errorf("fault %d, %s: %w", i, fault.name, err)
		}
		if fault.name == "replaced by something else" {
			os.Remove(path)
		}
		if fault.told == "" {
			continue // filled again, it may go unnoticed
		}
		// A file that was cut within its last page and grew again may have lost nothing.
		for end := time.Now().Add(10 * time.Second); lost.Load() == before && time.Now().Before(end); {
			time.Sleep(time.Millisecond)
		}
	}
	stop.Store(true)
	wg.Wait()
	if err := w.Close(); err != nil {
		return err
	}
	s := w.Stats()
	if s.Accepted != written.Load() || s.Accepted != s.Written || s.Pending != 0 {
		return fmt.Errorf("%d lines written, Stats %+v", written.Load(), s)
	}
	if dst.err != nil || dst.lines != s.Written {
		return fmt.Errorf("%d lines delivered, %w, Stats %+v", dst.lines, dst.err, s)
	}
	fmt.Printf("%d faults, %d told: %d lines, all delivered\n", faults, lost.Load(), s.Accepted)
	return nil
}

// checkedDestination looks at each line. Now and then it is slow, so that slabs
// are queued.
type checkedDestination struct {
	rng   *rand.Rand
	last  map[int]int
	lines uint64
	err   error
}

func (d *checkedDestination) Write(p []byte) (int, error) {
	for line := range strings.Lines(string(p)) {
		if isNotice(line) {
			continue
		}
		line, found := strings.CutSuffix(line, "\n")
		producer, n, err := checkFaultLine(line)
		if before, ok := d.last[producer]; err == nil && (!found || ok && n <= before) {
			err = fmt.Errorf("line %d of producer %d after %d", n, producer, before)
		}
		d.err = errors.Join(d.err, err)
		d.last[producer] = n
		d.lines++
	}
	if d.rng.IntN(20) == 0 {
		time.Sleep(time.Duration(d.rng.IntN(20)) * time.Millisecond)
	}
	return len(p), nil
}

// Faults at random moments, in processes of their own, which a signal would end.
func TestPersistFaultsAtRandom(t *testing.T) {
	children, faults := 6, 4
	if testing.Short() {
		children = 2
	}
	for range children {
		seed := rand.Uint64()
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			t.Parallel()
			cmd := exec.CommandContext(t.Context(), os.Args[0])
			cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s %d %d", faultChild, inMemory(t), seed, faults))
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%v: %.3000s", err, out)
			}
			t.Logf("%s", out)
		})
	}
}

// A page of the file is zeros when the next process finds it, as a power cut, a
// hole or a cut leaves it. That delivers whole lines, counts the others to the
// line, announces them, and keeps the file.
func TestPersistZeroedPage(t *testing.T) {
	const each = 150
	path := inMemory(t)
	o := faultOptions(path)
	o.FlushInterval = time.Hour
	w, dst := open(t, o)
	dst.Stall()
	for n := range each {
		size := n * 37 % 400
		if n == 50 {
			size = 20000
		}
		if _, err := w.Write(faultLine(0, n, size)); err != nil {
			t.Fatal(err)
		}
	}
	images := map[string][]byte{}
	for _, name := range []string{"no checksums", "checksums"} {
		image, err := os.ReadFile(path)
		testkit.OK(t, err)
		images[name] = image
		if len(images) == 1 {
			await(t, "checksums", func() bool { return sealedSlabs(t, path) >= 4 })
		}
	}
	if n := len(images); n != 2 || bytes.Equal(images["checksums"], images["no checksums"]) {
		t.Fatalf("%d images", n)
	}
	dst.Heal()
	testkit.OK(t, w.Close())
	for name, image := range images {
		hit := 0
		for at := 0; at < len(image); at += 4096 {
			content := bytes.Clone(image)
			clear(content[at:min(at+4096, len(image))])
			if bytes.Equal(image, content) {
				continue
			}
			if zeroedPage(t, fmt.Sprintf("%s, page %d", name, at/4096), content, each, at == 4096) {
				hit++
			}
		}
		if hit < 10 {
			t.Errorf("%s: lines were lost with %d pages", name, hit)
		}
	}
}

// zeroedPage starts a Writer on content and reports whether lines were lost. If
// the descriptors are lost it is not known how many.
func zeroedPage(t *testing.T, name string, content []byte, each int, descriptors bool) bool {
	path := inMemory(t)
	testkit.OK(t, os.WriteFile(path, content, 0o600))
	o := faultOptions(path)
	var told reports
	o.OnError = told.add
	w, dst := open(t, o)
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	s := w.Stats()
	ledger(w).Check(t)
	found, notices := lines(dst)
	before := -1
	for _, line := range found {
		_, n, err := checkFaultLine(line)
		if err != nil || n <= before {
			t.Fatalf("%s: line %d after %d: %v", name, n, before, err)
		}
		before = n
	}
	missing := each - len(found)
	if s.Recovered != uint64(len(found)) || s.Written != s.Recovered {
		t.Errorf("%s: %d lines delivered, Stats %+v", name, len(found), s)
	}
	if !descriptors && (s.Dropped.Damaged != uint64(missing) || len(notices) != min(missing, 1) || (missing > 0) != (s.DamagedBytes > 0)) {
		t.Errorf("%s: %d lines missing, notices %q, Stats %+v", name, missing, notices, s)
	}
	if missing > 0 || s.SetAside != "" {
		kept, err := os.ReadFile(s.SetAside)
		told.await(t, s.SetAside)
		all := told.String()
		if err != nil || !bytes.Equal(kept[min(len(kept), 8192):], content[8192:]) || !strings.Contains(all, s.SetAside) || !descriptors && missing > 0 && !strings.Contains(all, fmt.Sprintf("%d line", missing)) {
			t.Errorf("%s: kept as %q, %v, told %q", name, s.SetAside, err, all)
		}
	}
	return missing > 0
}

// sealedSlabs counts the slabs in use that have a checksum.
func sealedSlabs(t *testing.T, path string) (n int) {
	t.Helper()
	b, err := os.ReadFile(path)
	testkit.OK(t, err)
	for i := range 8 {
		d := b[4096+64*i:][:64]
		if !bytes.Equal(d[:8], make([]byte, 8)) && !bytes.Equal(d[56:60], make([]byte, 4)) {
			n++
		}
	}
	return n
}

// While the destination is stuck, what waits for it is given checksums, the slab
// that it was called with too.
func TestPersistSeals(t *testing.T) {
	path := inMemory(t)
	w, dst := open(t, slab.Options{SlabSize: 4096, SlabCount: 8, Persist: path, FlushInterval: time.Hour})
	dst.Stall()
	for i := range 4 {
		put(t, w, numbered(2*i, 3000), numbered(2*i+1, 1000))
	}
	put(t, w, numbered(8, 9000), "open")
	await(t, "checksum of the five slabs that are not open", func() bool { return sealedSlabs(t, path) == 5 })
	dst.Heal()
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	settled(t, w, dst, 10)
}

// A line may have zero bytes of its own, while the file is sound.
func TestPersistZeroBytes(t *testing.T) {
	w, dst := open(t, slab.Options{SlabSize: 4096, Persist: inMemory(t)})
	var all []string
	for i := range 100 {
		all = append(all, numbered(i, 40)+"\x00\x00y")
	}
	put(t, w, all...)
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	want(t, "lines", dst.Lines(), all)
	settled(t, w, dst, 100)
}

// What cannot be the file of a Writer is refused at once, with the path and what
// to do.
func TestPersistRefuses(t *testing.T) {
	dir := filepath.Dir(inMemory(t))
	at := func(name string) string { return filepath.Join(dir, name) }
	user := os.Geteuid() + 1
	for _, c := range []struct {
		name, says string
		plant      func(path string) error
	}{
		{"folder", "it is a directory: name a file in it", func(path string) error { return os.Mkdir(path, 0o700) }},
		{"fifo", "name one, or a path where nothing is yet", func(path string) error { return syscall.Mkfifo(path, 0o600) }},
		{"link", "it is a symbolic link, which is not followed: name the file itself", func(path string) error { return os.Symlink(at("target"), path) }},
		{"dangling link", "it is a symbolic link", func(path string) error { return os.Symlink(at("nowhere"), path) }},
		{"no/folder", "make the folder first", func(string) error { return nil }},
		{"text", "remove it, or name another path", func(path string) error { return os.WriteFile(path, []byte("text\n"), 0o600) }},
		{"open to all", "chmod 600 it", func(path string) error { return errors.Join(os.WriteFile(path, nil, 0o600), os.Chmod(path, 0o666)) }},
		{"another user's", "remove it or chown it", func(path string) error {
			if os.Geteuid() != 0 {
				return errors.ErrUnsupported
			}
			return errors.Join(os.WriteFile(path, nil, 0o600), os.Chown(path, user, -1))
		}},
		{"locked", "each needs a file of its own", func(path string) error {
			w, _ := open(t, slab.Options{Persist: path})
			return w.Flush(t.Context())
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := at(c.name)
			if err := c.plant(path); errors.Is(err, errors.ErrUnsupported) {
				testkit.Missing(t, "root, who alone may give files away")
			} else if err != nil {
				t.Fatal(err)
			}
			_, err := slab.New(io.Discard, slab.Options{Persist: path})
			if err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("New = %v, want the path and %q", err, c.says)
			}
		})
	}
	if _, err := os.Stat(at("nowhere")); !errors.Is(err, os.ErrNotExist) {
		t.Error("a dangling link was followed")
	}
}

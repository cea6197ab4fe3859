package file_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rollway/rollway/file"
	"github.com/rollway/rollway/internal/testkit"
)

// The power fails at some moment of a process that writes, rotates, packs and
// prunes. A recorder notes every system call that changes the disk; what a cut
// may leave is worked out from that order, made on a real disk and opened.

func TestPowerCut(t *testing.T) {
	t.Parallel()
	testkit.NoRace(t, "the process under strace tells the detector nothing")
	powerCut(t, 8)
}

func TestPowerCutLong(t *testing.T) {
	testkit.Nightly(t, testkit.Kills, "eight times as many moments of a power cut")
	powerCut(t, 1)
}

// powerCut tries one in some of the moments.
func powerCut(t *testing.T, one int) {
	strace := testkit.Strace(t)
	for kind, o := range powerOptions {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			const lines = 200 // some five files
			ops := record(t, strace, kind, lines)
			rng := rand.New(rand.NewPCG(1, 2)) // which of the possible states are tried
			states, d := 0, newDrive()
			for i, op := range ops {
				d.apply(t, op)
				if op.kind == opWrite && i%(11*one) > 0 || op.kind == opTell || op.kind == opSync && i%one > 0 {
					continue
				}
				for _, s := range []map[string][]byte{d.least(), d.most(), d.some(rng)} {
					checkCut(t, s, d, o)
					states++
				}
				if t.Failed() {
					t.Fatalf("after operation %d of %d: %v", i, len(ops), op)
				}
			}
			t.Logf("%d operations, %d states, %d rotations, %d removals", len(ops), states, d.renames, d.removes)
			if d.safe < lines-20 || d.renames < 4 {
				t.Errorf("%d lines safe, %d rotations: this tests little", d.safe, d.renames)
			}
		})
	}
}

// checkCut makes s a folder and opens the file there, then writes on. What was
// safe is there once, in order; what was not may be missing or torn; pruning
// may have taken the oldest files.
func checkCut(t *testing.T, s map[string][]byte, d *drive, o file.Options) {
	t.Helper()
	dir := memoryDir(t)
	for name, data := range s {
		testkit.OK(t, os.WriteFile(filepath.Join(dir, name), data, 0o644))
	}
	path := filepath.Join(dir, "log")
	o.Sync = file.SyncNever
	o.OnError = orTold(t)
	f, err := file.Open(path, o)
	if err != nil {
		t.Errorf("Open after the cut: %v; the folder: %v", err, names(s))
		return
	}
	const more, first = 60, 1_000_000 // the new ones begin one or two files
	for seq := range more {
		write(t, f, crashLine(first+seq))
	}
	if err := f.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	paths, contents := parts(t, path, nil)
	defer func() {
		if t.Failed() {
			t.Logf("safe %d; after the cut %v; now %v", d.safe, names(s), paths)
		}
		os.RemoveAll(dir)
	}()
	for _, name := range glob(t, path+"-*") {
		if strings.HasSuffix(name, ".part") || o.Compress != nil && o.KeepPlain == 0 && !strings.HasSuffix(name, ".gz") {
			t.Errorf("left: %s", name)
		}
	}
	var seen []int
	damaged := 0
	for line := range strings.Lines(strings.Join(contents, "")) {
		seq, err := strconv.Atoi(line[:max(strings.IndexByte(line, ' '), 0)])
		if err != nil || line != crashLine(seq) {
			damaged++
			continue
		}
		seen = append(seen, seq)
	}
	for i := 1; i < len(seen); i++ {
		if seen[i] <= seen[i-1] {
			t.Errorf("line %d after line %d", seen[i], seen[i-1])
		}
	}
	begin := 0
	if o.KeepCount > 0 && len(seen) > 0 && seen[0] != first {
		begin = seen[0] // a hole after it is still one
	}
	next := begin
	for _, seq := range seen {
		if seq == next {
			next++
		}
	}
	wantFrom := d.safe
	if o.KeepCount > 0 && (len(seen) == 0 || seen[0] >= first) {
		wantFrom = 0 // the new lines have filled all that is kept
	}
	if next < wantFrom {
		t.Errorf("line %d is lost, %d were safe (%d damaged)", next, d.safe, damaged)
	}
	if d.safe == d.written && damaged > 0 {
		t.Errorf("%d damaged lines where all were safe", damaged)
	}
	if n, i := len(seen), slices.Index(seen, first); o.KeepCount == 0 && (i < 0 || n-i != more) {
		t.Errorf("of the lines written after the cut %d are there", n-max(i, 0))
	}
}

func names(s map[string][]byte) (all []string) {
	for name, data := range s {
		all = append(all, fmt.Sprintf("%s: %d", name, len(data)))
	}
	slices.Sort(all)
	return all
}

type opKind int

const (
	opOpen opKind = iota
	opWrite
	opCut
	opSync
	opSyncFolder
	opRename
	opRemove
	opTell
)

// An op is one change of the disk, or that the writer told of safe lines.
type op struct {
	kind opKind
	name string // relative to the folder
	to   string
	fd   int
	data []byte
	size int
}

func (o op) String() string {
	return fmt.Sprintf("%d %s %s fd %d, %d bytes, size %d", o.kind, o.name, o.to, o.fd, len(o.data), o.size)
}

// record runs powerWriter under strace and returns what it did to its folder.
func record(t *testing.T, strace, kind string, lines int) (ops []op) {
	t.Helper()
	dir, err := filepath.EvalSymlinks(memoryDir(t))
	testkit.OK(t, err)
	trace := filepath.Join(t.TempDir(), "trace")
	cmd := exec.Command(strace, "-f", "-qq", "-xx", "-s", "100000", "-o", trace,
		"-e", "trace=openat,write,pwrite64,ftruncate,fsync,fdatasync,rename,renameat,renameat2,link,linkat,unlink,unlinkat,close", os.Args[0])
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s|%d|0|%d|%s", crashEnv, filepath.Join(dir, "log"), file.Buffered, lines, kind))
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v: %s", err, &out)
	}
	b, err := os.ReadFile(trace)
	testkit.OK(t, err)
	begun := map[string]string{} // by thread: a call that strace saw begin
	for line := range strings.Lines(string(b)) {
		thread, call, _ := strings.Cut(strings.TrimSpace(line), " ")
		call = strings.TrimSpace(call)
		if head, ok := strings.CutSuffix(call, "<unfinished ...>"); ok {
			begun[thread] = strings.TrimSpace(head)
			continue
		}
		if _, tail, ok := strings.Cut(call, " resumed>"); ok {
			call = begun[thread] + tail
		}
		if o, ok := parseCall(t, dir, call); ok {
			ops = append(ops, o)
		}
	}
	return ops
}

// traced is a call that has succeeded.
var traced = regexp.MustCompile(`^(\w+)\((.*)\) += (\d+)`)

// parseCall reads a system call as strace prints it with -xx.
func parseCall(t *testing.T, dir, call string) (o op, ok bool) {
	t.Helper()
	m := traced.FindStringSubmatch(call)
	if m == nil {
		return op{}, false // it failed, or is a signal, or the end of the process
	}
	name, args := m[1], strings.Split(m[2], ", ")
	result, err := strconv.Atoi(m[3])
	if err != nil {
		t.Fatalf("result of %.200q", call)
	}
	number := func(i int) int {
		n, err := strconv.Atoi(strings.TrimSpace(args[i]))
		if err != nil {
			t.Fatalf("argument %d of %.200q", i, call)
		}
		return n
	}
	within := func(i int) string {
		full := unhex(t, args[i])
		if full == dir {
			return "."
		}
		rel, in := strings.CutPrefix(full, dir+"/")
		if !in {
			return ""
		}
		return rel
	}
	switch name {
	case "openat":
		o = op{kind: opOpen, name: within(1), fd: result}
		if strings.Contains(args[2], "O_TRUNC") {
			o.size = 1
		}
		return o, o.name != ""
	case "close":
		return op{}, false // descriptors are looked up by their last open
	case "write":
		if fd := number(0); fd == 1 {
			n, err := strconv.Atoi(strings.TrimSpace(unhex(t, args[1])))
			if err != nil {
				t.Fatalf("the writer told %q", args[1])
			}
			return op{kind: opTell, size: n}, true
		}
		return op{kind: opWrite, fd: number(0), data: []byte(unhex(t, args[1]))[:result]}, true
	case "ftruncate":
		return op{kind: opCut, fd: number(0), size: number(1)}, true
	case "fsync", "fdatasync":
		return op{kind: opSync, fd: number(0)}, true
	case "renameat", "renameat2":
		o = op{kind: opRename, name: within(1), to: within(3)}
		return o, o.name != ""
	case "unlinkat":
		o = op{kind: opRemove, name: within(1)}
		return o, o.name != ""
	}
	t.Fatalf("a call that the model does not know: %.200q", call)
	return op{}, false
}

// unhex reads a string of strace's -xx.
func unhex(t *testing.T, s string) string {
	t.Helper()
	s = strings.Trim(strings.TrimSpace(s), `"`)
	b := make([]byte, 0, len(s)/4)
	for i := 0; i+4 <= len(s); i += 4 {
		n, err := strconv.ParseUint(s[i+2:i+4], 16, 8)
		if err != nil || s[i:i+2] != `\x` {
			t.Fatal(errors.Join(err, fmt.Errorf("not hexadecimal: %.60q", s)))
		}
		b = append(b, byte(n))
	}
	return string(b)
}

// A drive is what an order of operations may have left when the power fails:
// names change in order, and as far as the folder was fsynced for certain; so
// do the bytes of one file; a part of a write may be there too.
// Neither waits for the other.
type drive struct {
	fds      map[int]*node
	now      map[string]*node
	names    []map[string]*node // since the last fsync of the folder, which was names[0]
	nodes    []*node
	safe     int // lines that the writer was told are safe
	written  int
	renames  int
	removes  int
	everUsed map[string]bool
}

// A node is a file: its contents since its last fsync.
type node struct {
	folder   bool
	contents [][]byte // the first is certain
}

func newDrive() *drive {
	return &drive{fds: map[int]*node{}, now: map[string]*node{}, names: []map[string]*node{{}}, everUsed: map[string]bool{}}
}

func (d *drive) apply(t *testing.T, o op) {
	t.Helper()
	n := d.fds[o.fd]
	switch o.kind {
	case opOpen:
		if o.name == "." {
			d.fds[o.fd] = &node{folder: true}
			return
		}
		n = d.now[o.name]
		if n == nil {
			n = &node{contents: [][]byte{nil}}
			d.nodes = append(d.nodes, n)
			d.now[o.name] = n
			d.renamed()
		}
		if o.size == 1 {
			n.become(nil)
		}
		d.fds[o.fd] = n
	case opWrite:
		if n == nil {
			return // an eventfd of the runtime
		}
		n.become(append(slices.Clone(n.last()), o.data...))
		if n == d.now["log"] {
			d.written += bytes.Count(o.data, []byte{'\n'})
		}
	case opCut:
		n.become(slices.Clone(n.last()[:o.size]))
	case opSync:
		if n == nil {
			t.Fatalf("fsync of descriptor %d", o.fd)
		}
		if n.folder {
			d.names = d.names[len(d.names)-1:]
			return
		}
		n.contents = [][]byte{n.last()}
	case opRename:
		if d.now[o.to] != nil || d.everUsed[o.to] {
			t.Errorf("the name %s was given before", o.to)
		}
		d.everUsed[o.to] = true
		d.now[o.to] = d.now[o.name]
		delete(d.now, o.name)
		d.renamed()
		if o.name == "log" {
			d.renames++
		}
	case opRemove:
		delete(d.now, o.name)
		d.renamed()
		d.removes++
	case opTell:
		d.safe = o.size
	}
}

func (n *node) last() []byte          { return n.contents[len(n.contents)-1] }
func (n *node) become(content []byte) { n.contents = append(n.contents, content) }

// renamed notes the names there are now.
func (d *drive) renamed() {
	m := map[string]*node{}
	for name, n := range d.now {
		m[name] = n
	}
	d.names = append(d.names, m)
}

// state is the files of names, with the contents that pick chooses.
func state(names map[string]*node, pick func(*node) []byte) map[string][]byte {
	s := map[string][]byte{}
	for name, n := range names {
		s[name] = pick(n)
	}
	return s
}

// least is only what is certain.
func (d *drive) least() map[string][]byte {
	return state(d.names[0], func(n *node) []byte { return n.contents[0] })
}

// most is all.
func (d *drive) most() map[string][]byte { return state(d.now, (*node).last) }

// some is one of what may be.
func (d *drive) some(rng *rand.Rand) map[string][]byte {
	picked := map[*node][]byte{}
	for _, n := range d.nodes { // in an order that does not change
		i := rng.IntN(len(n.contents))
		c := n.contents[i]
		if i+1 < len(n.contents) && rng.IntN(2) == 0 {
			if next := n.contents[i+1]; len(next) > len(c) {
				c = next[:len(c)+rng.IntN(len(next)-len(c))]
			}
		}
		picked[n] = c
	}
	return state(d.names[rng.IntN(len(d.names))], func(n *node) []byte { return picked[n] })
}

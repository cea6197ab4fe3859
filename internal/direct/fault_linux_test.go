package direct

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/rollway/rollway/internal/smalldisk"
	"github.com/rollway/rollway/internal/testkit"
)

// Faults of the system: each test runs itself again as a child, whose limits,
// mounts and tracer are its own.

// slack is what a file may take on the disk beyond its size.
const slack = 16 << 10

// variants are the ways of writing that the faults are tried on.
var variants = []Options{
	{Mode: Direct},
	{Mode: Direct, Reserve: -1, inPlace: 8 << 10, chunk: 64 << 10},
	{Mode: Direct, Reserve: 128 << 10, inPlace: 8 << 10, chunk: Align},
	{Mode: Uncached, chunk: 64 << 10},
	{Mode: Buffered, Reserve: 64 << 10},
}

// fillUp appends lines until there is an error that is want, and looks at the
// file: it holds what the Tail says, and nothing else. Then it makes room and
// gives the rest again, and with it more. In the end each byte is there once.
func fillUp(t *testing.T, dir string, want error, limit, unlimit func()) {
	memory, err := NewMemorySet(1, 2<<20)
	testkit.OK(t, err)
	for i, o := range variants {
		for round := range 4 {
			t.Run(fmt.Sprintf("%d %v %d", i, o.Mode, round), func(t *testing.T) {
				rng := rand.New(rand.NewPCG(uint64(i), uint64(round)))
				path := filepath.Join(dir, "log")
				defer os.Remove(path)
				tail, f := openTail(t, path, o)
				limit()
				failed := false
				next := 0
				check := checker{path: path}
				for range 200 {
					size := 1 + rng.IntN(3000)
					if round%2 == 1 {
						size = 1 + rng.IntN(90_000)
					}
					b := lines(memory.Bytes(0)[:0], rng, &next, size)
					given := bytes.Clone(b)
					for len(b) > 0 {
						n, err := tail.WriteBuffers([][]byte{b})
						if info, e := f.Stat(); e != nil || info.Size() != tail.Size() {
							t.Fatalf("the file has %d bytes, Size says %d, %v", info.Size(), tail.Size(), e)
						}
						b = b[n:]
						if !bytes.Equal(b, given[len(given)-len(b):]) {
							t.Fatal("what has to be given again was changed")
						}
						if err == nil {
							continue
						}
						if !errors.Is(err, want) {
							t.Fatalf("after %d bytes: %v, want %v", tail.Size(), err, want)
						}
						if !failed {
							failed = true
							if n, err := tail.WriteBuffers([][]byte{b}); n != 0 || !errors.Is(err, want) {
								t.Logf("tried again: %d, %v", n, err)
								b = b[n:]
							}
							unlimit()
						}
					}
				}
				if !failed {
					t.Error("there was no error")
				}
				check.check(t, next)
				size := tail.Size()
				closeTail(t, tail, f)
				if info, err := os.Stat(path); err != nil || info.Size() != size || info.Sys().(*syscall.Stat_t).Blocks*512 > size+slack {
					t.Errorf("%d bytes take %d blocks, Size said %d, %v", info.Size(), info.Sys().(*syscall.Stat_t).Blocks, size, err)
				}
			})
		}
	}
}

func TestFileSizeLimit(t *testing.T) {
	dir := smalldisk.Dir()
	if dir == "" {
		if out, err := smalldisk.Child(t, nil); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	signal.Ignore(syscall.SIGXFSZ)
	var limit syscall.Rlimit
	testkit.OK(t, syscall.Getrlimit(syscall.RLIMIT_FSIZE, &limit))
	set := func(n uint64) func() {
		return func() {
			limit.Cur = n
			testkit.OK(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit))
		}
	}
	fillUp(t, dir, syscall.EFBIG, set(100_001), set(limit.Cur))
}

func TestFullDisk(t *testing.T) {
	dir := smalldisk.Mount(t, "size=16m")
	if dir == "" {
		return
	}
	ballast := filepath.Join(dir, "ballast")
	fillUp(t, dir, syscall.ENOSPC, func() {
		testkit.OK(t, os.WriteFile(ballast, make([]byte, 16<<20-128<<10), 0o600))
	}, func() {
		testkit.OK(t, os.Remove(ballast))
	})
}

// Calls that a signal interrupts, and calls that fail once, are no loss.
func TestInjected(t *testing.T) {
	if dir := smalldisk.Dir(); dir != "" {
		for i, o := range variants {
			rng := rand.New(rand.NewPCG(7, uint64(i)))
			path := filepath.Join(dir, fmt.Sprint("log", i))
			tail, f := openTail(t, path, o)
			next, errs := 0, 0
			check := checker{path: path}
			for range 60 {
				b := lines(nil, rng, &next, 1+rng.IntN(20_000))
				for len(b) > 0 {
					n, err := tail.WriteBuffers([][]byte{b})
					b = b[n:]
					if err != nil && !errors.Is(err, syscall.EIO) {
						t.Fatal(err)
					} else if err != nil {
						errs++
					}
				}
			}
			check.check(t, next)
			closeTail(t, tail, f)
			t.Logf("%d errors", errs)
		}
		return
	}
	strace := testkit.Strace(t)
	for _, inject := range []string{
		"pwritev2:error=EINTR:when=2+3",
		"pwritev2:error=EIO:when=3+4",
		"fallocate:error=ENOSPC",
		"fallocate:error=EOPNOTSUPP",
	} {
		call, _, _ := strings.Cut(inject, ":")
		out, err := smalldisk.Child(t, nil, strace, "-f", "-qq", "-o", os.DevNull, "-e", "trace="+call, "-e", "inject="+inject)
		if err != nil {
			t.Errorf("%s: %v\n%s", inject, err, out)
		}
		if strings.Contains(inject, "EIO") == strings.Contains(out, ": 0 errors") || strings.Contains(out, "--- SKIP") {
			t.Errorf("%s:\n%s", inject, out)
		}
	}
}

// A reader that looks at the file all the time never sees a byte 0, except the
// moment that the package's comment tells of.
func TestReaderBesideTheWriter(t *testing.T) {
	for i, o := range variants {
		t.Run(fmt.Sprint(i, " ", o.Mode), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(1, uint64(i)))
			path := filepath.Join(t.TempDir(), "log")
			tail, f := openTail(t, path, o)
			var stop atomic.Bool
			reads := make(chan int)
			go func() {
				n, moments := 0, 0
				defer func() { t.Logf("%d reads met bytes 0", moments); reads <- n }()
				for ; !stop.Load(); n++ {
					data, err := os.ReadFile(path)
					if err != nil {
						t.Error(err)
						return
					}
					at := bytes.IndexByte(data, 0)
					if at < 0 {
						continue
					}
					moments++
					if o.Mode != Direct {
						t.Errorf("byte 0 at %d of %d", at, len(data))
						return
					}
					for until := time.Now().Add(30 * time.Second); bytes.IndexByte(data, 0) >= 0; {
						if time.Now().After(until) {
							t.Errorf("byte 0 at %d of %d for good", at, len(data))
							return
						}
						if again, err := os.ReadFile(path); err != nil {
							t.Error(err)
							return
						} else {
							data = again[:min(len(again), len(data))] // it may have been cut
						}
					}
				}
			}()
			m, err := NewMemorySet(1, 300<<10)
			testkit.OK(t, err)
			defer m.Free()
			next := 0
			for until := time.Now().Add(500 * time.Millisecond); time.Now().Before(until) && tail.Size() < 8<<20; {
				size := 1 + rng.IntN(2000)
				if rng.IntN(8) == 0 {
					size = 1 + rng.IntN(250<<10)
				}
				b := lines(m.Bytes(0)[:0], rng, &next, size)
				if n, err := tail.WriteBuffers([][]byte{b}); err != nil || n != int64(len(b)) {
					t.Fatalf("%d of %d, %v", n, len(b), err)
				}
			}
			stop.Store(true)
			t.Logf("%d reads, %d lines", <-reads, next)
			check := checker{path: path}
			check.check(t, next)
			closeTail(t, tail, f)
		})
	}
}

// The file is opened again at each size around a block, and goes on there. What
// was allocated ahead is given back.
func TestReopenUnaligned(t *testing.T) {
	for _, o := range variants {
		path := filepath.Join(t.TempDir(), "log")
		var want []byte
		for _, n := range []int{1, 510, 511, 512, 513, 4094, 4095, 4096, 4097, 1, 1, 8191, 100_000} {
			tail, f := openTail(t, path, o)
			if tail.Size() != int64(len(want)) {
				t.Fatalf("Size = %d, want %d", tail.Size(), len(want))
			}
			b := append(bytes.Repeat([]byte{byte('a' + n%26)}, n-1), '\n')
			want = append(want, b...)
			if k, err := tail.Write(b); k != n || err != nil {
				t.Fatalf("Write = %d, %v", k, err)
			}
			closeTail(t, tail, f)
			got, err := os.ReadFile(path)
			if err != nil || !bytes.Equal(got, want) {
				t.Fatalf("%v: %d bytes, want %d, %v", o.Mode, len(got), len(want), err)
			}
			info, _ := os.Stat(path)
			if blocks := info.Sys().(*syscall.Stat_t).Blocks * 512; blocks > info.Size()+slack {
				t.Errorf("%v, reserve %d: %d bytes take %d on the disk after Close", o.Mode, o.Reserve, info.Size(), blocks)
			}
		}
	}
}

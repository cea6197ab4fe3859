package direct

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rollway/rollway/internal/testkit"
)

// openTail opens a file in dir, which may hold something already.
func openTail(t *testing.T, path string, o Options) (*Tail, *os.File) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	testkit.OK(t, err)
	tail, err := New(f, o)
	if errors.Is(err, errors.ErrUnsupported) {
		t.Skipf("%v here: %v", o.Mode, err)
	}
	testkit.OK(t, err)
	return tail, f
}

func closeTail(t *testing.T, tail *Tail, f *os.File) {
	t.Helper()
	if err := errors.Join(tail.Close(), f.Close()); err != nil {
		t.Error(err)
	}
}

var pad = strings.Repeat("x", 300)

// lines appends numbered lines of random length until there are n bytes or a
// little more.
func lines(dst []byte, rng *rand.Rand, next *int, n int) []byte {
	for len(dst) < n {
		dst = strconv.AppendInt(dst, int64(*next), 10)
		dst = append(dst, ' ')
		dst = append(dst, pad[:rng.IntN(len(pad))]...)
		dst = append(dst, '\n')
		*next++
	}
	return dst
}

// TestTailHoldsWhatItWasGiven writes buffers of every size, in place and not,
// over several openings, and looks at the file after each call: it holds the
// lines in order, no byte 0, no more white space than documented and none at its end.
func TestTailHoldsWhatItWasGiven(t *testing.T) {
	for _, mode := range []Mode{Direct, Uncached, Buffered} {
		for _, inPlace := range []int{0, 8 << 10} {
			t.Run(fmt.Sprintf("%v, in place from %d", mode, inPlace), func(t *testing.T) {
				rng := rand.New(rand.NewPCG(1, uint64(mode)))
				path := filepath.Join(t.TempDir(), "log")
				memory := make([]*MemorySet, 4)
				for i := range memory {
					m, err := NewMemorySet(1, 3<<20)
					testkit.OK(t, err)
					defer m.Free()
					memory[i] = m
				}
				next, given := 0, int64(0)
				check := checker{path: path}
				for range 3 {
					tail, f := openTail(t, path, Options{Mode: mode, inPlace: inPlace, chunk: 1 << 20})
					for range 12 {
						var bufs [][]byte
						for i := range rng.IntN(len(memory) + 1) {
							size := 1 + rng.IntN(5000)
							if rng.IntN(3) == 0 {
								size = 1 + rng.IntN(2<<20)
							}
							b := lines(memory[i].Bytes(0)[:0], rng, &next, size)
							bufs = append(bufs, b)
						}
						want := int64(0)
						for _, b := range bufs {
							want += int64(len(b))
						}
						n, err := tail.WriteBuffers(bufs)
						if err != nil || n != want {
							t.Fatalf("WriteBuffers: %d of %d, %v", n, want, err)
						}
						given += want
						check.check(t, next)
					}
					small := lines(nil, rng, &next, 200_000)
					keep := bytes.Clone(small)
					if n, err := tail.Write(small); err != nil || n != len(small) || !bytes.Equal(keep, small) {
						t.Fatalf("Write: %d of %d, %v", n, len(small), err)
					}
					given += int64(len(small))
					check.check(t, next)
					info, err := os.Stat(path)
					if err != nil || info.Size() != tail.Size() {
						t.Fatalf("the file has %d bytes, Size says %d, %v", info.Size(), tail.Size(), err)
					}
					closeTail(t, tail, f)
				}
				info, _ := os.Stat(path)
				if pad := info.Size() - given; pad < 0 || inPlace == 0 && float64(pad) > 0.001*float64(given) || mode != Direct && pad != 0 {
					t.Errorf("%d bytes of white space for %d given", pad, given)
				}
			})
		}
	}
}

// checker reads a file that grows, from where it has seen whole lines.
type checker struct {
	path string
	from int64
	next int
}

// check reads on: there must be the lines up to want, numbered, each followed
// by spaces at most, and there may be blank ones.
func (c *checker) check(t *testing.T, want int) {
	t.Helper()
	data, err := os.ReadFile(c.path)
	testkit.OK(t, err)
	if data = data[c.from:]; bytes.IndexByte(data, 0) >= 0 {
		t.Fatal("a byte 0")
	}
	if len(data) > 0 && data[len(data)-1] != '\n' {
		t.Fatalf("the file ends in %.20q", data[max(0, len(data)-20):])
	}
	if bytes.HasSuffix(data, []byte("  \n")) || bytes.HasSuffix(data, []byte("\n\n")) { // a line may end in one space
		t.Fatalf("the file ends in white space that nobody gave: %.20q", data[max(0, len(data)-20):])
	}
	c.from += int64(len(data))
	for line := range bytes.Lines(data) {
		line = bytes.TrimRight(line, " \n")
		if len(line) == 0 {
			continue
		}
		number, rest, _ := bytes.Cut(line, []byte(" "))
		if n, err := strconv.Atoi(string(number)); err != nil || n != c.next || bytes.Count(rest, []byte("x")) != len(rest) {
			t.Fatalf("line %d is %.60q", c.next, line)
		}
		c.next++
	}
	if c.next != want {
		t.Fatalf("%d lines, want %d", c.next, want)
	}
}

func TestTailRefuses(t *testing.T) {
	dir := t.TempDir()
	f, err := os.Open(dir)
	testkit.OK(t, err)
	defer f.Close()
	if _, err := New(f, Options{}); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("a folder: %v", err)
	}
}

package slab

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// openAt returns an open slab of size bytes, filled up to pos, and the memory
// it is in, which has guards of 64 bytes around it.
func openAt(pos, size int) (o *opened, memory []byte) {
	memory = bytes.Repeat([]byte{'#'}, 64+size+64)
	return &opened{pos: pos, end: size, lines: 7, committed: new(uint64), buf: memory[64 : 64+size : 64+size]}, memory
}

// checkPut holds putUnlock against what it says it does.
func checkPut(t *testing.T, p []byte, pos int) {
	t.Helper()
	o, memory := openAt(pos, pos+len(p)+40)
	want := bytes.Clone(memory)
	copy(want[64+pos:], p)
	o.mu.Lock()
	o.putUnlock(p)
	if !bytes.Equal(memory, want) {
		t.Fatalf("%d bytes at %d: the memory is %q, want %q", len(p), pos, memory, want)
	}
	n := 7 + bytes.Count(p, newline)
	if end := pos + len(p); o.pos != end || *o.committed != uint64(n)<<32|uint64(end) || o.end != pos+len(p)+40 {
		t.Fatalf("%d bytes at %d: pos is %d, committed %#x, end %d", len(p), pos, o.pos, *o.committed, o.end)
	}
	if o.lines != n {
		t.Fatalf("%d bytes at %d: %d lines, want %d: %q", len(p), pos, o.lines, n, p)
	}
	if !o.mu.TryLock() {
		t.Fatal("the lock is still held")
	}
}

// TestPut: every length up to some turns of the loop, newlines everywhere.
func TestPut(t *testing.T) {
	t.Logf("in one pass: %t", hasPutLong)
	rng := rand.New(rand.NewPCG(1, 2))
	for n := range 600 {
		for _, bytesOf := range []string{"x", "\n", "x\n", "\n\x8a\x0b\xf5", "abcdefgh\n"} {
			p := make([]byte, n)
			for i := range p {
				p[i] = bytesOf[rng.IntN(len(bytesOf))]
			}
			checkPut(t, p, rng.IntN(70))
		}
	}
	checkPut(t, bytes.Repeat([]byte("\n"), 1<<20), 3)
}

func FuzzPut(f *testing.F) {
	f.Add([]byte("a line of more than thirty-two bytes\nand another one\n"), uint8(5))
	f.Fuzz(func(t *testing.T, p []byte, pos uint8) { checkPut(t, p, int(pos)) })
}

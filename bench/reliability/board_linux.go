package reliability

import (
	"bytes"
	"os"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// boardHead is room for the flags before the states of the lines.
const boardHead = 4096

// The flags.
const (
	flagTrap   = iota // how far the Write of the line that cannot be copied is
	flagStruck        // 1 when the fault has come
)

// Values of flagTrap.
const (
	inTrap  = 1
	outTrap = 2 // it should never be
)

// board is the account of one process: a byte for each line of each producer.
type board struct {
	mem      []byte
	perLines int
}

func boardSize(producers, linesEach int) int64 { return int64(boardHead + producers*linesEach) }

// openBoard maps the file, which has the right size already.
func openBoard(path string, producers, linesEach int) (*board, error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	mem, err := unix.Mmap(int(f.Fd()), 0, int(boardSize(producers, linesEach)), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, err
	}
	return &board{mem, linesEach}, nil
}

func (b *board) close() { _ = unix.Munmap(b.mem) }

// set is called by the producer of the line alone. The order in which stores
// become visible does not matter: the file is read when the process is gone.
func (b *board) set(producer, line int, state byte) {
	b.mem[boardHead+producer*b.perLines+line] = state
}

func (b *board) get(producer, line int) byte { return b.mem[boardHead+producer*b.perLines+line] }

// count returns how many lines of a producer, from one on, have a state.
func (b *board) count(producer, from int, state byte) int {
	return bytes.Count(b.mem[boardHead+producer*b.perLines+from:boardHead+(producer+1)*b.perLines], []byte{state})
}

func (b *board) flag(i int) *atomic.Uint32 { return (*atomic.Uint32)(unsafe.Pointer(&b.mem[4*i])) }

// progress is a line count that only grows, for the parent to see that the
// child is at work.
func (b *board) progress() *atomic.Uint32 { return b.flag(16) }

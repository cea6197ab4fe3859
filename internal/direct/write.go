package direct

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"syscall"
)

// maxVectors is the most buffers of one system call (IOV_MAX of Linux).
const maxVectors = 1024

// writeInPlace writes the buffers at the front of bufs that can be written
// where they are, as many as one system call takes, and before them the block
// that the file ends in, which becomes a whole one. What the last of them has
// beyond whole blocks goes through the page cache. It returns how many of their
// bytes were written.
func (t *Tail) writeInPlace(bufs [][]byte) (n int64, err error) {
	base, head, size := t.size-int64(t.carry), 0, 0
	t.iov = t.iov[:0]
	if t.carry > 0 {
		block := t.stage.Bytes()[:t.block]
		fill(block[t.carry:])
		t.iov = append(t.iov, block)
		head = t.block
	}
	for size = head; len(t.iov) < maxVectors && len(t.iov)-min(head, 1) < len(bufs); {
		b := bufs[len(t.iov)-min(head, 1)]
		if len(b) == 0 || !t.fitsInPlace(b) || size >= t.opt.Chunk {
			break
		}
		whole := t.pad(b)
		t.iov = append(t.iov, whole[:min(len(whole), t.opt.Chunk-size)])
		size += len(t.iov[len(t.iov)-1])
	}
	bufs = bufs[:len(t.iov)-min(head, 1)]
	end := t.openEnd(bufs)
	size -= roundUp(len(end), t.block)

	wrote, err := t.writeAt(base, size)
	if wrote > 0 {
		t.size = base + int64(wrote)
		if head > 0 {
			t.padded += int64(t.block - t.carry)
		}
		t.carry = 0
	}
	complete := err == nil
	for wrote -= min(wrote, head); len(bufs) > 0; bufs = bufs[1:] {
		b := bufs[0]
		whole := roundUp(len(b), t.block)
		if wrote < whole {
			n += int64(wrote)
			break
		}
		wrote -= whole
		n += int64(len(b))
		t.padded += int64(whole - len(b))
	}
	for _, b := range bufs {
		if t.block > 1 {
			b[len(b)-1] = '\n' // the caller gives it again
		}
	}
	if complete && len(end) > 0 {
		t.carry = copy(t.stage.Bytes(), end)
		var more int
		more, err = t.writeEnd(t.stage.Bytes()[:t.carry], t.size)
		t.carry = more
		t.size += int64(more)
		n += int64(more)
	}
	return n, err
}

// openEnd takes what does not make a whole block off the last piece of iov, if
// the last of bufs ends there, and returns it. So the file ends as that does, and
// nobody meets white space at its end.
func (t *Tail) openEnd(bufs [][]byte) (end []byte) {
	if t.block == 1 || len(bufs) == 0 {
		return nil
	}
	b, last := bufs[len(bufs)-1], &t.iov[len(t.iov)-1]
	if n := len(b) % t.block; n > 0 && len(*last) > len(b) {
		b[len(b)-1] = '\n'
		*last = (*last)[:len(b)-n]
		return b[len(b)-n:]
	}
	return nil
}

// pad makes b whole blocks: spaces come before its line end.
func (t *Tail) pad(b []byte) []byte {
	n := len(b)
	whole := b[:roundUp(n, t.block)]
	if len(whole) > n {
		fill(whole[n:])
		whole[n-1] = ' '
	}
	return whole
}

// fill makes b white space that ends a line.
func fill(b []byte) {
	for i := range b {
		b[i] = ' '
	}
	b[len(b)-1] = '\n'
}

// writeStaged copies what is at the front of bufs behind the block that the
// file ends in and writes that: whole blocks past the page cache, what is left
// through it. Unless a line is longer than the stage, the file ends in a line
// end after it. It returns how many bytes of bufs were written.
func (t *Tail) writeStaged(bufs [][]byte) (n int64, err error) {
	stage, base, end := t.stage.Bytes(), t.size-int64(t.carry), t.carry
	for i, b := range bufs {
		if i > 0 && t.fitsInPlace0(b) {
			break
		}
		k := copy(stage[end:], b)
		end += k
		if k < len(b) {
			if whole := bytes.LastIndexByte(stage[t.carry:end], '\n') + 1; whole > 0 {
				end = t.carry + whole
			}
			break
		}
	}
	there := t.carry // of the stage, in the file
	if whole := end / t.block * t.block; whole > 0 {
		t.iov = append(t.iov[:0], stage[:whole])
		var wrote int
		wrote, err = t.writeAt(base, whole)
		there = max(there, wrote)
	}
	if err == nil {
		var wrote int
		wrote, err = t.writeEnd(stage[there:end], base+int64(there))
		there += wrote
	}
	n = int64(there - t.carry)
	t.size = base + int64(there)
	t.carry = there % t.block
	copy(stage, stage[there-t.carry:there])
	return n, err
}

// writeEnd writes p, less than a block, at offset, the end of the file. A block
// that is not whole can only get there through the page cache: were it filled up
// and the file cut to its size, who follows the file would read what was filled
// in, and find the file cut under it.
func (t *Tail) writeEnd(p []byte, offset int64) (wrote int, err error) {
	if len(p) == 0 {
		return 0, nil
	}
	if err := t.sys.bypass(t.f, false); err != nil {
		return 0, err
	}
	for wrote < len(p) && err == nil {
		t.iov = append(t.iov[:0], p[wrote:])
		var n int
		n, err = t.sys.write(t.f, t.iov, offset+int64(wrote))
		wrote += max(n, 0)
		switch {
		case errors.Is(err, syscall.EINTR):
			err = nil
		case err == nil && n <= 0:
			err = io.ErrShortWrite
		}
	}
	return wrote, errors.Join(err, t.sys.bypass(t.f, true))
}

// fitsInPlace0 is fitsInPlace for a buffer that may be empty.
func (t *Tail) fitsInPlace0(b []byte) bool { return len(b) > 0 && t.fitsInPlace(b) }

// truncate cuts the file to its real size, and with it what is allocated
// beyond.
func (t *Tail) truncate() error {
	t.reserved = 0
	if err := t.f.Truncate(t.size); err != nil {
		return fmt.Errorf("cut the file to its %d bytes: %w", t.size, err)
	}
	return nil
}

// writeAt writes t.iov, which holds size bytes, at offset. It returns how many
// were written, in whole blocks, and an error if that is not all.
func (t *Tail) writeAt(offset int64, size int) (wrote int, err error) {
	t.allocate(offset, int64(size))
	for rest := t.iov; wrote < size; {
		n, err := t.sys.write(t.f, rest, offset+int64(wrote))
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		n -= n % t.block // what is of a block is written again
		wrote += max(n, 0)
		rest = skip(rest, n)
		if err == nil && n <= 0 {
			err = io.ErrShortWrite
		}
		if err != nil {
			return wrote, err
		}
	}
	return wrote, nil
}

// skip takes n bytes off the front of bufs and returns the rest. It changes
// bufs.
func skip(bufs [][]byte, n int) [][]byte {
	for n > 0 {
		k := min(len(bufs[0]), n)
		n -= k
		bufs[0] = bufs[0][k:]
		if len(bufs[0]) == 0 {
			bufs = bufs[1:]
		}
	}
	return bufs
}

// allocate has blocks allocated ahead, if that is asked for. Where the file
// system cannot, or the disk has no room, the write shows what is wrong.
func (t *Tail) allocate(offset, size int64) {
	if t.opt.Reserve <= 0 || offset+size <= t.reserved {
		return
	}
	from := max(offset, t.reserved)
	until := offset + size + t.opt.Reserve
	if err := t.sys.allocate(t.f, from, until-from); err != nil {
		t.opt.Reserve /= 4 // a disk that is nearly full
		if errors.Is(err, errors.ErrUnsupported) || t.opt.Reserve < Align {
			t.opt.Reserve = 0
		}
		// What it got before it failed would be missing for the write.
		if info, err := t.f.Stat(); err == nil {
			_ = t.f.Truncate(info.Size())
		}
		return
	}
	t.reserved = until
}

// Sync forces everything to the disk.
func (t *Tail) Sync() error { return t.f.Sync() }

// Close gives back memory and what was allocated beyond the end of the file.
// It does not close the file, which is left in its mode.
func (t *Tail) Close() error {
	var err error
	if t.reserved > t.size {
		// Cutting a file to the size that it has frees what is behind it. ext4
		// punches no holes there.
		err = t.truncate()
	}
	return errors.Join(err, t.Free())
}

// Free is Close where the file is not what the Tail takes it for: it does not
// touch it.
func (t *Tail) Free() error { return t.stage.Free() }

// Restore switches the file back to what it was before New, for who goes on with
// it. One that is only to be closed needs no more calls that can fail.
func (t *Tail) Restore() error { return t.sys.restore(t.f) }

func roundUp(n, block int) int { return (n + block - 1) / block * block }

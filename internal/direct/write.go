package direct

import (
	"bytes"
	"errors"
)

// writeInPlace writes the buffers at the front of bufs that need no copy, as many as one
// system call takes, after the last block of the file, filled up. The rest of the last
// buffer goes through the page cache. It returns how many bytes of bufs were written.
func (t *Tail) writeInPlace(bufs [][]byte) (n int, err error) {
	base, head, stage := t.size-int64(t.carry), 0, t.stage.Bytes(0)
	t.iov = t.iov[:0]
	if t.carry > 0 {
		head = t.block
		fill(stage[t.carry:head])
		t.iov = append(t.iov, stage[:head])
	}
	count, size := 0, head
	for ; count < len(bufs) && len(t.iov) < maxVectors && size < t.chunk && t.fitsInPlace(bufs[count]); count++ {
		whole := t.pad(bufs[count])
		whole = whole[:min(len(whole), t.chunk-size)]
		t.iov = append(t.iov, whole)
		size += len(whole)
	}
	bufs = bufs[:count]
	end := t.openEnd(bufs)
	size -= roundUp(len(end), t.block)

	wrote, err := t.writeBlocks(base, size)
	if wrote > 0 {
		t.size = base + int64(wrote)
		if head > 0 {
			t.padded += int64(t.block - t.carry)
		}
		t.carry = 0
	}
	wrote -= min(wrote, head)
	for _, b := range bufs {
		if t.block > 1 {
			b[len(b)-1] = '\n' // replaces pad's space
		}
		whole := roundUp(len(b), t.block)
		if wrote < whole {
			n += wrote
			wrote = 0
			continue
		}
		wrote -= whole
		n += len(b)
		t.padded += int64(whole - len(b))
	}
	if err == nil && len(end) > 0 {
		t.carry, err = t.writeEnd(stage[:copy(stage, end)], t.size)
		t.size += int64(t.carry)
		n += t.carry
	}
	return n, err
}

// openEnd removes the rest after whole blocks from the last piece of iov, if the last of
// bufs ends there, and returns it: so the file does not end with white space.
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

func (t *Tail) pad(b []byte) []byte {
	n := len(b)
	whole := b[:roundUp(n, t.block)]
	if len(whole) > n {
		fill(whole[n:])
		whole[n-1] = ' '
	}
	return whole
}

func fill(b []byte) {
	for i := range b {
		b[i] = ' '
	}
	b[len(b)-1] = '\n'
}

// writeStaged copies the front of bufs after the last block of the file and writes both:
// whole blocks past the page cache, the rest through it. Then the file ends with a newline,
// unless a line is longer than the stage. It returns how many bytes of bufs were written.
func (t *Tail) writeStaged(bufs [][]byte) (n int, err error) {
	stage, base, end := t.stage.Bytes(0), t.size-int64(t.carry), t.carry
	for i, b := range bufs {
		if i > 0 && t.fitsInPlace(b) {
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
	there := t.carry // bytes of the stage that are in the file already
	if whole := end / t.block * t.block; whole > 0 {
		t.iov = append(t.iov[:0], stage[:whole])
		var wrote int
		wrote, err = t.writeBlocks(base, whole)
		there = max(there, wrote)
	}
	if err == nil && there < end {
		var wrote int
		wrote, err = t.writeEnd(stage[there:end], base+int64(there))
		there += wrote
	}
	n = there - t.carry
	t.size = base + int64(there)
	t.carry = there % t.block
	copy(stage, stage[there-t.carry:there])
	return n, err
}

// writeBlocks writes t.iov, of size bytes, at offset; see writeAll.
func (t *Tail) writeBlocks(offset int64, size int) (wrote int, err error) {
	t.allocate(offset, int64(size))
	return t.sys.writeAll(t.f, t.iov, offset, t.block)
}

// writeEnd writes p, less than a block, at the end of the file through the page cache. If
// the block were padded and the file cut afterwards, a program that follows it would read
// the padding.
func (t *Tail) writeEnd(p []byte, offset int64) (wrote int, err error) {
	if err := Bypass(t.f, false); err != nil {
		return 0, err
	}
	t.iov = append(t.iov[:0], p)
	wrote, err = t.sys.writeAll(t.f, t.iov, offset, 1)
	return wrote, errors.Join(err, Bypass(t.f, true))
}

// allocate allocates blocks ahead. It ignores errors: on a full disk the write fails.
func (t *Tail) allocate(offset, size int64) {
	if t.reserve <= 0 || offset+size <= t.reserved {
		return
	}
	from := max(offset, t.reserved)
	until := offset + size + t.reserve
	if err := Allocate(t.f, from, until-from); err != nil {
		t.reserve /= 4 // the disk is nearly full
		if errors.Is(err, errors.ErrUnsupported) || t.reserve < Align {
			t.reserve = 0
		}
		// Frees what was allocated before the failure: the write needs it.
		if info, err := t.f.Stat(); err == nil {
			_ = t.f.Truncate(info.Size())
		}
		return
	}
	t.reserved = until
}

// Close frees memory and the blocks after the end of the file, which stays open.
func (t *Tail) Close() error {
	var err error
	if t.reserved > t.size {
		// Truncating a file to its size frees them. ext4 punches no holes there.
		err = t.truncate(t.size)
	}
	return errors.Join(err, t.Free())
}

// Free is Close for a file that another program has changed: it does not touch it.
func (t *Tail) Free() error { return t.stage.Free() }

// Restore switches a file that is used on back to its mode before New.
func (t *Tail) Restore() error {
	if t.sys.mode != Direct {
		return nil
	}
	return Bypass(t.f, false)
}

func roundUp(n, block int) int { return (n + block - 1) / block * block }

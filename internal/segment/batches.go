package segment

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/rollway/rollway/internal/direct"
	"github.com/rollway/rollway/internal/disk"
	"github.com/rollway/rollway/internal/framed"
	"github.com/rollway/rollway/internal/logfile"
)

// A Batch is a buffer of framed records: framed.BatchHeaderSize bytes and then
// the records. It begins at a multiple of direct.Align and has room for a block
// behind its end.
type Batch struct {
	Buf     []byte
	Records int
	Number  uint64 // by whose seed the records are framed
}

// batches is the end of a framed file.
type batches struct {
	blocks *direct.Blocks
	seg    framed.Segment
	stage  *direct.Memory // for the header, the last batch and announcements
	bufs   [][]byte       // of one call
	after  []framed.Segment
	filled int64 // bytes that fill blocks
	ended  bool  // the last batch says that none follows
}

// stageSize is what announcements may take, in bytes.
const stageSize = 64 << 10

// newBatches begins a segment in f.
func (l *Log) newBatches(f *os.File) (*batches, error) {
	old := framed.Latest(f) // before direct I/O, which reads whole blocks only
	if old == 0 {           // nobody knows what batches are in it
		if err := f.Truncate(0); err != nil {
			return nil, fmt.Errorf("begin %s: %w", f.Name(), err)
		}
	}
	o := direct.Options{Mode: l.mode, Chunk: l.opt.Chunk}
	blocks, err := direct.NewBlocks(f, o)
	if l.mode != direct.Buffered && errors.Is(err, errors.ErrUnsupported) {
		l.fallBack(f.Name(), err)
		o.Mode = l.mode
		blocks, err = direct.NewBlocks(f, o)
	}
	if err != nil {
		return nil, err
	}
	b := &batches{blocks: blocks}
	// Above that of the batches that are in the file still, also where the clock
	// was set back: a reader takes the newest for the file's.
	l.generation = max(l.generation+1, old+1, uint64(time.Now().UnixNano()))
	if b.seg, err = framed.NewSegment(max(blocks.Block(), framed.MinBlock), l.generation); err == nil {
		b.stage, err = direct.NewMemory(stageSize)
	}
	if err == nil {
		header := b.stage.Bytes()[:framed.SegmentHeaderSize]
		b.seg.PutHeader(header)
		_, err = blocks.WriteAt([][]byte{header}, 0)
	}
	if err == nil && l.opt.Sync != Never {
		err = disk.SyncData(f) // before what follows it
	}
	if err != nil {
		err = fmt.Errorf("begin %s: %w", f.Name(), err)
		if b.stage != nil {
			err = errors.Join(err, b.stage.Free())
		}
		_ = f.Truncate(0) // or the next try would take it for a file that is done
		return nil, errors.Join(err, blocks.Close())
	}
	return b, nil
}

func (b *batches) Size() int64       { return b.seg.Next }
func (b *batches) Padded() int64     { return b.filled }
func (b *batches) Mode() direct.Mode { return b.blocks.Mode() }
func (b *batches) Memory() int       { return b.stage.Footprint() }
func (b *batches) Free() error       { return errors.Join(b.blocks.Close(), b.stage.Free()) }

// Close says that the segment is complete, if that can be said.
func (b *batches) Close() error {
	return errors.Join(b.end(), b.Free())
}

// end writes the batch that says that none follows.
func (b *batches) end() error {
	if b.ended {
		return nil
	}
	number := framed.NewNumbers().Next()
	n, err := b.write([]Batch{{Buf: b.stage.Bytes()[:framed.BatchHeaderSize], Number: number}})
	b.ended = n == 1
	return err
}

// write seals batches and writes them in one call. It returns how many of them
// are there whole.
func (b *batches) write(list []Batch) (n int, err error) {
	from := b.seg
	b.bufs, b.after = b.bufs[:0], b.after[:0]
	for _, batch := range list {
		used := len(batch.Buf)
		b.bufs = append(b.bufs, b.seg.Seal(batch.Buf[:cap(batch.Buf)], used, batch.Records, batch.Number))
		b.after = append(b.after, b.seg)
	}
	wrote, err := b.blocks.WriteAt(b.bufs, from.Next)
	b.seg = from // a batch that is not whole is sealed again, for here or elsewhere
	for n < len(list) && b.after[n].Next-from.Next <= wrote {
		b.seg = b.after[n]
		n++
	}
	for i, batch := range list[:n] {
		start := from.Next
		if i > 0 {
			start = b.after[i-1].Next
		}
		b.filled += b.after[i].Next - start - int64(len(batch.Buf))
	}
	return n, err
}

// WriteBatches appends batches and returns how many of them are in the file: all
// of them, or less and an error. The caller gives the rest again. It changes
// their headers and what is behind their ends. With Each they are on the disk.
func (l *Log) WriteBatches(list []Batch) (n int, err error) {
	for n < len(list) && err == nil {
		if err = l.ready(int64(len(list[n].Buf))); err != nil {
			break
		}
		var m int
		m, err = l.appendBatches(list[n : n+l.batchesFitting(list[n:])])
		n += m
	}
	return n, err
}

// batchesFitting returns how many batches at the front of list go to the file in
// use: at least one.
func (l *Log) batchesFitting(list []Batch) int {
	if l.opt.MaxSize == 0 {
		return len(list)
	}
	size := l.cur.store.Size()
	for i, b := range list {
		if size += whole(len(b.Buf)); i > 0 && size > l.opt.MaxSize {
			return i
		}
	}
	return len(list)
}

func (l *Log) appendBatches(list []Batch) (n int, err error) {
	s := l.cur
	from := s.batches.seg
	n, err = s.batches.write(list)
	l.behind.dirty(s)
	if l.mode == direct.Uncached && s.store.Mode() != l.mode {
		l.fallBack(s.path, errors.ErrUnsupported)
	}
	if err != nil {
		l.judge(err)
	}
	if l.opt.Sync == Each && n > 0 {
		if syncErr := l.syncCurrent(); syncErr != nil {
			n, err = 0, errors.Join(err, syncErr)
			s.batches.seg = from // leave writes the end over them
		}
	}
	s.wrote = s.wrote || n > 0
	return n, err
}

// writeText appends the lines of p as the records of one batch.
func (l *Log) writeText(p []byte) (n int, err error) {
	if err := l.ready(stageSize); err != nil {
		return 0, err
	}
	buf := l.cur.batches.stage.Bytes()
	number := l.numbers.Next()
	seed := framed.SeedOf(number)
	used, records := framed.BatchHeaderSize, 0
	for line := range bytes.Lines(p) {
		record := bytes.TrimSuffix(line, []byte{'\n'})
		size := framed.RecordSize(len(record))
		if used+size > len(buf) {
			break
		}
		seed.PutRecord(buf[used:used+size], record)
		used, records, n = used+size, records+1, n+len(line)
	}
	if records == 0 {
		return 0, fmt.Errorf("an announcement of %d bytes: %w", len(p), io.ErrShortBuffer)
	}
	if m, err := l.appendBatches([]Batch{{Buf: buf[:used], Records: records, Number: number}}); m == 0 {
		return 0, err
	}
	return n, nil
}

// Numbers returns where the numbers of batches come from.
func (l *Log) Numbers() *framed.Numbers { return l.numbers }

// takeOver deals with a file that is there before anything is written: a
// framed one that holds something is given a name of its own. It returns false
// if path has to be opened again.
func (l *Log) takeOver(s *segment) (ok bool, err error) {
	head := make([]byte, framed.SegmentHeaderSize)
	n, err := s.f.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return false, err
	}
	switch is := framed.IsSegment(head[:n]); {
	case !l.opt.Framed && is:
		return false, fmt.Errorf("%s holds framed records: give the path of a text file, or set Framed", s.path)
	case !l.opt.Framed || n == 0 || s.recycled:
		return true, nil
	case !is && isBlank(head[:n]):
		l.notice("%s has lost its header, as in a power cut: it is renamed", s.path)
	case !is:
		return false, fmt.Errorf("%s is not empty and holds no framed records: move it away or give another path", s.path)
	}
	if _, err := l.moveAway(s, begun(head[:n])); err != nil {
		return false, err
	}
	l.behind.prune(s.path)
	return false, nil
}

// isBlank reports whether the beginning of a file is what a power cut may leave
// of a header: the size has reached the disk, and the block with it has not.
func isBlank(head []byte) bool {
	for _, b := range head {
		if b != 0 {
			return false
		}
	}
	return true
}

// begun is the moment for the name of a file that another process left: when it
// was begun. Its process may have been killed when it was about to write over an
// old file; that one is still the oldest.
func begun(head []byte) time.Time {
	now := time.Now()
	if h, err := framed.ParseHeader(head); err == nil && h.Created.Before(now) {
		return h.Created
	}
	return now
}

// recycle gives the name path to the oldest file that Keep does not cover, so
// that it is written over. It reports whether there was one.
func (l *Log) recycle(path string) bool {
	if !l.opt.Framed || l.opt.Keep == 0 {
		return false
	}
	names, err := rotated(path)
	if err != nil || len(names) <= l.opt.Keep {
		return false
	}
	f, err := disk.OpenFile(names[0], os.O_RDWR, 0)
	if err != nil {
		return false
	}
	defer f.Close()
	if errors.Is(disk.LockFile(f), disk.ErrLocked) {
		return false // it is being closed in the background still
	}
	if err := logfile.RenameNew(names[0], path); err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			l.notice("use %s again: %w", names[0], err)
		}
		return false
	}
	l.count(func(st *Stats) { st.Recycled++ })
	return true
}

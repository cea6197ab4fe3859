package deadletter

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rollway/rollway/collector/normalize"
	"github.com/rollway/rollway/collector/ulid"
	"github.com/rollway/rollway/internal/disk"
)

const (
	ext       = ".ndjson"
	maxMerged = 8192 // dead letters of all groups to which events can still be added
	minMerged = 16   // the same for each group
	maxWrite  = 256 << 10
)

// A group is the dead letters of one principal and reason.
type group struct {
	name      string // PRINCIPAL.REASON, with which the names of its files begin
	principal string
	size      int64      // bytes of segs, each at least floor
	segs      []*segment // oldest first

	// owned by run
	index map[key]*kept
	order []*kept // those of index, oldest first
	fresh []fresh // to be written
	dirty []*kept // whose count is to be written
}

// segment is a file.
type segment struct {
	name   string
	size   int64  // run changes it, with mu held
	events uint64 // owned by run, as what follows
	full   bool   // takes no more dead letters
	gone   bool
}

// kept is a dead letter to which events can be added.
type kept struct {
	key     key
	id      string
	count   uint64
	last    time.Time
	unsaved uint64 // of count, not on disk
	seg     *segment
	pos     int64 // in seg, where its line begins
}

// fresh is a dead letter that is not written.
type fresh struct {
	*kept
	letter *normalize.DeadLetter
	item   *item
}

// key tells dead letters of a group apart.
type key [16]byte

func keyOf(o *Origin, l *normalize.DeadLetter, batch *normalize.Batch) key {
	b := make([]byte, 0, 128)
	for _, is := range [...]bool{l.Cut, l.Withheld, l.Whole, l.HasContext, l.ContextCut} {
		b = strconv.AppendBool(b, is)
	}
	b = binary.AppendUvarint(b, uint64(len(o.Receiver)))
	b = binary.AppendUvarint(append(b, o.Receiver...), uint64(len(batch.Context(l))))
	h := sha256.New()
	h.Write(b)
	h.Write(batch.Context(l))
	h.Write(batch.Text(l))
	return key(h.Sum(b[:0])[:len(key{})])
}

// nameOf returns the part of a file's name that tells the principal: its readable
// characters and a hash.
func nameOf(principal string) string {
	text := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, strings.ToLower(strings.TrimLeft(principal, "\x00.")))
	sum := sha256.Sum256([]byte(principal))
	return text[:min(len(text), 40)] + "-" + hex.EncodeToString(sum[:6])
}

// parseName splits the name of a file into that of its group and the id of its first line.
func parseName(name string) (group, id string, ok bool) {
	parts := strings.Split(name, ".")
	if len(parts) != 4 || len(parts[2]) != ulid.Len || "."+parts[3] != ext {
		return "", "", false
	}
	return parts[0] + "." + parts[1], parts[2], true
}

// idOf returns the id in the name of a file: they sort by the time of their first lines.
func idOf(name string) string {
	_, id, _ := parseName(filepath.Base(name))
	return id
}

// tell tells onError what is wrong with a file, at most once a minute: metrics have the
// rest.
func (s *Store) tell(err error) {
	if now := time.Now(); now.Sub(s.told) >= time.Minute {
		s.told = now
		s.onError(err)
	}
}

func (s *Store) path(seg *segment) string { return filepath.Join(s.dir, seg.name) }

// segmentBytes is the size at which a new file begins.
func (s *Store) segmentBytes() int64 { return min(s.max/64, 1<<20) }

func (s *Store) cost(size int64) int64 { return max(size, s.floor) }

// take adds the dead letters of an item to their groups.
func (s *Store) take(it *item) {
	rest, letters := uint64(it.batch.RejectedTotal), it.batch.DeadLetters()
	principal := nameOf(it.principal())
	for i := range letters {
		l := &letters[i]
		n := uint64(l.Count)
		rest -= n
		g := s.group(principal, l.Reason)
		if len(g.fresh)+len(g.dirty) == 0 {
			s.touched = append(s.touched, g)
		}
		key := keyOf(&it.Origin, l, it.batch)
		k := g.index[key]
		switch {
		case k == nil || k.count+n > maxCount:
			k = &kept{key: key, id: string(s.ids.Append(nil, it.Time)), last: it.Time}
			g.remember(k, max(minMerged, maxMerged/len(s.groups)))
			g.fresh = append(g.fresh, fresh{k, l, it})
		case k.unsaved == 0:
			g.dirty = append(g.dirty, k)
		}
		k.count += n
		k.unsaved += n
		if it.Time.After(k.last) {
			k.last = it.Time
		}
	}
	s.settle(rest, DroppedLimit)
}

// group returns the group of a principal, as it is in names, and a reason.
func (s *Store) group(principal, reason string) *group {
	name := principal + "." + reason
	g := s.groups[name]
	if g == nil {
		g = &group{name: name, principal: principal, index: map[key]*kept{}}
		s.mu.Lock()
		s.groups[name] = g
		s.mu.Unlock()
	}
	return g
}

// remember has the events that are like k added to it, until most others have come.
func (g *group) remember(k *kept, most int) {
	for len(g.order) >= most {
		if old := g.order[0]; g.index[old.key] == old {
			delete(g.index, old.key)
		}
		g.order = g.order[1:]
	}
	g.order = append(g.order, k)
	g.index[k.key] = k
}

// forgetIf has no more events added to the dead letters that which names.
func (g *group) forgetIf(which func(k *kept) bool) {
	g.order = slices.DeleteFunc(g.order, func(k *kept) bool {
		if !which(k) {
			return false
		}
		if g.index[k.key] == k {
			delete(g.index, k.key)
		}
		return true
	})
}

// drop does so for those with these ids.
func (s *Store) drop(ids []string) {
	if len(ids) == 0 {
		return
	}
	for _, g := range s.groups {
		g.forgetIf(func(k *kept) bool { return slices.Contains(ids, k.id) })
	}
}

// flush writes what take has added.
func (s *Store) flush() {
	for _, g := range s.touched {
		s.writeFresh(g)
		s.writeCounts(g)
	}
	s.touched = s.touched[:0]
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, g := range s.groups {
		if len(g.segs) == 0 {
			delete(s.groups, name)
		}
	}
	if cap(s.buf) > 4*maxWrite {
		s.buf = nil
	}
}

// writeFresh writes new dead letters, as many at a time as a file should get.
func (s *Store) writeFresh(g *group) {
	for len(g.fresh) > 0 {
		n, room := 0, min(s.segmentBytes(), maxWrite)
		if seg := g.open(s.segmentBytes()); seg != nil {
			room = min(room, s.segmentBytes()-seg.size)
		}
		for s.buf = s.buf[:0]; n < len(g.fresh) && int64(len(s.buf)) < room; n++ {
			f := &g.fresh[n]
			f.pos = int64(len(s.buf))
			s.buf = appendLine(s.buf, f.kept, f.letter, f.item.batch, &f.item.Origin)
		}
		events, reason := uint64(0), s.append(g, g.fresh[:n])
		for _, f := range g.fresh[:n] {
			events += f.unsaved
			f.unsaved = 0
		}
		if reason != "" {
			g.forgetIf(func(k *kept) bool { return k.seg == nil })
		}
		s.settle(events, reason)
		clear(g.fresh[:n])
		g.fresh = g.fresh[n:]
	}
	g.fresh = nil
}

// open returns the file that takes more dead letters, or nil.
func (g *group) open(most int64) *segment {
	if n := len(g.segs); n > 0 && !g.segs[n-1].full && g.segs[n-1].size < most {
		return g.segs[n-1]
	}
	return nil
}

// append writes buf, the lines of list, to the end of a file of g. It returns why not.
func (s *Store) append(g *group, list []fresh) (reason string) {
	for {
		seg, grow := g.open(s.segmentBytes()), int64(0)
		isNew := seg == nil
		if isNew {
			seg, grow = &segment{name: g.name + "." + list[0].id + ext}, s.floor
		}
		size := seg.size + int64(len(s.buf))
		if grow += s.cost(size) - s.cost(seg.size); s.total+grow > s.max {
			if !s.evict(g.principal, grow) {
				return DroppedQuota
			}
			continue
		}
		err := s.write(seg, isNew)
		switch {
		case errors.Is(err, errChanged):
			s.tell(err)
			s.lose(g, seg, DroppedDisk)
			continue
		case err != nil:
			seg.full = true
			s.tell(fmt.Errorf("%d dead letters are not kept: %w", len(list), err))
			return DroppedDisk
		}
		s.mu.Lock()
		if isNew {
			g.segs = append(g.segs, seg)
		}
		seg.size = size
		s.growLocked(g, grow)
		for _, f := range list {
			f.seg = seg
			f.pos += size - int64(len(s.buf))
			seg.events += f.unsaved
		}
		s.mu.Unlock()
		return ""
	}
}

// growLocked adds to the bytes that g takes up.
func (s *Store) growLocked(g *group, n int64) {
	g.size += n
	s.total += n
	if s.sizes[g.principal] += n; s.sizes[g.principal] == 0 {
		delete(s.sizes, g.principal)
	}
}

var errChanged = errors.New("it was removed or changed by another program; its dead letters are given up")

// file opens the file of seg. The error wraps errChanged if it is not as it was written.
func (s *Store) file(seg *segment, flags int) (disk.File, error) {
	f, err := s.fs.OpenFile(s.path(seg), os.O_RDWR|flags, 0o640)
	if flags == 0 && (errors.Is(err, fs.ErrNotExist) || errors.Is(err, disk.ErrNotFile) || errors.Is(err, disk.ErrOwner)) {
		return nil, fmt.Errorf("%s: %w", s.path(seg), errChanged)
	}
	if err != nil {
		return nil, err
	}
	if size, err := f.Size(); err == nil && size != seg.size {
		return nil, errors.Join(fmt.Errorf("%s: %w", s.path(seg), errChanged), f.Close())
	}
	return f, nil
}

// write appends buf to the file of seg.
func (s *Store) write(seg *segment, isNew bool) error {
	flags := 0
	if isNew {
		flags = os.O_CREATE | os.O_EXCL
	}
	f, err := s.file(seg, flags)
	if err != nil {
		return err
	}
	if _, err = f.WriteAt(s.buf, seg.size); err != nil {
		err = errors.Join(err, f.Truncate(seg.size))
	}
	if err = errors.Join(err, f.Close()); err != nil && isNew {
		err = errors.Join(err, s.fs.Remove(s.path(seg)))
	}
	return err
}

// writeCounts writes the counts that have changed.
func (s *Store) writeCounts(g *group) {
	slices.SortFunc(g.dirty, func(a, b *kept) int { return cmp.Compare(a.seg.name, b.seg.name) })
	for list := g.dirty; len(list) > 0; {
		seg, n := list[0].seg, 1
		for n < len(list) && list[n].seg == seg {
			n++
		}
		reason := DroppedQuota // evicted meanwhile
		if !seg.gone {
			reason = s.writeCountsOf(g, seg, list[:n])
		}
		events := uint64(0)
		for _, k := range list[:n] {
			events += k.unsaved
			if reason != "" {
				k.count -= k.unsaved
			}
			k.unsaved = 0
		}
		if reason == "" {
			seg.events += events
		}
		s.settle(events, reason)
		list = list[n:]
	}
	g.dirty = nil
}

func (s *Store) writeCountsOf(g *group, seg *segment, list []*kept) (reason string) {
	f, err := s.file(seg, 0)
	if err == nil {
		for _, k := range list {
			s.buf = appendCount(s.buf[:0], k)
			if _, err = f.WriteAt(s.buf, k.pos+countAt); err != nil {
				break
			}
		}
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		s.tell(fmt.Errorf("the counts of %d dead letters are not kept: %w", len(list), err))
		if errors.Is(err, errChanged) {
			s.lose(g, seg, DroppedDisk)
		}
		return DroppedDisk
	}
	return ""
}

// evict removes the oldest file of the largest reason of the largest principal, the one
// that wants grow more bytes included; of equals it removes the oldest. It reports false
// if that one has no file.
func (s *Store) evict(principal string, grow int64) bool {
	var g *group
	most := int64(0)
	for _, of := range s.groups {
		n := s.sizes[of.principal]
		if of.principal == principal {
			n += grow
		}
		if len(of.segs) > 0 && (g == nil || cmp.Or(cmp.Compare(n, most), cmp.Compare(of.size, g.size), cmp.Compare(idOf(g.segs[0].name), idOf(of.segs[0].name))) > 0) {
			g, most = of, n
		}
	}
	if g == nil || grow > s.max || s.sizes[principal] == 0 && grow > most {
		return false
	}
	seg := g.segs[0]
	if err := s.fs.Remove(s.path(seg)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.tell(fmt.Errorf("remove old dead letters: %w", err))
		return false
	}
	s.lose(g, seg, DroppedQuota)
	return true
}

// lose counts the events of a file that is gone.
func (s *Store) lose(g *group, seg *segment, reason string) {
	seg.gone = true
	g.forgetIf(func(k *kept) bool { return k.seg == seg })
	s.mu.Lock()
	defer s.mu.Unlock()
	g.segs = slices.DeleteFunc(slices.Clone(g.segs), func(of *segment) bool { return of == seg })
	s.growLocked(g, -s.cost(seg.size))
	s.stats.Kept -= seg.events
	s.stats.Dropped[reason] += seg.events
}

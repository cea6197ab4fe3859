package file

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// kept is one rotated file with all that exists of it.
type kept struct {
	member          // time and inode
	plain    string // paths, "" if there is none
	packed   string
	ext      string // of packed
	partials []string
	size     int64 // bytes of plain and packed
	empty    bool  // plain has no bytes
}

// list returns the series from old to new. What is of a time to come is from before
// the clock was set back: older than all that was made since.
func (s series) list() ([]kept, error) {
	entries, err := os.ReadDir(s.folder)
	if err != nil {
		return nil, err
	}
	type key struct {
		at    int64
		inode uint64
	}
	all := map[key]*kept{}
	for _, e := range entries {
		m, ok := s.parse(e.Name())
		if !ok || !e.Type().IsRegular() {
			continue
		}
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		id := key{m.time.UnixNano(), m.inode}
		x := all[id]
		if x == nil {
			x = &kept{member: member{time: m.time, inode: m.inode}}
			all[id] = x
		}
		path := filepath.Join(s.folder, e.Name())
		switch {
		case m.partial:
			x.partials = append(x.partials, path)
			continue
		case m.packed != "":
			x.packed, x.ext = path, m.packed
		default:
			x.plain, x.empty = path, info.Size() == 0
		}
		x.size += info.Size()
	}
	list := make([]kept, 0, len(all))
	for _, x := range all {
		list = append(list, *x)
	}
	now := time.Now()
	early := func(x kept) bool { return x.time.Sub(now) > clockBack }
	slices.SortFunc(list, func(a, b kept) int {
		if e := early(a); e != early(b) {
			if e {
				return -1
			}
			return 1
		}
		if c := a.time.Compare(b.time); c != 0 {
			return c
		}
		return strings.Compare(a.plain+a.packed, b.plain+b.packed)
	})
	return list, nil
}

// never is when the next pass is due if nothing is.
const never = 24 * time.Hour

// pass brings the series to the state that Options ask for. It returns when to
// look again at the latest, and false if something is to be tried again soon.
func (k *keeper) pass() (again time.Duration, ok bool) {
	k.syncBehind(false)
	k.tidying.Lock()
	defer k.tidying.Unlock()
	s, _ := k.f.where()
	list, err := s.list()
	if err != nil {
		k.f.tell(k.f.fail("list rotated files of", err))
		return never, false
	}
	ok = true
	changed := false
	try := func(did bool, err error) {
		changed = changed || did
		ok = ok && err == nil
		if err != nil && !errors.Is(err, errBusy) && k.ctx.Err() == nil {
			k.f.tell(k.f.fail("tidy", err))
		}
	}
	for i := range list {
		if k.ctx.Err() != nil {
			return never, false
		}
		x := &list[i]
		try(k.mend(x))
		if k.looked {
			continue
		}
		if try(k.cutTorn(x)); x.empty {
			try(k.mend(x))
		}
	}
	k.looked = true
	list = slices.DeleteFunc(list, func(x kept) bool { return x.plain == "" && x.packed == "" })
	left := list
	prune := func() {
		did := false
		left, did, err = k.prune(left)
		try(did, err)
	}
	if k.f.opt.OnRotated == nil {
		prune() // what goes needs no packing
	}
	k.tellNews()
	if c := k.f.opt.Compress; c != nil {
		for i := range left[:max(0, len(left)-k.f.opt.KeepPlain)] {
			if k.ctx.Err() != nil {
				return never, false
			}
			x := &left[i]
			if x.plain == "" || x.packed != "" {
				continue
			}
			size, err := k.pack(x.plain, c)
			try(true, err)
			if err == nil {
				x.packed, x.plain, x.size = x.plain+c.Extension(), "", size
				k.tellRotated(x.packed)
			}
		}
	}
	if k.f.opt.OnRotated != nil {
		prune()
	}
	if changed {
		if err := syncFolder(s.folder); err != nil {
			try(false, fmt.Errorf("fsync folder %s: %w", s.folder, err))
		}
	}
	again = never
	if age := k.f.opt.KeepAge; age > 0 && len(left) > 0 {
		again = max(age-time.Since(left[0].time), time.Second)
	}
	return min(again, never), ok
}

// cutTorn cuts off the part of a line that a power cut has left at the end of a
// rotated file, where what comes next would be glued to it.
func (k *keeper) cutTorn(x *kept) (did bool, err error) {
	if x.plain == "" || x.packed != "" || x.empty {
		return false, nil
	}
	f, err := openFile(x.plain, os.O_RDWR, 0)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission):
		return false, nil
	case err != nil:
		return false, err
	}
	defer f.Close()
	if !lockAlone(f) {
		return false, nil
	}
	cut, head, err := target{f: f, real: x.plain, regular: true}.cutTail()
	if cut == 0 || err != nil {
		return false, err
	}
	x.size -= cut
	x.empty = x.size == 0
	k.f.count(func(s *Stats) { s.CutBytes += uint64(cut) })
	k.f.notice("%s ended within a line, as after a power cut: %d bytes cut, beginning with %q", x.plain, cut, head)
	return true, nil
}

// tellNews tells OnRotated of files that are not packed.
func (k *keeper) tellNews() {
	k.mu.Lock()
	news := k.news
	k.news = nil
	k.mu.Unlock()
	for _, path := range news {
		k.tellRotated(path)
	}
}

func (k *keeper) tellRotated(path string) {
	if k.f.opt.OnRotated != nil {
		k.f.guard("OnRotated", func() { k.f.opt.OnRotated(path) })
	}
}

// prune removes the oldest files beyond what Options keep. It returns the rest
// of list.
func (k *keeper) prune(list []kept) (left []kept, did bool, err error) {
	o := k.f.opt
	var total int64
	for _, x := range list {
		total += x.size
	}
	if o.KeepSize > 0 {
		_, real := k.f.where()
		current := o.MaxSize
		if info, err := os.Stat(real); err == nil {
			current = max(current, info.Size())
		}
		total += current
	}
	n := len(list)
	var errs []error
	for _, x := range list {
		if !(o.KeepCount > 0 && n > o.KeepCount || o.KeepSize > 0 && total > o.KeepSize || o.KeepAge > 0 && time.Since(x.time) >= o.KeepAge) {
			left = append(left, x)
			continue
		}
		n-- // also of one that stays, or newer ones would go in its place
		total -= x.size
		if err := x.remove(); err != nil {
			errs = append(errs, err)
			left = append(left, x)
			continue
		}
		did = true
		k.f.count(func(s *Stats) { s.Pruned++; s.PrunedBytes += uint64(x.size) })
	}
	return left, did, errors.Join(errs...)
}

// remove removes all that is of x, unless someone writes to it.
func (x kept) remove() error {
	for _, path := range append([]string{x.plain, x.packed}, x.partials...) {
		if path == "" {
			continue
		}
		if err := removeAlone(path, false); err != nil {
			return err
		}
	}
	return nil
}

// errBusy is about a file that someone still writes to.
var errBusy = errors.New("another process has it open")

// removeAlone removes a file that nobody writes to, or only an empty one. One
// that is gone is no error.
func removeAlone(path string, empty bool) error {
	f, err := openFile(path, os.O_RDONLY, 0)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case errors.Is(err, fs.ErrPermission) && !empty:
		return os.Remove(path) // not ours to read, perhaps ours to remove
	case err != nil:
		return err
	}
	defer f.Close()
	if !lockAlone(f) {
		return fmt.Errorf("remove %s: %w", path, errBusy)
	}
	if info, err := f.Stat(); err != nil || empty && info.Size() > 0 {
		return errors.Join(err, errBusy) // what is in it now came after the look
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// pruneNow makes room for a Write that found the disk full, and reports whether
// it did. It does not wait long for a pass that is under way.
func (k *keeper) pruneNow() bool {
	for end := time.Now().Add(patience); !k.tidying.TryLock(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			return false
		}
	}
	defer k.tidying.Unlock()
	s, _ := k.f.where()
	list, err := s.list()
	if err != nil {
		return false
	}
	_, did, _ := k.prune(list)
	return did
}

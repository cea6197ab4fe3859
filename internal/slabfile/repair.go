package slabfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/bits"
	"os"
	"path/filepath"
)

// SetAside keeps a damaged file, one for which Open returns ErrDamaged, under
// the name that it returns: path.bad, or path.bad-2 and so on. At path then is
// a new file with every slab that could be found in the damaged one, or nothing
// if none could. likely is the geometry that is tried besides what is left of
// the header's. The process that calls it owns the file from Open on; another
// one that has it open makes it fail with ErrLocked.
//
// The old file keeps its name until the new one takes it, in one step, so that
// a crash in between loses nothing.
func SetAside(path string, likely Geometry) (kept string, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("slab file %s: set aside: %w", path, err)
		}
	}()
	f, err := openNoFollow(path, os.O_RDWR, 0)
	if err != nil {
		return "", err
	}
	defer f.Close()
	if err := flock(f); err != nil {
		return "", err
	}
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	if named, err := os.Stat(path); err != nil || !os.SameFile(info, named) {
		return "", errors.Join(ErrLocked, err) // another process has just done this
	}
	if err := checkAccess(info); err != nil {
		return "", err
	}
	content, err := io.ReadAll(f)
	if err != nil {
		return "", err
	}
	if kept, err = linkAside(path); err != nil {
		return "", err
	}
	if content = mended(content, likely); content == nil {
		return kept, os.Remove(path)
	}
	return kept, replace(path, content)
}

// linkAside gives the file at path a second name.
func linkAside(path string) (name string, err error) {
	for i := 1; i <= 1000; i++ {
		name = path + ".bad"
		if i > 1 {
			name = fmt.Sprintf("%s.bad-%d", path, i)
		}
		if err = os.Link(path, name); !errors.Is(err, fs.ErrExist) {
			break
		}
	}
	return name, err
}

// replace puts a file with content at path.
func replace(path string, content []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".new-*") // mode 0600
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// mended is a sound file with the slabs of content, or nil if there are none.
func mended(content []byte, likely Geometry) []byte {
	g, found := guess(content, likely)
	if !found {
		return nil
	}
	size := int64(len(content))
	for int64(len(content)) < g.mapped() {
		content = append(content, 0)
	}
	head := appendHeader(nil, g, newID())
	last := native.Uint64(content[offDelivered:])
	copy(content, head)
	clear(content[len(head):offOwner])
	native.PutUint64(content[offState:], stateReady)
	if last < maxSeq {
		native.PutUint64(content[offDelivered:], last)
	}
	for i := range g.SlabCount { // what was cut off is not zeros
		d := content[headerSize+descriptorSize*i:]
		if native.Uint64(d[dSeq:]) != 0 && native.Uint64(d[dFlags:])&flagLine == 0 {
			there := uint64(max(size-g.slabAt(i), 0))
			if native.Uint64(d[dCommitted:]) > there {
				native.PutUint64(d[dCommitted:], there)
			}
		}
	}
	return content
}

// guess finds the geometry under which content has the most slabs with lines.
func guess(content []byte, likely Geometry) (best Geometry, found bool) {
	if len(content) < headerSize {
		return best, false
	}
	most := 0
	for _, g := range append(headerGeometries(content), likely.normal()) {
		if n := pendingUnder(content, g); n > most {
			best, most = g, n
		}
	}
	return best, most > 0
}

// headerGeometries are those that the header has, as it is and, if its checksum
// does not fit, with each one of its bits turned that makes it fit.
func headerGeometries(content []byte) (all []Geometry) {
	head := bytes.Clone(content[:constantSize])
	add := func() {
		var n [3]int
		for i := range n {
			v := native.Uint64(head[16+8*i:])
			if bits.Len64(v) > 31 {
				return
			}
			n[i] = int(v)
		}
		all = append(all, Geometry{SlabSize: n[0], SlabCount: n[1], LineLimit: n[2]})
	}
	copy(head, magic)
	add()
	for bit := range 8 * constantSize {
		head[bit/8] ^= 1 << (bit % 8)
		if native.Uint32(head[60:]) == sum(head[:60]) {
			add()
		}
		head[bit/8] ^= 1 << (bit % 8)
	}
	return all
}

// pendingUnder counts the slabs of content that hold whole lines if its
// geometry is g; 0 if that cannot be.
func pendingUnder(content []byte, g Geometry) (n int) {
	if g.check() != nil || int64(len(content)) < g.slabsAt() {
		return 0
	}
	for i := range g.SlabCount {
		d := content[headerSize+descriptorSize*i:]
		seq, committed, flags := native.Uint64(d[dSeq:]), native.Uint64(d[dCommitted:]), native.Uint64(d[dFlags:])
		at, room := g.slabAt(i), uint64(g.SlabSize)
		if flags&flagLine != 0 {
			at, room = g.lineAt(i), uint64(g.LineLimit)
		}
		if seq == 0 || seq >= maxSeq || committed == 0 || committed > room || at >= int64(len(content)) {
			continue
		}
		lines := content[at:min(at+int64(committed), int64(len(content)))]
		if bytes.IndexByte(lines, '\n') >= 0 {
			n++
		}
	}
	return n
}

// Copy keeps a copy of the file, which has damaged slabs, under the name that it
// returns; see SetAside.
func (f *File) Copy() (kept string, err error) {
	var dst *os.File
	for i := 1; i <= 1000; i++ {
		kept = f.path + ".bad"
		if i > 1 {
			kept = fmt.Sprintf("%s.bad-%d", f.path, i)
		}
		if dst, err = os.OpenFile(kept, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600); !errors.Is(err, fs.ErrExist) {
			break
		}
	}
	if err != nil {
		return "", fmt.Errorf("slab file %s: copy: %w", f.path, err)
	}
	_, err = io.Copy(dst, io.NewSectionReader(f.file, 0, 1<<62))
	if err = errors.Join(err, dst.Close()); err != nil {
		return "", fmt.Errorf("slab file %s: copy: %w", f.path, errors.Join(err, os.Remove(kept)))
	}
	return kept, nil
}

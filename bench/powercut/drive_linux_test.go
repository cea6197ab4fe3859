package powercut

import (
	"bytes"
	"math/rand/v2"
)

// A drive is what an order of ops may have left when the power fails. What was
// fsynced is there; of the rest each block of 512 bytes of each write has come or
// has not, in any order, as has each change of a size. Names change in their
// order, and as far as the folder was fsynced for certain. Files and names do not
// wait for each other.
type drive struct {
	files map[*inode]*content
	names []map[string]*inode // since the last fsync of the folder, which was names[0]
	safe  map[int]int
}

// content is a file: what is certain, and what has come since.
type content struct {
	synced []byte
	now    []byte
	later  []op
}

func newDrive() *drive {
	return &drive{files: map[*inode]*content{}, names: []map[string]*inode{{}}}
}

func (d *drive) of(f *inode) *content {
	c := d.files[f]
	if c == nil {
		c = &content{}
		d.files[f] = c
	}
	return c
}

func (d *drive) apply(o op) {
	switch o.kind {
	case opWrite, opCut:
		c := d.of(o.file)
		c.later = append(c.later, o)
		c.now = perform(c.now, o)
	case opSync:
		c := d.of(o.file)
		c.synced, c.later = bytes.Clone(c.now), nil
	case opNames:
		d.names = append(d.names, o.names)
	case opSyncFolder:
		d.names = d.names[len(d.names)-1:]
	case opTell:
		d.safe = o.tell
	}
}

func perform(b []byte, o op) []byte {
	if o.kind == opCut {
		return resize(b, o.at)
	}
	return overwrite(b, o.data, o.at)
}

// dirty reports whether something may be lost.
func (d *drive) dirty() bool {
	for _, c := range d.files {
		if len(c.later) > 0 {
			return true
		}
	}
	return len(d.names) > 1
}

// least is only what is certain, most is all.
func (d *drive) least() map[string][]byte {
	return d.state(d.names[0], func(c *content) []byte { return c.synced })
}

func (d *drive) most() map[string][]byte {
	return d.state(d.names[len(d.names)-1], func(c *content) []byte { return c.now })
}

// some is one of what may be.
func (d *drive) some(rnd *rand.Rand) map[string][]byte {
	keep := []float64{0.1, 0.5, 0.9, 1}[rnd.IntN(4)]
	inOrder := rnd.IntN(2) == 0
	return d.state(d.names[rnd.IntN(len(d.names))], func(c *content) []byte {
		b := bytes.Clone(c.synced)
		order := rnd.Perm(len(c.later))
		for i := range order {
			if inOrder {
				order[i] = i
			}
			o := c.later[order[i]]
			if o.kind == opCut {
				if rnd.Float64() < keep {
					b = perform(b, o)
				}
				continue
			}
			b = partOf(rnd, b, o, keep)
		}
		return b
	})
}

// partOf writes some of the blocks of o.
func partOf(rnd *rand.Rand, b []byte, o op, keep float64) []byte {
	const sector = 512
	for from := int64(0); from < int64(len(o.data)); {
		end := min((o.at+from)/sector*sector+sector-o.at, int64(len(o.data)))
		if rnd.Float64() < keep {
			b = overwrite(b, o.data[from:end], o.at+from)
		}
		from = end
	}
	return b
}

func (d *drive) state(names map[string]*inode, pick func(*content) []byte) map[string][]byte {
	s := map[string][]byte{}
	for name, f := range names {
		s[name] = pick(d.of(f))
	}
	return s
}

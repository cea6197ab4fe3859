package journal

import (
	"os"
	"time"

	"github.com/rollway/rollway/internal/recordlog"
)

// dropRetry is when a rewrite is tried again that has failed, as on a full disk.
const dropRetry = 10 * time.Second

// takeTenantsLocked takes from the footer of a packed segment whose records it has.
func (s *segment) takeTenantsLocked(foot *recordlog.Footer) {
	s.listed, s.tenants = true, foot.Tenants
	if len(s.tenants) == 0 && foot.Records > 0 {
		s.tenants = []recordlog.Tenant{{Records: foot.Records, Bytes: foot.FramesEnd() - segmentHeaderSize}}
	}
	listed := uint64(0)
	for _, t := range s.tenants {
		listed += t.Records
	}
	s.others = listed < foot.Records
}

// hasLocked reports whether s may have records of a tenant.
func (s *segment) hasLocked(tenant string) bool {
	if !s.listed || s.others {
		return true
	}
	for _, t := range s.tenants {
		if t.Name == tenant {
			return true
		}
	}
	return false
}

// leastAge returns the least age at which retention deletes something, or 0.
func (j *Journal) leastAge() time.Duration {
	age := j.o.RetainAge
	for _, r := range j.o.Tenants {
		if r.Age > 0 && (age == 0 || r.Age < age) {
			age = r.Age
		}
	}
	return age
}

// retention returns the limits of a tenant.
func (j *Journal) retention(tenant string) Retention {
	r := j.o.Tenants[tenant]
	if r.Age == 0 {
		r.Age = j.o.RetainAge
	}
	return r
}

// ageLocked returns the age at which s is deleted: the greatest of the tenants that it may
// have; 0: never.
func (j *Journal) ageLocked(s *segment) time.Duration {
	age := time.Duration(0)
	if !s.listed || s.others || len(j.o.Tenants) == 0 {
		if age = j.o.RetainAge; age == 0 {
			return 0
		}
		for _, r := range j.o.Tenants {
			age = max(age, r.Age)
		}
		return age
	}
	for _, t := range s.tenants {
		r := j.retention(t.Name)
		if r.Age == 0 && t.Records > 0 {
			return 0
		}
		age = max(age, r.Age)
	}
	return age
}

// nextDue returns the oldest segment that has blocks to delete by the retention of their
// tenants, and whose they are.
func (j *Journal) nextDue(now time.Time) (found *segment, due map[string]bool) {
	if len(j.o.Tenants) == 0 {
		return nil, nil
	}
	j.listTenants()
	j.mu.Lock()
	defer j.mu.Unlock()
	used := make(map[string]int64)
	for i := len(j.segs) - 1; i >= 0; i-- {
		s := j.segs[i]
		if !s.listed {
			continue
		}
		of, empty := make(map[string]bool), !s.others && i == 0 && len(j.segs) > 1
		for _, t := range s.tenants {
			r := j.retention(t.Name)
			if used[t.Name] += t.Bytes; t.Records == 0 {
				continue
			}
			empty = false
			if r.Age > 0 && now.Sub(s.written) > r.Age || r.Bytes > 0 && used[t.Name] > r.Bytes {
				of[t.Name] = true
			}
		}
		if (len(of) > 0 || empty) && !now.Before(s.droppable) && j.holderLocked(s) == nil {
			found, due = s, of
		}
	}
	return found, due
}

// listTenants reads the footers of packed segments that were not read yet.
func (j *Journal) listTenants() {
	for s := j.nextUnlisted(); s != nil; s = j.nextUnlisted() {
		j.list(s)
	}
}

func (j *Journal) nextUnlisted() *segment {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, s := range j.segs {
		if s.packed && !s.listed {
			return s
		}
	}
	return nil
}

// list takes the tenants of the packed segment s from its footer.
func (j *Journal) list(s *segment) {
	foot, err := j.footer(s)
	j.mu.Lock()
	defer j.mu.Unlock()
	switch {
	case s.listed:
	case err == nil && foot.ID == s.id:
		s.takeTenantsLocked(foot)
	default:
		s.listed, s.others = true, true
	}
}

func (j *Journal) footer(s *segment) (*recordlog.Footer, error) {
	path := j.path(s.first, extSealed)
	f, err := j.fs.OpenFile(path, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close() // only read from
	size, err := f.Size()
	if err != nil {
		return nil, err
	}
	return recordlog.ReadFooter(f, path, size)
}

// drop deletes the blocks of the tenants due from s: with s, if it is the oldest segment and
// has nothing else, or by a copy without them.
func (j *Journal) drop(s *segment, due map[string]bool) error {
	if j.dropSegment(s, due) {
		return nil
	}
	return j.replace(s, func(p *packer, h *recordlog.Frame, body []byte, plain *[]byte) error {
		return p.copy(h, body, due, plain)
	})
}

func (j *Journal) dropSegment(s *segment, due map[string]bool) bool {
	j.deleting.Lock()
	defer j.deleting.Unlock()
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.segs) < 2 || j.segs[0] != s || !s.listed || s.others {
		return false
	}
	for _, t := range s.tenants {
		if t.Records > 0 && !due[t.Name] {
			return false
		}
	}
	return j.removeOldestLocked(s)
}

// copy writes the packed frame h without the blocks of the tenants due.
func (p *packer) copy(h *recordlog.Frame, body []byte, due map[string]bool, plain *[]byte) error {
	blocks := []recordlog.Block{{Records: h.Records, Unpacked: h.Unpacked, Pos: h.KeysLen, Len: len(body) - h.KeysLen}}
	runs := recordlog.Runs(nil).Append(0, h.Records)
	if h.Flags == recordlog.FlagBlocks {
		var err error
		if blocks, runs, err = recordlog.ParseBlocks(h, body); err != nil {
			return err
		}
	}
	p.data = p.data[:0]
	kept := recordlog.Frame{ID: h.ID} // p.h while nothing is gathered
	for i := range blocks {
		b := &blocks[i]
		data := body[b.Pos:][:b.Len]
		switch {
		case b.Len == 0:
			continue
		case due[b.Tenant]:
			p.dropped += uint64(b.Records)
			b.Len, b.Sum = 0, 0
			continue
		case h.Flags == 0: // its only one
		case recordlog.Checksum(data) != b.Sum:
			p.damaged += uint64(b.Records)
		}
		p.data = append(p.data, data...)
	}
	p.h, p.out = *h, append(append(p.out[:0], make([]byte, frameHeaderSize)...), body[:h.KeysLen]...)
	if len(p.data) == 0 || h.Flags != 0 {
		p.h.Flags = recordlog.FlagBlocks
		p.out = recordlog.AppendBlocks(p.out, blocks, runs)
	}
	p.out = append(p.out, p.data...)
	p.h.Put(p.out)
	if err := p.write(); err != nil {
		return err
	}
	for i, at := 0, 0; i < len(blocks); i++ {
		b := &blocks[i]
		if b.Len == 0 {
			p.summary.tenant(b.Tenant, 0, 0)
			continue
		}
		lines, err := unpack((*plain)[:0], p.data[at:at+b.Len], b.Unpacked)
		if *plain = lines; err != nil {
			lines = nil // a damaged block
		}
		at += b.Len
		p.summary.lines(lines, b.Records, h.MinTime)
		p.summary.tenant(b.Tenant, b.Records, b.Len)
	}
	p.h = kept
	return nil
}

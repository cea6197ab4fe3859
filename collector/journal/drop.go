package journal

import (
	"os"
	"slices"
	"time"

	"github.com/rollway/rollway/internal/disk"
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
	return !s.listed || s.others || slices.ContainsFunc(s.tenants, func(t recordlog.Tenant) bool { return t.Name == tenant })
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
	unlisted := func(s *segment) bool { return s.packed && !s.listed }
	for s := j.oldest(unlisted); s != nil; s = j.oldest(unlisted) {
		j.list(s)
	}
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
	return footerOf(f, path)
}

func footerOf(f disk.File, path string) (*recordlog.Footer, error) {
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
	return j.replace(s, &packer{due: due})
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

// copy writes the packed frame h, which has the checked body, without the blocks of the
// tenants due; buf is memory for its lines.
func (p *packer) copy(h *recordlog.Frame, body []byte, buf *lineBuffer) error {
	blocks := []recordlog.Block{{Records: h.Records, Unpacked: h.Unpacked, Pos: h.KeysLen, Len: len(body) - h.KeysLen}}
	runs := recordlog.Runs(nil).Append(0, h.Records)
	if h.Flags == recordlog.FlagBlocks {
		var err error
		if blocks, runs, err = recordlog.ParseBlocks(h, body); err != nil {
			return err
		}
	}
	p.countSkipped(h.First)
	var damaged []Finding
	p.data = p.data[:0]
	kept := recordlog.Frame{ID: h.ID} // p.h while nothing is gathered
	for i := range blocks {
		b := &blocks[i]
		data := body[b.Pos:][:b.Len]
		switch {
		case b.Len == 0:
			continue
		case p.due[b.Tenant]:
			p.dropped += uint64(b.Records)
			b.Len, b.Sum = 0, 0
			continue
		case h.Flags == 0: // its only one
		case recordlog.Checksum(data) != b.Sum:
			p.damaged += uint64(b.Records)
			damaged = append(damaged, Finding{Kind: recordlog.Damaged, Pos: int64(len(p.data)), Bytes: int64(b.Len), Detail: b.String()})
		}
		p.data = append(p.data, data...)
	}
	p.h, p.out = *h, append(append(p.out[:0], make([]byte, frameHeaderSize)...), body[:h.KeysLen]...)
	if len(p.data) == 0 || h.Flags != 0 {
		p.h.Flags = recordlog.FlagBlocks
		p.out = recordlog.AppendBlocks(p.out, blocks, runs)
	}
	for _, f := range damaged {
		f.Pos += p.summary.pos + int64(len(p.out))
		p.find(f)
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
		lines, err := unpack(buf.lines[:0], p.data[at:at+b.Len], h.Codec, b.Unpacked, &buf.columns)
		if buf.lines = lines; err != nil {
			lines = nil // a damaged block
		}
		at += b.Len
		p.summary.lines(lines, b.Records, h.MinTime)
		p.summary.tenant(b.Tenant, b.Records, b.Len)
	}
	p.h = kept
	return nil
}

// copyDamaged copies bytes of s that are no sound frame, and may have records of anybody.
func (p *packer) copyDamaged(w *walker, from, to int64) error {
	again, at := p.skipped, p.summary.pos
	p.skipped = true
	for from < to {
		b, err := w.Bytes(from, int(min(to-from, 1<<20)))
		if recordlog.IsDamage(err) { // the file was cut here
			break
		}
		if err == nil {
			_, err = p.dst.WriteAt(b, p.summary.pos)
		}
		if err != nil {
			return err
		}
		p.summary.sum = recordlog.Extend(p.summary.sum, b)
		p.summary.pos += int64(len(b))
		from += int64(len(b))
	}
	if n := p.summary.pos - at; again {
		p.found[len(p.found)-1].Bytes += n
	} else {
		p.find(Finding{Kind: recordlog.Damaged, Pos: at, Bytes: n})
	}
	return nil
}

// countSkipped counts the records before next that damage has hidden.
func (p *packer) countSkipped(next uint64) {
	foot := &p.summary.foot
	if p.skipped && next > foot.End {
		p.find(Finding{Kind: recordlog.Missing, From: foot.End, To: next})
		n := next - foot.End
		p.damaged += n
		foot.Records += n
		foot.End = next
	}
	p.skipped = false
}

// find keeps f to be reported, once the copy is in its place.
func (p *packer) find(f Finding) {
	f.File = segmentName(p.summary.foot.First, extSealed)
	p.found = append(p.found, f)
}

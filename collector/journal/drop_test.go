package journal

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollway/rollway/internal/disktest"
	"github.com/rollway/rollway/internal/recordlog"
	"github.com/rollway/rollway/internal/testkit"
)

// waitDropped waits until nothing is left to pack and to drop.
func waitDropped(t testing.TB, j *Journal) {
	t.Helper()
	waitPacked(t, j)
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		if s, _ := j.nextDue(time.Now()); s == nil {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("blocks are not dropped within a minute: %+v", j.Stats())
		}
	}
}

// learn finds out what retention has deleted, and checks that it is the oldest blocks of the
// tenants that have a limit.
func (m *mixed) learn(j *Journal, limits map[string]Retention) {
	m.t.Helper()
	for o := range j.First() {
		m.gone[o] = true
	}
	r := j.NewReader(j.First())
	defer r.Close()
	for {
		_, ok, err := r.TryNext()
		var gap *Gap
		if errors.As(err, &gap) {
			if !gap.Retention {
				m.t.Fatalf("a gap that is not of retention: %v", gap)
			}
			for o := gap.From; o < gap.To; o++ {
				m.gone[o] = true
			}
			continue
		}
		testkit.OK(m.t, err)
		if !ok {
			break
		}
	}
	kept := make(map[string]bool)
	for o, tenant := range m.owner {
		_, limited := limits[tenant]
		switch gone := m.gone[uint64(o)]; {
		case gone && kept[tenant]:
			m.t.Fatalf("offset %d of %q is gone, and an older one is there", o, tenant)
		case gone && !limited:
			m.t.Fatalf("offset %d of %q is gone, which has no limit", o, tenant)
		case !gone:
			kept[tenant] = true
		}
	}
}

// used returns the bytes of a tenant's blocks.
func used(j *Journal) map[string]int64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	n := make(map[string]int64)
	for _, s := range j.segs {
		for _, t := range s.tenants {
			n[t.Name] += t.Bytes
		}
	}
	return n
}

// Tenants with limits of their own lose their oldest blocks and no others lose a byte, while
// the journal grows, is closed, killed and opened again.
func TestTenantRetention(t *testing.T) {
	for seed := range uint64(testkit.RaceRounds(t, 2, 6)) { // half of them limit the tenant without a name
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			m := newMixed(t, seed, "", "shop", "bank", "zoo")
			mem := disktest.NewMem()
			limits := map[string]Retention{"shop": {Bytes: 2000}, "zoo": {Bytes: 1}}
			if seed%2 == 0 {
				limits[""] = Retention{Bytes: 4000}
			}
			o := Options{Disk: mem, SegmentBytes: 20_000, MaxGroupBytes: 3000, Pack: true, Tenants: limits}
			dropped := uint64(0)
			for round := range 5 {
				j, err := Open("/j", o)
				testkit.OK(t, err)
				if len(j.Recovery().Findings) > 0 && round > 0 {
					t.Logf("round %d: %v", round, j.Recovery().Findings)
				}
				m.fill(j, len(m.model)+800)
				waitDropped(t, j)
				m.learn(j, limits)
				m.checkAll(j)
				for tenant, n := range used(j) {
					if r := limits[tenant]; r.Bytes > 0 && n > r.Bytes {
						t.Errorf("%q has %d bytes, of %d", tenant, n, r.Bytes)
					}
				}
				st := j.Stats()
				dropped += st.DroppedRecords
				if st.LastError != nil {
					t.Error(st.LastError)
				}
				size := int64(0)
				entries, err := mem.List("/j")
				testkit.OK(t, err)
				for _, e := range entries {
					if strings.HasSuffix(e.Name, extSealed) || strings.HasSuffix(e.Name, extOpen) {
						size += e.Size
					}
				}
				if size != st.Bytes {
					t.Errorf("%d bytes in the folder, Stats says %d", size, st.Bytes)
				}
				if m.rng.IntN(2) == 0 {
					o.Disk = mem.KillClone()
					mem = o.Disk.(*disktest.Mem)
				}
				testkit.OK(t, j.Close())
				m.checkFolder(mem)
				m.checkBlocks(mem)
			}
			if dropped < 500 {
				t.Errorf("%d records were dropped", dropped)
			}
		})
	}
}

// Whatever byte of a packed segment's frames is flipped, retention deletes the sound blocks of
// its tenant, keeps all that can be read of others, and reports what is damaged, once.
func TestDropDamaged(t *testing.T) {
	m := newMixed(t, 1, "", "shop", "bank")
	mem := disktest.NewMem()
	o := Options{Disk: mem, SegmentBytes: 20_000, MaxGroupBytes: 3000, Pack: true}
	j, err := Open("/j", o)
	testkit.OK(t, err)
	m.fill(j, 300)
	waitPacked(t, j)
	testkit.OK(t, j.Close())
	whole, err := mem.ReadFile(seg0)
	testkit.OK(t, err)
	foot, err := recordlog.ReadFooter(bytes.NewReader(whole), seg0, int64(len(whole)))
	testkit.OK(t, err)
	o.Tenants = map[string]Retention{"shop": {Bytes: 1}}
	for pos := segmentHeaderSize; pos < int(foot.FramesEnd()); pos += 29 {
		o.Disk = mem.KillClone()
		b := bytes.Clone(whole)
		b[pos] ^= 1 << (pos % 8)
		testkit.OK(t, o.Disk.(*disktest.Mem).WriteFile(seg0, b))
		j, err := Open("/j", o)
		testkit.OK(t, err)
		waitDropped(t, j)
		if err := j.Stats().LastError; err != nil {
			t.Fatalf("byte %d: %v", pos, err)
		}
		hidden := uint64(0)
		r := j.NewReader(0)
		for {
			f, ok, err := r.TryNext()
			var gap *Gap
			if errors.As(err, &gap) {
				for n := gap.From; n < gap.To && gap.Retention; n++ {
					if m.owner[n] != "shop" {
						t.Fatalf("byte %d: offset %d of %q is deleted", pos, n, m.owner[n])
					}
				}
				if !gap.Retention {
					hidden += gap.Missed()
				}
				continue
			}
			testkit.OK(t, err)
			if !ok {
				break
			}
			for line := range strings.Lines(string(f.Lines)) {
				if n := f.First; line != m.model[n] || m.owner[n] == "shop" && n < foot.End {
					t.Fatalf("byte %d: offset %d of %q is %q", pos, n, m.owner[n], line)
				}
				f.First++
			}
		}
		found := j.Findings()
		most := uint64(slices.MaxFunc(foot.Marks, func(a, b recordlog.Mark) int { return cmp.Compare(a.Records, b.Records) }).Records)
		if r.Offset() != uint64(len(m.model)) || hidden > most || hidden > 0 != (len(found) > 0) {
			t.Fatalf("byte %d: read to %d, %d records are hidden, a frame has %d; findings %v", pos, r.Offset(), hidden, most, found)
		}
		r.Close()
		testkit.OK(t, j.Close())
		a, err := audit(o.Disk, "/j", AuditOptions{})
		if err != nil || len(a.Damage(0)) != len(found) {
			t.Fatalf("byte %d: the audit finds %v, %v, the journal %v", pos, a.Damage(0), err, found)
		}
		j, err = Open("/j", o)
		testkit.OK(t, err)
		waitDropped(t, j)
		if again := j.Findings(); len(again) != len(found) {
			t.Fatalf("byte %d: after a restart %v, was %v", pos, again, found)
		}
		testkit.OK(t, j.Close())
	}
}

// At any operation of the disk in a rewrite the process may be killed, the power cut, or the
// disk fail: what is found then is the whole segment, or the one without the blocks.
func TestDropKilled(t *testing.T) {
	m := newMixed(t, 3, "", "shop", "bank")
	mem := disktest.NewMem()
	o := Options{Disk: mem, SegmentBytes: 20_000, MaxGroupBytes: 3000, Pack: true}
	j, err := Open("/j", o)
	testkit.OK(t, err)
	m.fill(j, 600)
	waitPacked(t, j)
	testkit.OK(t, j.Close())
	before, err := mem.ReadFile(seg0)
	testkit.OK(t, err)
	whole, without := 0, 0
	for step := 1; ; step++ {
		var left []*disktest.Mem
		disk := mem.KillClone()
		var mu sync.Mutex
		n, armed := 0, false
		arm := func(on bool) int {
			mu.Lock()
			defer mu.Unlock()
			armed = on
			return n
		}
		j, err := Open("/j", Options{Disk: &disktest.Faulty{FS: disk, Hook: func(op disktest.Op) disktest.Fault {
			mu.Lock()
			defer mu.Unlock()
			if !armed || op.Kind == disktest.Read || op.Kind != disktest.SyncDir && !strings.Contains(op.Name, "/"+segmentName(0, "")) {
				return disktest.Fault{} // the manifest may be written meanwhile
			}
			if n++; n == step {
				left = append(left, tear(disk.KillClone(), op, rand.New(rand.NewPCG(uint64(step), 1))), disk.PowerCutClone(nil), disk.PowerCutClone(rand.New(rand.NewPCG(uint64(step), 2))))
				return disktest.Fault{Err: syscall.EIO}
			}
			return disktest.Fault{}
		}}, SegmentBytes: 20_000})
		testkit.OK(t, err)
		arm(true)
		err = j.drop(j.segs[0], map[string]bool{"shop": true})
		over := arm(false) < step
		if over && err != nil {
			t.Fatalf("step %d: %v", step, err)
		}
		left = append(left, disk.KillClone())
		j.Close()
		for _, disk := range left {
			j, err := Open("/j", Options{Disk: disk, SegmentBytes: 20_000})
			testkit.OK(t, err)
			for _, f := range j.Recovery().Findings {
				t.Log(f)
			}
			clear(m.gone)
			m.learn(j, map[string]Retention{"shop": {}})
			m.check(j, 0, nil)
			got, err := disk.ReadFile(seg0)
			testkit.OK(t, err)
			if bytes.Equal(got, before) {
				whole++
				if len(m.gone) > 0 {
					t.Fatalf("step %d: %d records are gone", step, len(m.gone))
				}
			} else if without++; len(m.gone) == 0 {
				t.Fatalf("step %d: the segment has changed, and nothing is gone", step)
			}
			testkit.OK(t, j.Close())
			m.checkFolder(disk)
		}
		if over {
			break
		}
	}
	if whole < 10 || without == 0 {
		t.Errorf("%d times the whole segment was found, %d times the other", whole, without)
	}
}

// Age: a tenant may keep its blocks longer than the journal keeps segments, or not as long.
func TestTenantAge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMixed(t, 4, "short", "other", "long")
		o := Options{Disk: disktest.NewMem(), SegmentBytes: 20_000, MaxGroupBytes: 3000, Pack: true, RetainAge: 24 * time.Hour,
			Tenants: map[string]Retention{"short": {Age: time.Hour}, "long": {Age: 72 * time.Hour}}}
		j, err := Open("/j", o)
		testkit.OK(t, err)
		m.fill(j, 500)
		count := func() map[string]int {
			clear(m.gone)
			m.learn(j, map[string]Retention{"short": {}, "other": {}, "long": {}})
			m.check(j, 0, nil)
			n := make(map[string]int)
			for o, tenant := range m.owner {
				if !m.gone[uint64(o)] {
					n[tenant]++
				}
			}
			return n
		}
		all := count()
		for _, row := range []struct {
			after              time.Duration
			short, other, long int
		}{
			{30 * time.Minute, all["short"], all["other"], all["long"]},
			{2 * time.Hour, 0, all["other"], all["long"]},
			{24 * time.Hour, 0, 0, all["long"]},
			{72 * time.Hour, 0, 0, 0},
		} {
			time.Sleep(row.after)
			synctest.Wait()
			got := count()
			if got["short"] != row.short || got["other"] != row.other || got["long"] != row.long {
				t.Errorf("%v later: %v, want %+v", row.after, got, row)
			}
		}
		if j.First() != uint64(len(m.model)) {
			t.Errorf("the journal begins at %d", j.First())
		}
		testkit.OK(t, j.Close())
	})
}

// What a cursor holds stays, and a reader that is in the segment reads it to its end.
func TestDropHeld(t *testing.T) {
	m := newMixed(t, 5, "shop", "bank")
	mem := disktest.NewMem()
	o := Options{Disk: mem, SegmentBytes: 20_000, MaxGroupBytes: 3000, Pack: true, Hold: []string{"sink"}, Tenants: map[string]Retention{"shop": {Bytes: 1}}}
	j, err := Open("/j", o)
	testkit.OK(t, err)
	c, err := j.OpenCursor("sink", true)
	testkit.OK(t, err)
	m.fill(j, 600)
	waitDropped(t, j)
	m.check(j, 0, nil) // nothing is gone
	r := j.NewReader(0)
	defer r.Close()
	if _, ok, err := r.TryNext(); !ok || err != nil {
		t.Fatal(ok, err)
	}
	j.mu.Lock()
	end := j.segs[1].first
	j.mu.Unlock()
	testkit.OK(t, c.Save(end))
	for deadline := time.Now().Add(time.Minute); j.Stats().DroppedRecords == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("nothing is dropped within a minute")
		}
	}
	for r.Offset() < end {
		f, ok, err := r.TryNext()
		if !ok || err != nil {
			t.Fatalf("the reader in the segment: %v, %v", ok, err)
		}
		if string(f.Lines) != strings.Join(m.model[f.First:f.end()], "") {
			t.Fatalf("other lines at %d", f.First)
		}
	}
	m.learn(j, map[string]Retention{"shop": {}})
	m.check(j, 0, nil)
	for o := range m.gone {
		if o >= end {
			t.Fatalf("offset %d is gone, which the cursor holds", o)
		}
	}
	if key, err := j.AppendKeyed(context.Background(), "key 0", Batch{Lines: []byte(m.model[0]), Records: 1, MaxTime: 1, Events: 1}); err == nil && !key.Duplicate {
		t.Error("a key of dropped records is stored again")
	}
	testkit.OK(t, j.Close())
}

// RetainBytes counts files as they are packed: while the packer is late, the backlog does
// not count, up to as much again; MaxBytes counts all.
func TestRetainPackedBytes(t *testing.T) {
	for _, row := range []struct {
		name     string
		max      int64
		records  int
		kept     bool // all of the history, while the packer is late
		ceiling  int64
		complete bool // afterwards too
	}{
		{"a backlog that fits", 0, 1100, true, 90_000, true},
		{"a backlog beyond twice the size", 0, 3000, false, 90_000, false},
		{"the disk is full before", 60_000, 1100, false, 60_000, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			const retain = 40_000
			release := make(chan struct{})
			mem := disktest.NewMem()
			packed := 0
			j, err := Open("/j", Options{SegmentBytes: 10_000, MaxGroupBytes: 3000, Pack: true, RetainBytes: retain, MaxBytes: row.max,
				Disk: &disktest.Faulty{FS: mem, Hook: func(op disktest.Op) disktest.Fault {
					if op.Kind == disktest.Open && strings.HasSuffix(op.Name, extPack) && op.Flag&os.O_CREATE != 0 {
						if packed++; packed > 10 {
							<-release
						}
					}
					return disktest.Fault{}
				}}})
			testkit.OK(t, err)
			defer j.Close()
			n := 0
			for ; n < 1000; n += 20 { // a history of packed segments
				mustAppend(t, j, lines(n, 20))
				for j.nextRetired() != nil || j.nextUnpacked() != nil && j.Stats().PackedSegments < 10 {
					time.Sleep(time.Millisecond)
				}
			}
			history := j.First()
			for ; n < 1000+row.records/2; n += 20 {
				mustAppend(t, j, lines(n, 20))
				for j.nextRetired() != nil {
					time.Sleep(time.Millisecond)
				}
				if size := j.Stats().Bytes; size > row.ceiling {
					t.Fatalf("%d bytes in files, want at most %d", size, row.ceiling)
				}
			}
			for end := time.Now().Add(time.Minute); !row.kept && j.First() == history; time.Sleep(time.Millisecond) {
				if time.Now().After(end) {
					t.Fatalf("nothing is deleted within a minute: %+v", j.Stats())
				}
			}
			j.mu.Lock()
			over := j.overLocked()
			j.mu.Unlock()
			if row.kept && (over || j.First() != history) {
				t.Errorf("the journal began at %d and begins at %d: %+v", history, j.First(), j.Stats())
			}
			close(release)
			waitPacked(t, j)
			for end := time.Now().Add(time.Minute); j.Stats().Bytes > retain; time.Sleep(time.Millisecond) {
				if time.Now().After(end) {
					t.Fatalf("still %d bytes", j.Stats().Bytes)
				}
			}
			if first := j.First(); (first == 0) != row.complete {
				t.Errorf("the journal begins at %d: %+v", first, j.Stats())
			}
		})
	}
}

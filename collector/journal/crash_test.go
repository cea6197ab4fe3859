package journal

import (
	"math/rand/v2"
	"os"
	"sync"
	"testing"

	"github.com/rollway/rollway/internal/disktest"
	"github.com/rollway/rollway/internal/testkit"
)

// crashChecker opens copies of a disk as crashes at each operation leave them.
type crashChecker struct {
	t   *testing.T
	mem *disktest.Mem

	mu       sync.Mutex
	rng      *rand.Rand
	buffered uint64 // records below were acknowledged
	synced   uint64 // records below were acknowledged as durable
	crashes  int
	lost     int // crashes that cost a buffered record
}

// hook runs before each operation of the journal.
func (c *crashChecker) hook(op disktest.Op) disktest.Fault {
	switch op.Kind {
	case disktest.Read, disktest.List, disktest.Lock:
		return disktest.Fault{}
	case disktest.Open:
		if op.Flag&os.O_CREATE == 0 {
			return disktest.Fault{}
		}
	}
	c.mu.Lock() // one crash after the other
	defer c.mu.Unlock()
	c.check("process killed", c.mem.KillClone(), c.buffered)
	c.check("power cut, nothing unsynced kept", c.mem.PowerCutClone(nil), c.synced)
	c.check("power cut, some unsynced kept", c.mem.PowerCutClone(c.rng), c.synced)
	if op.Kind == disktest.Write {
		torn := c.mem.KillClone()
		f, err := torn.OpenFile(op.Name, os.O_RDWR, 0)
		if err != nil {
			c.t.Error(err)
			return disktest.Fault{}
		}
		if _, err := f.WriteAt(op.Data[:c.rng.IntN(len(op.Data)+1)], op.Off); err != nil {
			c.t.Error(err)
		}
		f.Close()
		c.check("process killed within a write", torn, c.buffered)
	}
	return disktest.Fault{}
}

// check opens the journal as the crash left it: all below must is there, nothing
// is torn, and it can be written on and opened again.
func (c *crashChecker) check(what string, mem *disktest.Mem, must uint64) {
	c.crashes++
	for again := range 2 {
		j, err := Open("/j", Options{Disk: mem, SegmentBytes: 1500})
		if err != nil {
			c.t.Errorf("crash %d (%s): %v", c.crashes, what, err)
			return
		}
		offsets, gaps := readAll(c.t, j)
		have := uint64(0)
		for have < uint64(len(offsets)) && offsets[have] == have {
			have++
		}
		if have < must {
			c.t.Errorf("crash %d (%s): records below %d were acknowledged, %d are there; gaps %v, findings %v",
				c.crashes, what, must, have, gaps, j.Recovery().Findings)
		}
		if again == 0 {
			if have < c.buffered {
				c.lost++
			}
			b := lines(int(j.Next()), 2)
			b.Synced = true
			if first := mustAppend(c.t, j, b); first < must {
				c.t.Errorf("crash %d (%s): offset %d is given again", c.crashes, what, first)
			}
		}
		if err := j.Close(); err != nil {
			c.t.Errorf("crash %d (%s): %v", c.crashes, what, err)
		}
	}
}

func (c *crashChecker) acknowledged(end uint64, synced bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.buffered = end
	if synced {
		c.synced = end
	}
}

// The process or the machine stops before each disk operation of a run with
// rotations, packing and restarts.
func TestCrashAtEveryOperation(t *testing.T) {
	for seed := range uint64(testkit.RaceRounds(t, 2, 4)) { // half of them pack
		rng := rand.New(rand.NewPCG(seed, 2))
		mem := disktest.NewMem()
		c := &crashChecker{t: t, mem: mem, rng: rng}
		faulty := &disktest.Faulty{FS: mem, Hook: c.hook}
		n := 0
		for restart := range 3 {
			j, err := Open("/j", Options{Disk: faulty, SegmentBytes: 1500, Pack: seed%2 == 1})
			testkit.OK(t, err)
			plan := rand.New(rand.NewPCG(seed, uint64(restart)))
			for range 25 {
				b := lines(n, 1+plan.IntN(4))
				b.Synced = plan.IntN(3) == 0
				mustAppend(t, j, b)
				n += b.Records
				c.acknowledged(uint64(n), b.Synced)
			}
			if seed%2 == 1 {
				waitPacked(t, j)
			}
			if err := j.Close(); err != nil {
				t.Fatal(err)
			}
			c.acknowledged(uint64(n), true)
		}
		t.Logf("seed %d: %d crashes, %d of them cost buffered records, none a synced one", seed, c.crashes, c.lost)
		if c.lost == 0 {
			t.Error("no power cut cost anything: the disk does not lose what it may lose")
		}
	}
}

// A crash during the repair after a crash: recovery's own operations are cut
// short at each place.
func TestCrashDuringRecovery(t *testing.T) {
	base := memJournal(t, 1, 4, 3)
	edit(t, base, "/j/00000000000000000008.open", func(b []byte) []byte {
		b[segmentHeaderSize+100] ^= 1 // in the first frame
		return append(b, "torn tail"...)
	})
	want, err := Open("/j", Options{Disk: base.KillClone()})
	testkit.OK(t, err)
	defer want.Close()
	offsets, _ := readAll(t, want)
	ops := 0
	var mu sync.Mutex // Close and the background work at the same time
	mem := base.KillClone()
	j, err := Open("/j", Options{Disk: &disktest.Faulty{FS: mem, Hook: func(op disktest.Op) disktest.Fault {
		mu.Lock()
		defer mu.Unlock()
		ops++
		for _, crashed := range []*disktest.Mem{mem.KillClone(), mem.PowerCutClone(nil), mem.PowerCutClone(rand.New(rand.NewPCG(1, uint64(ops))))} {
			j, err := Open("/j", Options{Disk: crashed})
			if err != nil {
				t.Fatalf("before operation %d, %s %s: %v", ops, op.Kind, op.Name, err)
			}
			if got, _ := readAll(t, j); len(got) != len(offsets) {
				t.Errorf("before operation %d, %s %s: read %d, want %d", ops, op.Kind, op.Name, got, offsets)
			}
			j.Close()
		}
		return disktest.Fault{}
	}}})
	testkit.OK(t, err)
	j.Close()
	if ops < 10 {
		t.Fatalf("%d operations seen", ops)
	}
}

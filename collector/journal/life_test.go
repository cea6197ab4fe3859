package journal

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/rollway/rollway/internal/disktest"
)

var livesFlag = flag.Int("lives", 25, "how many seeds TestLives runs")

// lives is one journal through several processes, and what its senders and the
// owner of its cursor know. The disk below goes away at some operation of each.
type lives struct {
	t    *testing.T
	rng  *rand.Rand // of the test's goroutine
	o    Options
	hold bool

	tenants bool // lines have some

	mem  *disktest.Mem
	sent []*sending
	seen map[uint64]string // lines before the saved cursor, by offset
	at   uint64            // the cursor of this process
	safe uint64            // it was saved up to here
	cuts int               // power cuts so far

	mu      sync.Mutex
	faults  *rand.Rand // nil: the disk is well
	noSync  bool       // an fsync has failed since the disk was the last one
	left    int        // operations until the end
	ended   bool
	durable uint64        // all below is, unless noSync
	after   *disktest.Mem // what the end left
	j       *Journal      // nil while it is opened
	deleted uint64        // retention has been here; a power cut may bring some of it back
	end     func(disktest.Op) *disktest.Mem
}

// sending is a batch that is sent until it is acknowledged, and sometimes again.
type sending struct {
	key    string // empty: sent once only
	batch  Batch
	first  uint64
	stored bool // acknowledged, and nothing that happened since may have cost it
}

func (s *sending) end() uint64 { return s.first + uint64(s.batch.Records) }

// hook ends the process at its operation, or lets it fail.
func (l *lives) hook(op disktest.Op) disktest.Fault {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return disktest.Fault{Err: syscall.EIO}
	}
	switch op.Kind {
	case disktest.Read, disktest.List, disktest.Lock:
		return disktest.Fault{}
	case disktest.Open:
		if op.Flag&os.O_CREATE == 0 {
			return disktest.Fault{}
		}
	}
	if l.left--; l.left == 0 {
		l.ended, l.after = true, l.end(op)
		if l.j != nil {
			l.deleted = max(l.deleted, l.j.First())
		}
		return disktest.Fault{Err: syscall.EIO}
	}
	if l.faults == nil || l.faults.IntN(12) > 0 {
		return disktest.Fault{}
	}
	f := disktest.Fault{Err: syscall.EIO}
	switch op.Kind {
	case disktest.Write:
		f = disktest.Fault{Err: []error{syscall.EIO, syscall.ENOSPC}[l.faults.IntN(2)], Short: l.faults.IntN(op.Len + 1)}
	case disktest.Sync, disktest.SyncDir:
		l.noSync = true
	}
	return f
}

// told notes an answer, unless it came after the end.
func (l *lives) told(s *sending, first uint64, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended || err != nil && !errors.Is(err, ErrNotSynced) {
		return
	}
	s.first, s.stored = first, true
	if s.batch.Synced && err == nil {
		l.durable = max(l.durable, s.end())
	}
}

// send sends s, perhaps once more, and looks for it where the answer says it is.
func (l *lives) send(j *Journal, s *sending) {
	before := *s
	r, err := j.AppendKeyed(context.Background(), s.key, s.batch)
	l.told(s, r.First, err)
	if l.isEnded() || err != nil && !errors.Is(err, ErrNotSynced) {
		return
	}
	if before.stored && before.first >= l.kept(j) && (!r.Duplicate || r.First != before.first) {
		l.t.Errorf("%s was stored at %d and is now answered %+v, %v", s.key, before.first, r, err)
	}
	l.look(j, s)
}

// look reads s where it is stored, if retention has left it there.
func (l *lives) look(j *Journal, s *sending) {
	got := read(j, s.first, s.batch.Records)
	if got != string(s.batch.Lines) && !l.dropped(j, s) && s.first >= l.kept(j) && !l.isEnded() { // kept last: retention goes on
		l.t.Errorf("%s, stored at %d to %d, is read as %q", s.key, s.first, s.end(), got)
	}
}

// limited is what lines of the tenant with a limit have.
const limited = `"tenant":"t1"`

// dropped reports whether each record of s is there, or deleted by its tenant's retention.
func (l *lives) dropped(j *Journal, s *sending) bool {
	offset := s.first
	for line := range strings.Lines(string(s.batch.Lines)) {
		if got := read(j, offset, 1); got != line && !(strings.Contains(line, limited) && strings.Contains(got, byRetention)) {
			return false
		}
		offset++
	}
	return true
}

func (l *lives) isEnded() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ended
}

// kept is the offset from which on nothing has been deleted.
func (l *lives) kept(j *Journal) uint64 {
	first := j.First()
	l.mu.Lock()
	defer l.mu.Unlock()
	return max(first, l.deleted)
}

// read returns the lines of n records from offset on, or what is there of them.
func read(j *Journal, offset uint64, n int) string {
	r := j.NewReader(offset)
	defer r.Close()
	var b strings.Builder
	for end := offset + uint64(n); r.Offset() < end; {
		f, ok, err := r.TryNext()
		if gap := (*Gap)(nil); errors.As(err, &gap) {
			fmt.Fprint(&b, gap)
			continue
		}
		if err != nil || !ok {
			return b.String()
		}
		for line := range strings.Lines(string(f.Lines)) {
			if f.First++; f.First <= end {
				b.WriteString(line)
			}
		}
	}
	return b.String()
}

// follow reads some records after the cursor, and saves it.
func (l *lives) follow(j *Journal, c *Cursor) {
	n := min(uint64(l.rng.IntN(40)), j.Next()-min(j.Next(), l.at))
	for k := range n {
		if line := read(j, l.at+k, 1); strings.HasPrefix(line, "{") {
			l.seen[l.at+k] = line
		}
	}
	err := c.Save(l.at + n)
	l.mu.Lock()
	defer l.mu.Unlock()
	if err == nil && !l.ended {
		if l.at += n; n > 0 {
			l.safe = l.at
		}
		l.durable = max(l.durable, l.at)
	}
}

// run is one process.
func (l *lives) run() {
	j, err := Open("/j", l.o)
	if err != nil {
		if !l.isEnded() {
			l.t.Errorf("open: %v", err)
		}
		return
	}
	defer j.Close()
	l.mu.Lock()
	l.j = j
	l.mu.Unlock()
	c, err := j.OpenCursor("c", l.hold)
	if err != nil {
		if !l.isEnded() {
			l.t.Errorf("open cursor: %v", err)
		}
		return
	}
	if !l.isEnded() {
		l.recovered(j, c)
	}
	for _, s := range l.sent[max(0, len(l.sent)-4):] { // what was under way comes again
		if s.key != "" {
			l.send(j, s)
		}
	}
	l.mu.Lock()
	if l.rng.IntN(3) == 0 {
		l.faults = rand.New(rand.NewPCG(l.rng.Uint64(), 1))
	}
	l.mu.Unlock()
	for range 60 {
		switch n := len(l.sent); l.rng.IntN(8) {
		case 0, 1:
			if n > 0 {
				if s := l.sent[max(0, n-1-l.rng.IntN(20))]; s.key != "" {
					l.send(j, s)
				}
			}
		case 2:
			l.follow(j, c)
		case 3:
			next := j.Next()
			if err := j.Sync(); err == nil {
				l.mu.Lock()
				if !l.ended {
					l.durable = max(l.durable, next)
				}
				l.mu.Unlock()
			}
		default:
			s := &sending{key: fmt.Sprint("batch ", n), batch: lines(1000*n, 1+l.rng.IntN(4))}
			switch l.rng.IntN(5) {
			case 0:
				s.key = ""
			case 1:
				s.batch = lines(1000*n, 20+l.rng.IntN(40))
			}
			s.batch.Synced = l.rng.IntN(3) == 0
			if tenant := l.rng.IntN(4); tenant > 0 && l.tenants {
				s.batch.Lines = bytes.ReplaceAll(s.batch.Lines, []byte(`"attrs":{`), fmt.Appendf(nil, `"attrs":{"tenant":"t%d",`, tenant))
			}
			l.sent = append(l.sent, s)
			l.send(j, s)
		}
		if l.isEnded() {
			return
		}
	}
}

// recovered checks what a process finds.
func (l *lives) recovered(j *Journal, c *Cursor) {
	for _, s := range l.sent {
		if s.stored {
			l.look(j, s)
		}
	}
	if c.Reset() != "" && l.safe > 0 || c.Offset() < l.safe {
		l.t.Errorf("the cursor is at %d, was saved at %d: %s", c.Offset(), l.safe, c.Reset())
	}
	l.at = c.Offset()
	maps.DeleteFunc(l.seen, func(offset uint64, _ string) bool { return offset >= l.at })
	if j.Next() < l.at {
		l.t.Errorf("the journal ends at %d, before the cursor at %d", j.Next(), l.at)
	}
	for offset, line := range l.seen {
		got := read(j, offset, 1)
		dropped := strings.Contains(line, limited) && strings.Contains(got, byRetention)
		if offset < l.at && got != line && !dropped && offset >= l.kept(j) && !l.isEnded() {
			l.t.Errorf("offset %d, before the cursor at %d, was %q and is %q", offset, l.at, line, got)
			break
		}
	}
	for _, s := range l.sent {
		if l.hold && s.stored && s.end() > l.at && s.first < j.First() {
			l.t.Errorf("retention has deleted up to %d, and the cursor is at %d", j.First(), l.at)
			break
		}
	}
	l.mu.Lock()
	if !l.noSync {
		l.durable = j.Next()
	}
	l.mu.Unlock()
	l.once(j)
}

// once checks that no record is there twice. Of a batch in pieces that a power
// cut has taken some, the others are.
func (l *lives) once(j *Journal) {
	at := make(map[int]uint64)
	r := j.NewReader(j.First())
	defer r.Close()
	for {
		f, ok, err := r.TryNext()
		if gap := (*Gap)(nil); errors.As(err, &gap) {
			continue
		}
		if err != nil || !ok {
			return
		}
		for line := range strings.Lines(string(f.Lines)) {
			n, err := recordNumber(strings.TrimSuffix(line, "\n"))
			if err != nil {
				l.t.Errorf("torn line %q at %d", line, f.First)
				return
			}
			if before, twice := at[n]; twice && (l.cuts == 0 || l.sent[n/1000].batch.Records < 20) {
				l.t.Errorf("record %d is at %d and at %d", n, before, f.First)
			}
			at[n] = f.First
			f.First++
		}
	}
}

// Several processes one after the other store, resend, read, save a cursor, seal,
// pack, delete by retention, with a disk that fails now and then, and each ends at
// some operation: it is closed or killed, or the power is cut. What was
// acknowledged is there, a key answers with the lines that were sent under it, and
// no offset below the cursor is given to another line.
func TestLives(t *testing.T) {
	for seed := range uint64(*livesFlag) {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 3))
			l := &lives{t: t, rng: rng, mem: disktest.NewMem(), seen: map[uint64]string{}, hold: rng.IntN(2) == 0}
			l.o = Options{SegmentBytes: 3000, MaxGroupBytes: 1000, Pack: rng.IntN(2) == 0}
			if l.tenants = rng.IntN(2) == 0; l.tenants && l.o.Pack {
				l.o.Tenants = map[string]Retention{"t1": {Bytes: 1000}}
			}
			if rng.IntN(2) == 0 {
				l.o.RetainBytes = 20_000
			}
			for range 6 {
				l.live()
				if t.Failed() {
					return
				}
			}
		})
	}
}

// live is one process and its end.
func (l *lives) live() {
	torn := rand.New(rand.NewPCG(l.rng.Uint64(), 2))
	cut, mem := false, l.mem
	switch l.rng.IntN(4) {
	case 0:
		cut, l.end = true, func(disktest.Op) *disktest.Mem { return mem.PowerCutClone(nil) }
	case 1:
		cut, l.end = true, func(disktest.Op) *disktest.Mem { return mem.PowerCutClone(torn) }
	default:
		l.end = func(op disktest.Op) *disktest.Mem { return tear(mem.KillClone(), op, torn) }
	}
	l.j, l.left, l.ended, l.faults = nil, 1+l.rng.IntN(300), false, nil
	if l.o.Hold = nil; l.hold {
		l.o.Hold = []string{"c"}
	}
	l.o.Disk = &disktest.Faulty{FS: mem, Hook: l.hook}
	l.run()
	if !l.ended { // closed
		return
	}
	l.mem = l.after
	if cut {
		l.cuts++
		l.forget()
	}
	l.noSync = false // what is there is on the disk
}

// forget is what a power cut does to what is known.
func (l *lives) forget() {
	for _, s := range l.sent {
		s.stored = s.stored && s.end() <= l.durable && !l.noSync
	}
	if l.noSync { // then not even a cursor is sure
		clear(l.seen)
		l.safe = 0
	}
}

// tear does a part of a write.
func tear(m *disktest.Mem, op disktest.Op, rng *rand.Rand) *disktest.Mem {
	if op.Kind != disktest.Write {
		return m
	}
	if f, err := m.OpenFile(op.Name, os.O_RDWR, 0); err == nil {
		f.WriteAt(op.Data[:rng.IntN(len(op.Data)+1)], op.Off)
		f.Close()
	}
	return m
}

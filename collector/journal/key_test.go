package journal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollway/rollway/internal/disk"
	"github.com/rollway/rollway/internal/disktest"
	"github.com/rollway/rollway/internal/recordlog"
	"github.com/rollway/rollway/internal/testkit"
)

// appendKeyed appends batch i, of i%4+1 records that begin at 100 i, under its
// own key; every eighth is longer than a frame of keyOptions.
func appendKeyed(j *Journal, i int) (Receipt, error) {
	n := i%4 + 1
	if i%8 == 7 {
		n = 30
	}
	b := lines(100*i, n)
	b.Synced = i%5 == 0
	return j.AppendKeyed(context.Background(), fmt.Sprintf("key %d", i), b)
}

func keyOptions(fs disk.FS) Options {
	return Options{Disk: fs, SegmentBytes: 6000, MaxGroupBytes: 1000}
}

// counts returns how often each record number is stored.
func counts(t *testing.T, j *Journal) map[int]int {
	t.Helper()
	r := j.NewReader(j.First())
	defer r.Close()
	seen := map[int]int{}
	for {
		f, ok, err := r.TryNext()
		if err == io.EOF || err == nil && !ok {
			return seen
		}
		testkit.OK(t, err)
		for line := range strings.Lines(string(f.Lines)) {
			n, err := recordNumber(strings.TrimSuffix(line, "\n"))
			testkit.OK(t, err)
			seen[n]++
		}
	}
}

// wantOnce checks that batches 0 to n-1 are stored once, and nothing else is.
func wantOnce(t *testing.T, j *Journal, n int) {
	t.Helper()
	seen, want := counts(t, j), 0
	for i := range n {
		records := i%4 + 1
		if i%8 == 7 {
			records = 30
		}
		for k := range records {
			want++
			if seen[100*i+k] != 1 {
				t.Fatalf("record %d of batch %d is stored %d times", k, i, seen[100*i+k])
			}
		}
	}
	if len(seen) != want {
		t.Fatalf("%d records, want %d", len(seen), want)
	}
}

func TestKeyedOnce(t *testing.T) {
	mem := disktest.NewMem()
	j, err := Open("/j", keyOptions(mem))
	testkit.OK(t, err)
	const n = 60
	var receipts []Receipt
	for i := range n {
		r, err := appendKeyed(j, i)
		if err != nil || r.Duplicate {
			t.Fatalf("batch %d: %+v, %v", i, r, err)
		}
		receipts = append(receipts, r)
	}
	again := func(what string) {
		t.Helper()
		for i := range n {
			r, err := appendKeyed(j, i)
			want := receipts[i]
			want.Duplicate = true
			if err != nil || r != want {
				t.Fatalf("%s: batch %d: %+v, %v, want %+v", what, i, r, err, want)
			}
		}
		wantOnce(t, j, n)
	}
	reopen := func() {
		t.Helper()
		testkit.OK(t, j.Close())
		if j, err = Open("/j", keyOptions(mem)); err != nil {
			t.Fatal(err)
		}
	}
	again("at once")
	if st := j.Stats(); st.Keys != n || st.Duplicates != n || st.Appends != n || st.Segments < 5 {
		t.Fatalf("%+v", st)
	}
	if _, err := j.AppendKeyed(context.Background(), "key 1", lines(0, 1)); !errors.Is(err, ErrKeyReused) {
		t.Fatalf("a key of another batch: %v", err)
	}
	for _, key := range []string{strings.Repeat("k", MaxKeyBytes+1), "\xff"} {
		if _, err := j.AppendKeyed(context.Background(), key, lines(0, 1)); err == nil {
			t.Fatalf("key %.10q was taken", key)
		}
	}
	reopen()
	again("after a restart")
	if f := j.Recovery().Findings; len(f) != 0 {
		t.Fatal(f)
	}
	// Segments without a sound key section.
	testkit.OK(t, j.Close())
	damaged := 0
	names, err := mem.List("/j")
	testkit.OK(t, err)
	for _, e := range names {
		if !strings.HasSuffix(e.Name, extSealed) {
			continue
		}
		edit(t, mem, "/j/"+e.Name, func(b []byte) []byte {
			foot, err := recordlog.ReadFooter(bytes.NewReader(b), "", int64(len(b)))
			testkit.OK(t, err)
			switch keys := foot.Section(recordlog.KeysSection); damaged {
			case 0:
				b[keys.Pos] ^= 1
			case 1:
				b = b[:len(b)-1]
			case 2:
				b = b[:keys.Pos]
			}
			damaged++
			return b
		})
	}
	if damaged < 4 {
		t.Fatalf("%d sealed segments", damaged)
	}
	if j, err = Open("/j", keyOptions(mem)); err != nil {
		t.Fatal(err)
	}
	checkKinds(t, j, []FindingKind{recordlog.Shorter, recordlog.Shorter, recordlog.Damaged})
	again("with damaged key sections")
	testkit.OK(t, j.Close())
}

// Many senders of the same batches at the same time.
func TestKeyedConcurrently(t *testing.T) {
	j := mustOpen(t, t.TempDir(), keyOptions(nil))
	const senders, n = 8, 100
	receipts := make([][n]Receipt, senders)
	var sending sync.WaitGroup
	for s := range senders {
		sending.Go(func() {
			for i := range n {
				r, err := appendKeyed(j, i)
				if err != nil {
					t.Error(err)
					return
				}
				receipts[s][i] = r
			}
		})
	}
	sending.Wait()
	if t.Failed() {
		return
	}
	wantOnce(t, j, n)
	for i := range n {
		first := 0
		for s := range senders {
			r := receipts[s][i]
			if r.First != receipts[0][i].First || r.Records != receipts[0][i].Records {
				t.Fatalf("batch %d: %+v and %+v", i, r, receipts[0][i])
			}
			if !r.Duplicate {
				first++
			}
		}
		if first != 1 {
			t.Fatalf("batch %d was the first of its key %d times", i, first)
		}
	}
	if st := j.Stats(); st.Appends != n || st.Duplicates != (senders-1)*n {
		t.Fatalf("%+v", st)
	}
}

// A batch that comes while one of the same key is being written waits for it, and
// takes its place when that is not stored.
func TestKeyedWaits(t *testing.T) {
	for _, fails := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			mem := disktest.NewMem()
			release := make(chan struct{})
			stall := false
			j, err := Open("/j", Options{Disk: &disktest.Faulty{FS: mem, Hook: func(op disktest.Op) disktest.Fault {
				if op.Kind == disktest.Write && isSegment(op.Name) && stall {
					stall = false
					<-release
					if fails {
						return disktest.Fault{Err: syscall.EIO}
					}
				}
				return disktest.Fault{}
			}}})
			testkit.OK(t, err)
			mustAppend(t, j, lines(0, 1))
			stall = true
			type answer struct {
				r   Receipt
				err error
			}
			answers := make(chan answer, 3)
			send := func(ctx context.Context) {
				r, err := j.AppendKeyed(ctx, "k", lines(1, 2))
				answers <- answer{r, err}
			}
			go send(context.Background())
			synctest.Wait() // the first is in its write
			go send(context.Background())
			ctx, cancel := context.WithCancel(context.Background())
			go send(ctx)
			synctest.Wait()
			if len(answers) != 0 {
				t.Fatalf("an answer before the write has ended: %+v", <-answers)
			}
			cancel()
			if a := <-answers; !errors.Is(a.err, context.Canceled) {
				t.Fatalf("%+v", a)
			}
			close(release)
			a, b := <-answers, <-answers
			if (a.err != nil || b.err != nil) != fails {
				t.Fatalf("%+v, %+v", a, b)
			}
			if fails && a.err == nil {
				a, b = b, a
			}
			if b.r.First != 1 || !fails && a.r.Duplicate == b.r.Duplicate || fails && b.r.Duplicate {
				t.Fatalf("%+v, %+v", a, b)
			}
			if seen := counts(t, j); len(seen) != 3 || seen[1] != 1 || seen[2] != 1 {
				t.Fatalf("%v", seen)
			}
			testkit.OK(t, j.Close())
		})
	}
}

func TestKeysAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem := disktest.NewMem()
		o := keyOptions(mem)
		o.MaxKeys, o.KeyAge = 10, time.Hour
		j, err := Open("/j", o)
		testkit.OK(t, err)
		defer func() { j.Close() }()
		want := func(i int, duplicate bool) {
			t.Helper()
			if r, err := appendKeyed(j, i); err != nil || r.Duplicate != duplicate {
				t.Fatalf("batch %d: %+v, %v", i, r, err)
			}
		}
		reopen := func() {
			t.Helper()
			testkit.OK(t, j.Close())
			if j, err = Open("/j", o); err != nil {
				t.Fatal(err)
			}
		}
		for i := range 40 {
			want(i, false)
		}
		reopen()
		for i := 30; i < 40; i++ {
			want(i, true)
		}
		want(29, false) // and 30 is forgotten
		want(30, false)
		if keys := j.Stats().Keys; keys != 10 {
			t.Fatal(keys)
		}
		time.Sleep(59 * time.Minute)
		want(39, true)
		reopen()
		want(39, true)
		time.Sleep(2 * time.Minute)
		if keys := j.Stats().Keys; keys != 0 {
			t.Fatal(keys)
		}
		want(39, false)
		time.Sleep(61 * time.Minute)
		reopen()
		want(39, false)
	})
}

// The process dies in each operation of the disk, in a write also half way. What
// is sent again under its key is there once.
func TestKeyedCrash(t *testing.T) {
	const n = 24
	for _, short := range []bool{false, true} {
		for at := 0; ; at++ {
			mem := disktest.NewMem()
			var mu sync.Mutex
			ops, dead := 0, false // guarded by mu: the keeper works too
			fs := &disktest.Faulty{FS: mem, Hook: func(op disktest.Op) disktest.Fault {
				mu.Lock()
				defer mu.Unlock()
				if dead {
					return disktest.Fault{Err: syscall.EIO}
				}
				if op.Kind == disktest.Open || op.Kind == disktest.Read {
					return disktest.Fault{}
				}
				if ops++; ops <= at {
					return disktest.Fault{}
				}
				dead = true
				f := disktest.Fault{Err: syscall.EIO}
				if short {
					f.Short = op.Len / 2
				}
				return f
			}}
			acked := map[int]Receipt{}
			j, err := Open("/j", keyOptions(fs))
			if err == nil {
				for i := range n {
					if r, err := appendKeyed(j, i); err == nil {
						acked[i] = r
					}
				}
				j.Close()
			}
			mu.Lock()
			wasDead := dead
			mu.Unlock()
			j2, err := Open("/j", keyOptions(mem.KillClone()))
			if err != nil {
				t.Fatalf("operation %d: %v", at, err)
			}
			for i := range n {
				r, err := appendKeyed(j2, i)
				if err != nil {
					t.Fatalf("operation %d: batch %d: %v", at, i, err)
				}
				if first, ok := acked[i]; ok && (!r.Duplicate || r.First != first.First) {
					t.Fatalf("operation %d: batch %d was answered %+v, and then %+v", at, i, first, r)
				}
			}
			wantOnce(t, j2, n)
			testkit.OK(t, j2.Close())
			if !wasDead {
				if at < 50 {
					t.Fatalf("%d operations: this tests little", at)
				}
				break
			}
		}
	}
}

// One owner's keys, however many, do not make another's be forgotten, restarts included:
// the oldest key of the owner with the most goes.
func TestKeysOfAnother(t *testing.T) {
	dir := t.TempDir()
	o := Options{MaxKeys: 10, SegmentBytes: 4 << 10}
	send := func(j *Journal, owner, key string) Receipt {
		t.Helper()
		r, err := j.AppendKeyed(t.Context(), key, Batch{Lines: []byte("{}\n"), Records: 1, MinTime: 1, MaxTime: 1, Owner: owner})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	j := mustOpen(t, dir, o)
	for _, key := range []string{"a/1", "a/2", "a/3"} {
		send(j, "a", key)
	}
	const many = 1000 // in several segments
	for i := range many {
		send(j, "b", fmt.Sprint("b/", i))
	}
	for range 2 {
		for i, key := range []string{"a/1", "a/2", "a/3"} {
			if r := send(j, "a", key); !r.Duplicate || r.First != uint64(i) {
				t.Errorf("key %s: %+v", key, r)
			}
		}
		if r := send(j, "b", fmt.Sprint("b/", many-1)); !r.Duplicate {
			t.Errorf("b's newest: %+v", r)
		}
		if s := j.Stats(); s.Keys != 10 {
			t.Errorf("%d keys", s.Keys)
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		j = mustOpen(t, dir, o)
	}
	if r := send(j, "b", "b/0"); r.Duplicate {
		t.Error("b's oldest is remembered")
	}
	if r := send(j, "c", "c/0"); r.Duplicate {
		t.Error("c's first is remembered")
	}
	if r := send(j, "a", "a/1"); !r.Duplicate {
		t.Error("a's oldest is forgotten")
	}
}

// The table does what a list does in which everything is looked for.
func TestKeyTable(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	var table keyTable
	table.init(50, time.Hour)
	var list []keyed
	for i := range 20_000 {
		k := keyed{owner: keyOwner{byte(rnd.IntN(1 + rnd.IntN(20)))}, first: uint64(i), at: int64(i) * int64(time.Minute) * int64(rnd.IntN(2)+1) / 2}
		if i > 0 {
			k.at = max(k.at, list[len(list)-1].at)
		}
		k.hash[0], k.hash[1] = byte(i), byte(i>>8)
		list = slices.DeleteFunc(list, func(old keyed) bool { return k.at-old.at > int64(time.Hour) })
		table.expire(k.at)
		if len(list) == 50 {
			count := make(map[keyOwner]int)
			for _, old := range list {
				count[old.owner]++
			}
			most := count[table.most[0].owner]
			for o, n := range count {
				if n > most {
					t.Fatalf("%v has %d, which are more than %d", o, n, most)
				}
			}
			goes := slices.IndexFunc(list, func(old keyed) bool { return old.owner == table.most[0].owner })
			list = slices.Delete(list, goes, goes+1)
		}
		table.add(k)
		list = append(list, k)
		if got := table.between(0, math.MaxUint64); !slices.Equal(got, list) {
			t.Fatalf("after %d: %v, want %v", i, got, list)
		}
		old := list[rnd.IntN(len(list))]
		if got, ok := table.find(old.hash, k.at); !ok || got != old || table.n != len(list) || len(table.where) != len(list) {
			t.Fatalf("%v %v, want %v", got, ok, old)
		}
	}
	if len(table.keys) != 50 {
		t.Errorf("memory for %d", len(table.keys))
	}
}

// FuzzKeys: no bytes make the readers of keys panic, and what is written is read.
func FuzzKeys(f *testing.F) {
	k := keyed{hash: hashKey("key"), first: 6, records: 2, events: 2, at: 3}
	f.Add(k.append(nil), 1, 5)
	f.Fuzz(func(t *testing.T, b []byte, n, records int) {
		h := recordlog.Frame{First: 5, Records: max(records, 1) & 0xffff, Keys: n & 0xffff, KeysLen: len(b)}
		for _, k := range parseKeys(nil, &h, b) {
			if k.first < 5 || k.first >= h.End() || k.records == 0 {
				t.Fatalf("%+v", k)
			}
		}
	})
}

// What is repeated is not said to be durable after its fsync has failed, also
// when its segment is written no more.
func TestRepeatedAfterFailedFsync(t *testing.T) {
	var failing atomic.Bool
	mem := disktest.NewMem()
	j := mustOpen(t, "/j", Options{Disk: &disktest.Faulty{FS: mem, Hook: func(op disktest.Op) disktest.Fault {
		if op.Kind == disktest.Sync && failing.Load() {
			return disktest.Fault{Err: syscall.EIO}
		}
		return disktest.Fault{}
	}}})
	store := func(key string, synced bool) (Receipt, error) {
		b := lines(0, 2)
		b.Synced = synced
		return j.AppendKeyed(context.Background(), key, b)
	}
	if _, err := store("before", true); err != nil {
		t.Fatal(err)
	}
	failing.Store(true)
	if r, err := store("failed", true); !errors.Is(err, ErrNotSynced) || r.Duplicate {
		t.Fatal(r, err)
	}
	failing.Store(false)
	if _, err := store("behind", true); err != nil { // in the next segment
		t.Fatal(err)
	}
	for key, want := range map[string]error{"before": nil, "failed": ErrNotSynced, "behind": nil} {
		r, err := store(key, true)
		if !r.Duplicate || !errors.Is(err, want) {
			t.Errorf("%s again: %+v, %v", key, r, err)
		}
		if r, err := store(key, false); !r.Duplicate || err != nil {
			t.Errorf("%s again, buffered: %+v, %v", key, r, err)
		}
	}
	if s := j.Stats(); s.Records != 6 || s.DuplicateRecords != 12 {
		t.Errorf("%+v", s)
	}
	if err := j.Close(); !errors.Is(err, ErrNotSynced) {
		t.Errorf("Close: %v", err)
	}
}

// A batch is known by the number of its events, whatever of them have become records
// when it comes again: also after a restart, from a frame, from a key file and from
// a packed segment; and when none has.
func TestKeyedEvents(t *testing.T) {
	for _, how := range []string{"open", "reopened", "sealed", "packed", "in pieces"} {
		t.Run(how, func(t *testing.T) {
			dir := t.TempDir()
			o := Options{Pack: how == "packed"}
			if how == "in pieces" {
				o.MaxGroupBytes = 1000
			}
			j := mustOpen(t, dir, o)
			send := func(key string, records, events int) (Receipt, error) {
				var b Batch
				if records > 0 {
					b = lines(0, records)
				}
				b.Events = events
				return j.AppendKeyed(context.Background(), key, b)
			}
			if r, err := send("none yet", 0, 3); err != nil || r != (Receipt{}) {
				t.Fatal(r, err)
			}
			want, err := send("k", 40, 60)
			if err != nil || want.Duplicate || want.Records != 40 {
				t.Fatal(want, err)
			}
			if r, err := send("same", 5, 5); err != nil || r.Records != 5 {
				t.Fatal(r, err)
			}
			if how == "sealed" || how == "packed" {
				j.acquire()
				j.retire()
				j.release()
				mustAppend(t, j, lines(1000, 1))
				for end := time.Now().Add(time.Minute); !settled(j, how == "packed") && time.Now().Before(end); {
					time.Sleep(time.Millisecond)
				}
			}
			if how != "open" {
				testkit.OK(t, j.Close())
				j = mustOpen(t, dir, o)
			}
			want.Duplicate = true
			for _, records := range []int{40, 60, 1, 0} {
				if r, err := send("k", records, 60); err != nil || r != want {
					t.Errorf("%d records again: %+v, %v, want %+v", records, r, err, want)
				}
			}
			for _, wrong := range []struct {
				key             string
				records, events int
			}{{"k", 40, 40}, {"k", 40, 0}, {"k", 0, 59}, {"same", 5, 6}} {
				if r, err := send(wrong.key, wrong.records, wrong.events); !errors.Is(err, ErrKeyReused) {
					t.Errorf("%+v: %+v, %v", wrong, r, err)
				}
			}
			if r, err := send("same", 5, 0); err != nil || !r.Duplicate || r.Records != 5 {
				t.Error(r, err)
			}
			testkit.OK(t, j.Close())
		})
	}
}

// A batch in pieces that a power cut has damaged may never have been
// acknowledged: sent again under its key it is stored, and not taken for stored.
func TestKeyedDamaged(t *testing.T) {
	for _, damaged := range []int{0, 1} { // of the pieces
		mem := disktest.NewMem()
		j := mustOpen(t, "/j", keyOptions(mem))
		if r, err := j.AppendKeyed(t.Context(), "before", lines(0, 3)); err != nil || r.First != 0 {
			t.Fatal(r, err)
		}
		b := lines(100, 30)
		first, err := j.AppendKeyed(t.Context(), "k", b)
		testkit.OK(t, err)
		testkit.OK(t, j.Close())
		edit(t, mem, "/j/00000000000000000000.open", func(f []byte) []byte {
			at := 0
			for range damaged + 2 { // after the frame of the batch before
				at += 1 + bytes.Index(f[at+1:], []byte("\xffRWF"))
			}
			f[at+frameHeaderSize+40] ^= 1
			return f
		})
		for range 2 {
			j = mustOpen(t, "/j", keyOptions(mem))
			r, err := j.AppendKeyed(t.Context(), "k", b)
			if err != nil || r.First == first.First {
				t.Fatalf("piece %d is damaged; sent again: %+v, %v", damaged, r, err)
			}
			got := ""
			reader := j.NewReader(r.First)
			for reader.Offset() < r.First+30 {
				f, ok, err := reader.TryNext()
				if err != nil || !ok {
					t.Fatal(ok, err)
				}
				got += string(f.Lines)
			}
			reader.Close()
			if got != string(b.Lines) {
				t.Errorf("piece %d is damaged; what was sent again is %q", damaged, got)
			}
			if r, err := j.AppendKeyed(t.Context(), "before", lines(0, 3)); err != nil || !r.Duplicate || r.First != 0 {
				t.Errorf("the batch before: %+v, %v", r, err)
			}
			testkit.OK(t, j.Close())
		}
	}
}

// What a power cut leaves of a sealed segment's name, it leaves of its keys' too.
func TestKeysOfSealedSegment(t *testing.T) {
	mem := disktest.NewMem()
	left := 0
	cut := func(op disktest.Op) disktest.Fault {
		if op.Kind != disktest.SyncDir || op.Name != "/j" {
			return disktest.Fault{}
		}
		for seed := range uint64(16) {
			after := mem.PowerCutClone(rand.New(rand.NewPCG(seed, 4)))
			if _, err := after.ReadFile("/j/00000000000000000000.seg"); err != nil {
				continue
			}
			left++
			j, err := Open("/j", Options{Disk: after})
			if err != nil {
				t.Error(err)
				continue
			}
			if r, err := j.AppendKeyed(context.Background(), "k", lines(0, 2)); err != nil || !r.Duplicate {
				t.Errorf("seed %d: %+v, %v", seed, r, err)
			}
			j.Close()
		}
		return disktest.Fault{}
	}
	j := mustOpen(t, "/j", Options{Disk: &disktest.Faulty{FS: mem, Hook: cut}, SegmentBytes: 300})
	if _, err := j.AppendKeyed(t.Context(), "k", lines(0, 2)); err != nil {
		t.Fatal(err)
	}
	mustAppend(t, j, lines(2, 2)) // in the next segment
	testkit.OK(t, j.Close())
	if left == 0 {
		t.Fatal("the segment was never sealed")
	}
}

// What a process that was killed has left with the kernel is made durable before a
// repeated request for synced lines is answered.
func TestRepeatedAfterKill(t *testing.T) {
	mem := disktest.NewMem()
	killed := mustOpen(t, "/j", Options{Disk: mem})
	want, err := killed.AppendKeyed(t.Context(), "k", lines(0, 2))
	testkit.OK(t, err)
	mem = mem.KillClone()
	b := lines(0, 2)
	b.Synced = true
	j := mustOpen(t, "/j", Options{Disk: mem})
	if r, err := j.AppendKeyed(t.Context(), "k", b); err != nil || !r.Duplicate || r.First != want.First {
		t.Fatal(r, err)
	}
	after := mustOpen(t, "/j", Options{Disk: mem.PowerCutClone(nil)})
	if offsets, gaps := readAll(t, after); len(offsets) != 2 || len(gaps) > 0 {
		t.Errorf("after a power cut: %d, gaps %v", offsets, gaps)
	}
}

// settled reports whether the first segment is sealed, and packed if that is asked.
func settled(j *Journal, packed bool) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.segs[0].sealed && (j.segs[0].packed || !packed)
}

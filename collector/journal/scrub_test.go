package journal

import (
	"bytes"
	"errors"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollway/rollway/internal/disktest"
	"github.com/rollway/rollway/internal/recordlog"
	"github.com/rollway/rollway/internal/testkit"
)

// Each sealed segment is read once in the time, the next process goes on where the last one
// was, and what is damaged or gone is told once.
func TestScrub(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem := memJournal(t, 4, 4, 1)
		var told []Finding
		open := func() *Journal {
			t.Helper()
			j, err := Open("/j", Options{Disk: mem, Scrub: 8 * time.Hour, OnFinding: func(f Finding) { told = append(told, f) }})
			testkit.OK(t, err)
			return j
		}
		read := func(j *Journal, want uint64) {
			t.Helper()
			synctest.Wait()
			if n := j.Stats().ScrubbedSegments; n != want {
				t.Errorf("%d segments were read, want %d", n, want)
			}
		}
		j := open()
		edit(t, mem, "/j/00000000000000000024.seg", flipAt(segmentHeaderSize+frameHeaderSize+5)) // the last of four
		testkit.OK(t, mem.Remove(seg1))
		time.Sleep(3 * time.Hour) // the first two are due at 0 h and 2 h
		read(j, 2)
		if len(told) != 1 || told[0].Kind != recordlog.Missing || told[0].From != 8 || told[0].To != 16 {
			t.Errorf("told %v", told)
		}
		testkit.OK(t, j.Close())
		j = open()
		read(j, 1) // the third, which is due now that there are three
		time.Sleep(4 * time.Hour)
		synctest.Wait()
		if len(told) != 3 || told[1].From != 24 || told[2].Kind != recordlog.Damaged {
			t.Errorf("told %v", told)
		}
		n := len(told)
		time.Sleep(10 * time.Hour) // another round
		if synctest.Wait(); j.Stats().ScrubbedSegments < 4 || len(told) != n {
			t.Errorf("%d segments were read, told %v", j.Stats().ScrubbedSegments, told)
		}
		testkit.OK(t, j.Close())
	})
}

// A process that runs for less than a round goes on where the last one was, however long
// it was away.
func TestScrubGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem := memJournal(t, 4, 4, 1)
		damaged := false
		edit(t, mem, "/j/00000000000000000024.seg", flipAt(segmentHeaderSize+frameHeaderSize+5)) // the last of four
		for range 4 {
			j, err := Open("/j", Options{Disk: mem, Scrub: 8 * time.Hour, OnFinding: func(f Finding) { damaged = damaged || f.Kind == recordlog.Damaged }})
			testkit.OK(t, err)
			time.Sleep(time.Hour)
			testkit.OK(t, j.Close())
			time.Sleep(9 * time.Hour)
		}
		if !damaged {
			t.Error("the last segment was never read")
		}
	})
}

// A process that ends while it reads a segment has not found it damaged.
func TestScrubEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem := disktest.NewMem()
		j, err := Open("/j", Options{Disk: mem, SegmentBytes: 3 << 20})
		testkit.OK(t, err)
		line := append(bytes.Repeat([]byte("x"), 500_000), '\n')
		for range 10 {
			mustAppend(t, j, Batch{Lines: line, Records: 1, MaxTime: 1})
		}
		testkit.OK(t, j.Close())
		read := false
		for after := time.Duration(0); !read; after += 50 * time.Millisecond {
			j, err := Open("/j", Options{Disk: mem, Scrub: time.Hour, OnFinding: func(f Finding) { t.Errorf("after %v: %v", after, f) }})
			testkit.OK(t, err)
			time.Sleep(after)
			synctest.Wait()
			read = j.Stats().ScrubbedSegments > 0
			testkit.OK(t, j.Close())
		}
	})
}

// A segment that cannot be opened because the process or the disk is at its limit is not
// damaged: it is read a minute later. An audit says so too.
func TestScrubExhausted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var fault atomic.Pointer[error]
		faulty := &disktest.Faulty{FS: memJournal(t, 4, 4, 1), Hook: func(op disktest.Op) disktest.Fault {
			if err := fault.Load(); err != nil && op.Kind == disktest.Open && strings.HasSuffix(op.Name, extSealed) {
				return disktest.Fault{Err: *err}
			}
			return disktest.Fault{}
		}}
		for _, err := range []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.ENOSPC} {
			j, openErr := Open("/j", Options{Disk: faulty, Scrub: time.Second, OnFinding: func(f Finding) { t.Errorf("%v: told %v", err, f) }})
			testkit.OK(t, openErr)
			time.Sleep(time.Minute)
			fault.Store(&err)
			time.Sleep(2 * time.Minute)
			synctest.Wait()
			n := j.Stats().ScrubbedSegments
			time.Sleep(10 * time.Minute)
			synctest.Wait()
			if st := j.Stats(); st.ScrubbedSegments != n || n == 0 || !errors.Is(st.LastError, err) {
				t.Errorf("%v: %d segments were read, and %d more; last error %v", err, n, st.ScrubbedSegments-n, st.LastError)
			}
			if _, auditErr := audit(faulty, "/j", AuditOptions{}); !errors.Is(auditErr, err) {
				t.Errorf("%v: the audit says %v", err, auditErr)
			}
			fault.Store(nil)
			time.Sleep(2 * time.Minute)
			synctest.Wait()
			if j.Stats().ScrubbedSegments == n {
				t.Errorf("%v: nothing was read afterwards", err)
			}
			testkit.OK(t, j.Close())
		}
	})
}

//go:build linux

package remote_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rollway/rollway/remote"
	"github.com/rollway/rollway/slab"
)

var toShop = remote.Journald{Identifier: "shop", Line: true}

func (p *journalPeer) lines() string {
	var all strings.Builder
	for _, e := range p.entries() {
		all.WriteString(journalLine(p.t, e))
	}
	return all.String()
}

// The daemon is replaced, as by an upgrade: another binds its socket's path. The
// Writer finds the new one, and behind a slab no line is lost.
func TestJournaldIsReplaced(t *testing.T) {
	t.Parallel()
	path := socketPath(t)
	before := listenJournal(t, path)
	before.start()
	w := open(t, before.url, remote.Options{Journald: toShop})
	out, err := slab.New(w, slab.Options{Full: slab.Block, FlushInterval: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	write(t, out, numbered(0, 100))
	if err := out.Sync(); err != nil {
		t.Fatalf("Sync = %v", err)
	}
	eventually(t, "the first has 100 lines", func() bool { return before.lines() == numbered(0, 100) })
	before.stop()
	write(t, out, numbered(100, 150)) // to nobody: they wait in the slab
	eventually(t, "an attempt has failed", func() bool { return w.Stats().Errors > 0 })
	after := listenJournal(t, path)
	after.start()
	write(t, out, numbered(150, 200))
	if err := out.Close(); err != nil {
		t.Errorf("Close = %v", err)
	}
	eventually(t, "the second has the rest", func() bool { return after.lines() == numbered(100, 200) })
	slabLedger(out).CheckSettled(t, 200, 200)
	settled(t, w, 200, 200)
	if s := w.Stats(); s.Connects != 2 || s.Dropped.Total() != 0 {
		t.Errorf("Stats = %+v", s)
	}
}

// A daemon that hangs: Write ends at its deadline, also with an entry that goes
// by a file, and hands back what the queue has no room for. A new daemon at the
// path gets it. What the old one has not read is not forgotten: Sync waits for
// it, and says that it is lost when the old one dies.
func TestJournaldHangsAndIsReplaced(t *testing.T) {
	t.Parallel()
	path := socketPath(t)
	hung := listenJournal(t, path)
	w := open(t, hung.url, remote.Options{Journald: toShop})
	w.SetAttempt(100 * time.Millisecond)
	all := numbered(0, 5000)
	n, returned := fill(t, w, all)
	held := strings.Count(all[:n], "\n")
	settled(t, w, held, held)
	large := `{"msg":"` + strings.Repeat("x", 2<<20) + "\"}\n"
	if n, err := w.Write([]byte(large)); n != 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("Write of a large entry to a full queue = %d, %v", n, err)
	}
	if s := w.Stats(); s.Connected || s.Returned != returned+1 {
		t.Errorf("Stats = %+v", s)
	}
	unread := func() {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		if err := w.SyncContext(ctx); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "has not read") {
			t.Fatalf("Sync = %v, but %d lines are in the queue of a daemon that hangs", err, held)
		}
	}
	unread()

	fresh := listenJournal(t, path)
	fresh.start()
	for rest := all[n:] + large; rest != ""; {
		n, _ := w.Write([]byte(rest)) // may be slower than the deadline
		rest = rest[n:]
	}
	eventually(t, "the new daemon has the rest", func() bool { return fresh.lines() == all[n:]+large })
	unread()
	hung.stop()
	if err := w.SyncContext(t.Context()); err == nil || !strings.Contains(err.Error(), "connections broke") {
		t.Errorf("Sync = %v, but what the old daemon had not read is lost", err)
	}
	if err := w.Close(); err != nil {
		t.Errorf("Close = %v, but the new daemon has all that is its own", err)
	}
	settled(t, w, 5001, 5001)
}

// The same daemon goes on: nothing is lost, and Sync returns nil when it has
// read everything, in order.
func TestJournaldHangsAndGoesOn(t *testing.T) {
	t.Parallel()
	p := listenJournal(t, socketPath(t))
	w := open(t, p.url, remote.Options{Journald: toShop})
	w.SetAttempt(100 * time.Millisecond)
	all := numbered(0, 5000)
	n, err := w.Write([]byte(all))
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("Write = %d, %v", n, err)
	}
	p.start()
	if err := w.SyncContext(t.Context()); err != nil {
		t.Errorf("Sync = %v", err)
	}
	for n < len(all) {
		m, _ := w.Write([]byte(all[n:])) // may be slower than the deadline again
		n += m
	}
	if err := w.Close(); err != nil {
		t.Errorf("Close = %v", err)
	}
	eventually(t, "all lines are there, once and in order", func() bool { return p.lines() == all })
	settled(t, w, 5000, 5000)
}

// Lines in the queue of a daemon that dies are lost, and a nil from Sync would
// be a lie: the system empties the queue then, too.
func TestSyncSaysThatALocalPeerDied(t *testing.T) {
	t.Parallel()
	for name, die := range map[string]func(path string, p *gramPeer){
		"and leaves its path":      func(_ string, p *gramPeer) { p.Close() },
		"and takes its path along": func(path string, p *gramPeer) { os.Remove(path); p.Close() },
		"and is replaced": func(path string, p *gramPeer) {
			p.Close()
			os.Remove(path)
			listenGram(p.t, "unixgram", path)
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := socketPath(t)
			peer := listenGram(t, "unixgram", path)
			var told told
			w := open(t, "unixgram://"+path, remote.Options{OnError: told.note})
			write(t, w, numbered(0, 5))
			die(path, peer)
			if err := w.SyncContext(t.Context()); err == nil || !strings.Contains(err.Error(), "broke, after 5 lines") {
				t.Errorf("Sync = %v, but nobody has read the lines", err)
			}
			w.Told()
			if text := told.text(); !strings.Contains(text, "after 5 lines") {
				t.Errorf("OnError was told %q", text)
			}
			if err := w.Close(); err != nil {
				t.Errorf("Close = %v, but it was said already", err)
			}
			settled(t, w, 5, 5)
		})
	}
}

// The journal refuses an entry of more than 1,024 fields. Of a line with more none
// is lost: the message is the line itself.
func TestJournaldManyFields(t *testing.T) {
	t.Parallel()
	for fields, whole := range map[int]bool{1000: false, 1001: true, 5000: true} {
		p := startJournalPeer(t)
		w := open(t, p.url, remote.Options{})
		line := []byte(`{"msg":"text","attrs":{`)
		for i := range fields {
			line = fmt.Appendf(line, `"k%d":%d,`, i, i)
		}
		line = append(line[:len(line)-1], "}}"...)
		write(t, w, string(line)+"\n")
		eventually(t, "the entry is there", func() bool { return len(p.entries()) == 1 })
		entry := p.entries()[0]
		if n := strings.Count(entry, "\n"); n > 1024 || !strings.Contains(entry, "\nK999=999\n") {
			t.Errorf("%d fields make an entry of %d", fields, n)
		}
		if want := "MESSAGE=text\n"; whole {
			want = "MESSAGE=" + string(line) + "\n"
			if !strings.Contains(entry, want) {
				t.Errorf("%d fields: the message is not the line", fields)
			}
		} else if !strings.Contains(entry, want) {
			t.Errorf("%d fields: the message is not msg", fields)
		}
		settled(t, w, 1, 1)
	}
}

// A process that has no descriptor for a large entry keeps it, and its socket: the
// peer has done nothing wrong.
func TestJournaldWithoutDescriptors(t *testing.T) {
	p := startJournalPeer(t)
	w := open(t, p.url, remote.Options{Journald: toShop})
	write(t, w, numbered(0, 3))
	large := `{"msg":"` + strings.Repeat("x", 2<<20) + "\"}\n"
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	none := limit
	none.Cur = 3
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &none); err != nil {
		t.Fatal(err)
	}
	n, err := w.Write([]byte(large))
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	if n != 0 || !errors.Is(err, syscall.EMFILE) {
		t.Errorf("Write = %d, %v", n, err)
	}
	if err := w.Sync(); err != nil {
		t.Errorf("Sync = %v, and the peer has read everything", err)
	}
	write(t, w, large)
	eventually(t, "all is there", func() bool { return p.lines() == numbered(0, 3)+large })
	settled(t, w, 4, 4)
	if s := w.Stats(); s.Connects != 1 {
		t.Errorf("Stats = %+v", s)
	}
}

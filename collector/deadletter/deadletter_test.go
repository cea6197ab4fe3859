package deadletter

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollway/rollway/collector/normalize"
	"github.com/rollway/rollway/collector/ulid"
	"github.com/rollway/rollway/internal/disk"
	"github.com/rollway/rollway/internal/disktest"
	"github.com/rollway/rollway/internal/testkit"
)

var start = time.Date(2026, 11, 21, 1, 2, 3, 4, time.UTC)

// rejected is a batch in which all events of body were rejected.
func rejected(t testing.TB, limit int, body string) *normalize.Batch {
	t.Helper()
	b := new(normalize.Batch)
	b.KeepDeadLetters(limit)
	normalize.New(normalize.Limits{MaxRejections: 1}).Body(b, []byte(body), time.Now()) // the error is in the batch
	if b.Records != 0 || b.RejectedTotal == 0 {
		t.Fatalf("%q: %d records", body, b.Records)
	}
	return b
}

func open(t testing.TB, dir string, o Options) *Store {
	t.Helper()
	o.MaxBytes = cmp.Or(o.MaxBytes, 1<<20)
	if o.OnError == nil {
		o.OnError = func(err error) { t.Error(err) }
	}
	s, err := Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func from(tenant string) Origin { return Origin{Receiver: "/api/logs", Tenant: tenant, Time: start} }

// settled waits until all is written, and returns the account, which must be exact.
func settled(t testing.TB, s *Store) Stats {
	t.Helper()
	for end := time.Now().Add(time.Minute); s.Stats().Pending > 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%+v", s.Stats())
		}
	}
	stats := s.Stats()
	check(t, stats)
	return stats
}

func check(t testing.TB, s Stats) {
	t.Helper()
	sum := s.Kept + s.Pending
	for _, n := range s.Dropped {
		sum += n
	}
	if s.Start+s.Rejected != sum {
		t.Errorf("the account does not add up: %+v", s)
	}
}

// entries are those of a folder, and the bytes of its files.
func entries(t testing.TB, fsys disk.FS, dir string) (all []Entry, size int64) {
	t.Helper()
	paths, err := Files(fsys, dir)
	testkit.OK(t, err)
	for _, path := range paths {
		testkit.OK(t, EachLine(fsys, path, 1<<40, func(line []byte, at Place) error {
			if size += int64(len(line)); !strings.HasSuffix(string(line), "\n") {
				return nil // not finished
			}
			var e Entry
			if err := json.Unmarshal(line, &e); err != nil {
				t.Errorf("%v: %.200q", err, line)
			}
			all = append(all, e)
			return nil
		}))
	}
	return all, size
}

func TestKeep(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "rejected")
	s := open(t, dir, Options{})
	s.Add(from("shop"), rejected(t, 1000, "{\"a\":}\n7\n7\n\"\xff\"\n"))
	s.Add(Origin{Receiver: "lines", Client: "192.0.2.7", Time: start}, rejected(t, 5, "\"longer\""))
	s.Add(Origin{Receiver: "lines", Time: start}, rejected(t, 0, "8"))
	s.Add(Origin{Receiver: "lines", Time: start}, new(normalize.Batch)) // nothing in it
	testkit.OK(t, s.Close())
	if got := settled(t, s); got.Kept != 5 || got.Rejected != 6 || got.Dropped[DroppedLimit] != 1 || got.Bytes == 0 {
		t.Errorf("%+v", got)
	}
	got := map[string]Entry{}
	list, _ := entries(t, disk.Real{}, dir)
	for i, e := range list {
		if len(e.ID) != ulid.Len || i > 0 && e.ID <= list[i-1].ID || !e.Time.Equal(start) || !e.Last.Equal(start) || e.Replayed {
			t.Errorf("%+v", e)
		}
		got[e.Event+e.Base64] = e
	}
	if l := got[`{"a":}`]; l.Reason != "syntax" || l.Detail == "" || l.Receiver != "/api/logs" || l.Tenant != "shop" || l.Client != "" || l.Cut || l.Count != 1 {
		t.Errorf("%+v", l)
	}
	if l := got["7"]; l.Reason != "not_object" || l.Detail != "" || l.Count != 2 {
		t.Errorf("%+v", l)
	}
	if _, has := got[base64.StdEncoding.EncodeToString([]byte("\"\xff\""))]; !has || len(list) != 4 {
		t.Errorf("%+v", list)
	}
	if l := got[`"long`]; !l.Cut || l.Tenant != "" || l.Client != "192.0.2.7" {
		t.Errorf("%+v", l)
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm()&0o027 != 0 {
		t.Errorf("%v %v", info.Mode(), err)
	}
}

// What an event came in is kept with it as far as there is room, and apart from
// the event; without an event of its own none is kept.
func TestContext(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, Options{})
	appends := func(text string) func([]byte) []byte {
		return func(dst []byte) []byte { return append(dst, text...) }
	}
	keep := func(limit int, withhold bool, context string, event string) {
		t.Helper()
		batch := new(normalize.Batch)
		batch.KeepDeadLetters(limit)
		batch.WithholdText(withhold)
		b := normalize.New(normalize.Limits{}).Build(batch, time.Now())
		b.Raw([]byte(event))
		b.Reject(normalize.ReasonSyntax, "broken")
		b.Context(len(context), appends(context))
		b.Raw(nil)
		b.Reject(normalize.ReasonSyntax, "nothing of it is there")
		b.Context(1, appends("x"))
		b.Done()
		s.Add(Origin{Receiver: "d", Time: time.Now()}, batch)
	}
	keep(100, false, "tag", "one")
	keep(100, false, "", "two")
	keep(100, false, "\xff", "three")
	keep(8, false, "tags", "4four")
	keep(1<<20, false, strings.Repeat("t", normalize.MaxContext+1), "five")
	keep(100<<10, true, "secret", "six")
	batch := new(normalize.Batch)
	batch.KeepDeadLetters(100)
	batch.AddBody(normalize.ReasonSyntax, "broken", []byte("all"))
	batch.Discard(false)
	s.Add(Origin{Receiver: "d", Time: time.Now()}, batch)
	testkit.OK(t, s.Close())
	got, _ := entries(t, disk.Real{}, dir)
	for i, want := range []struct {
		event, context string
		has, cut, more bool
	}{
		{"one", "tag", true, false, false}, {"two", "", true, false, false}, {"three", "\xff", true, false, false},
		{"4four", "", false, true, false}, {"five", "", false, true, false}, {"", "", false, false, true}, {"all", "", false, false, true},
	} {
		if i >= len(got) {
			t.Fatalf("%d dead letters", len(got))
		}
		l := got[i]
		text, err := l.Text()
		context, errContext := l.ContextBytes()
		if err != nil || errContext != nil || string(text) != want.event || string(context) != want.context || (context != nil) != want.has || l.ContextCut != want.cut || (l.Whole || l.Withheld) != want.more {
			t.Errorf("entry %d is %+v, want %+v", i, l, want)
		}
	}
}

// Events that are alike are one dead letter, from whatever requests, with their number and
// the times of the first and the last. Of another tenant, receiver, reason, event or
// context they are others.
func TestMerge(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, Options{})
	many := rejected(t, MaxBatch, strings.Repeat("1\n", 8192))
	for i := range 1000 {
		o := from("a")
		o.Time = start.Add(time.Duration(i) * time.Second)
		s.Add(o, many)
		if i%100 == 0 {
			settled(t, s) // some are merged when the first is written, others before
		}
	}
	stats := settled(t, s)
	list, size := entries(t, disk.Real{}, dir)
	if len(list) != 1 || list[0].Count != 8_192_000 || !list[0].Time.Equal(start) || !list[0].Last.Equal(start.Add(999*time.Second)) || stats.Kept != 8_192_000 || size > 300 {
		t.Errorf("%+v, %+v, %d bytes", list, stats, size)
	}
	other := from("a")
	other.Receiver = "/v1/logs"
	for _, o := range []Origin{from("b"), from(""), other, {Receiver: "/api/logs", Client: "a", Time: start}} {
		s.Add(o, many)
	}
	s.Add(from("a"), rejected(t, MaxBatch, "1 \n{\n2"))
	settled(t, s)
	if list, _ := entries(t, disk.Real{}, dir); len(list) != 7 {
		t.Errorf("%+v", list)
	}
	testkit.OK(t, s.Close())
	again := open(t, dir, Options{})
	if got := again.Stats(); got.Start != 8192*1004+3 || got.Kept != got.Start {
		t.Errorf("%+v", got)
	}
}

// A principal that rejects without end takes all the room that nobody else uses, and none
// that others use: not by many dead letters, not by large ones, not by many reasons.
func TestShares(t *testing.T) {
	dir := t.TempDir()
	const bound = 1 << 20
	s := open(t, dir, Options{MaxBytes: bound})
	s.Add(from("b"), rejected(t, MaxBatch, "7"))
	s.Add(from("a"), rejected(t, MaxBatch, "{a")) // another reason than those below
	flood := func(text func(i int) string, n int) Stats {
		t.Helper()
		for i := range n {
			s.Add(from("a"), rejected(t, MaxBatch, text(i)))
			if i%10 == 0 || n == 10 {
				settled(t, s)
			}
		}
		stats := settled(t, s)
		_, size := entries(t, disk.Real{}, dir)
		if size > bound || stats.Bytes > bound || stats.Bytes < bound/2 || stats.Dropped[DroppedQueue]+stats.Dropped[DroppedDisk] > 0 {
			t.Errorf("%d bytes in files, %+v", size, stats)
		}
		return stats
	}
	flood(func(i int) string {
		var lines strings.Builder
		for j := range 200 {
			fmt.Fprintf(&lines, "%d%03d\n", i, j)
		}
		return lines.String()
	}, 100)
	has := func(tenant, event string) bool {
		list, _ := entries(t, disk.Real{}, dir)
		for _, e := range list {
			if e.Tenant == tenant && e.Event == event {
				return true
			}
		}
		return false
	}
	if !has("b", "7") || !has("a", "{a") || has("a", "0000") || !has("a", "99199") {
		t.Error("b's dead letter, a's of another reason, or its newest is not there, or its oldest is")
	}
	stats := flood(func(i int) string { return fmt.Sprintf("%q", fmt.Sprint(i, strings.Repeat("x", 700_000))) }, 10)
	if !has("b", "7") || stats.Dropped[DroppedQuota] < 10_000 {
		t.Errorf("%+v", stats)
	}
	s.Add(from("a"), rejected(t, MaxBatch, "\""+strings.Repeat("\x7f\x01", 1<<19)+"\"")) // six times as long as JSON
	if stats := settled(t, s); !has("b", "7") {
		t.Errorf("%+v", stats)
	}
	// Many principals with little: each has the least that a file counts, and the newest stay.
	for i := range 400 {
		s.Add(Origin{Receiver: "tcp", Client: fmt.Sprint(i), Time: start}, rejected(t, MaxBatch, fmt.Sprint(i)))
		settled(t, s)
	}
	if stats := settled(t, s); stats.Bytes > bound || has("", "0") || !has("", "399") || !has("", "250") {
		t.Errorf("%+v", stats)
	}
	// One that is larger than all of the room takes nothing from anybody.
	before := s.Stats()
	s.Add(from("c"), rejected(t, MaxBatch, "\""+strings.Repeat("\x01", 1<<20-2)+"\""))
	if stats := settled(t, s); stats.Kept != before.Kept {
		t.Errorf("%+v, before %+v", stats, before)
	}
	if names, err := os.ReadDir(dir); err != nil || len(names) > bound/(4<<10) {
		t.Errorf("%d files, %v", len(names), err)
	}
}

// While the disk hangs Add does not wait. A principal that rejects without end takes no
// more of the queue than leaves room for others, and Close does not wait for ever.
func TestSlowDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hangs := make(chan struct{})
		var slow atomic.Bool
		mem := disktest.NewMem()
		s := open(t, "/d", Options{Disk: &disktest.Faulty{FS: mem, Hook: func(op disktest.Op) disktest.Fault {
			if op.Kind == disktest.Write && slow.Load() {
				<-hangs
			}
			return disktest.Fault{}
		}}})
		slow.Store(true)
		batch := rejected(t, MaxBatch, strings.Repeat(strings.Repeat("x", 10_000)+"\n{\n", 100))
		begin, n := time.Now(), uint64(0)
		for ; n < 100; n++ {
			s.Add(from("a"), batch)
		}
		stats := s.Stats()
		check(t, stats)
		if stats.Dropped[DroppedQueue] == 0 || stats.Pending == 0 || time.Since(begin) > 0 || s.held > maxHeld {
			t.Errorf("%+v, %d bytes, after %v", stats, s.held, time.Since(begin))
		}
		for _, tenant := range []string{"b", "c", "d"} {
			s.Add(from(tenant), rejected(t, MaxBatch, "7"))
		}
		if got := s.Stats(); got.Dropped[DroppedQueue] != stats.Dropped[DroppedQueue] {
			t.Errorf("others have no room: %+v", got)
		}
		if err := s.Close(); !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(begin) != closeTimeout {
			t.Errorf("%v after %v", err, time.Since(begin))
		}
		check(t, s.Stats())
		s.Add(from("a"), batch) // too late
		close(hangs)
		testkit.OK(t, s.Close())
		stats = settled(t, s)
		if list, _ := entries(t, mem, "/d"); len(list) != 5 || stats.Kept+stats.Dropped[DroppedQueue] != 101*200+3 {
			t.Errorf("%d dead letters, %+v", len(list), stats)
		}
	})
}

// What a disk does not take is dropped and counted, and what comes when it works again is
// kept; no line is torn.
func TestFullDisk(t *testing.T) {
	var fault atomic.Int32
	mem := disktest.NewMem()
	var told atomic.Int32
	o := Options{OnError: func(error) { told.Add(1) }, Disk: &disktest.Faulty{FS: mem, Hook: func(op disktest.Op) disktest.Fault {
		if op.Kind == disktest.Write && fault.Load() > 0 || op.Kind == disktest.Truncate && fault.Load() > 1 {
			return disktest.Fault{Err: syscall.ENOSPC, Short: 20}
		}
		return disktest.Fault{}
	}}}
	s := open(t, "/d", o)
	for i, f := range []int32{0, 1, 0, 2, 0} {
		fault.Store(f)
		s.Add(from("a"), rejected(t, MaxBatch, fmt.Sprint(i))) // a new one
		s.Add(from("a"), rejected(t, MaxBatch, "0"))           // a new count
		settled(t, s)
	}
	testkit.OK(t, s.Close())
	stats := settled(t, s)
	list, _ := entries(t, mem, "/d")
	counted := uint64(0)
	for _, e := range list {
		counted += e.Count
	}
	if stats.Dropped[DroppedDisk] != 4 || stats.Kept != 6 || counted != 6 || told.Load() == 0 {
		t.Errorf("%+v, %d events in %+v", stats, counted, list)
	}
	if got := open(t, "/d", o).Stats(); got.Start != 6 {
		t.Errorf("%+v", got)
	}
}

// A file that another program takes away, or changes, is not written on; what it had is
// counted as dropped, and what comes goes to another.
func TestFileTakenAway(t *testing.T) {
	for name, take := range map[string]func(path string) error{
		"removed": os.Remove,
		"cut":     func(path string) error { return os.Truncate(path, 5) },
		"a link": func(path string) error {
			return errors.Join(os.Rename(path, path+".away"), os.Symlink(path+".away", path))
		},
		"a FIFO": func(path string) error { return errors.Join(os.Remove(path), makeFIFO(path)) },
	} {
		dir := t.TempDir()
		var told atomic.Int32
		s := open(t, dir, Options{OnError: func(error) { told.Add(1) }})
		add := func(body string) Stats {
			s.Add(from("a"), rejected(t, MaxBatch, body))
			return settled(t, s)
		}
		takeLast := func() {
			paths, err := Files(disk.Real{}, dir)
			testkit.OK(t, err)
			testkit.OK(t, take(paths[len(paths)-1]))
		}
		add("1")
		takeLast()
		if got := add("2"); got.Dropped[DroppedDisk] != 1 || got.Kept != 1 || told.Load() != 1 {
			t.Errorf("%s: %+v, %d told", name, got, told.Load())
		}
		takeLast()
		if got := add("2"); got.Dropped[DroppedDisk] != 3 || got.Kept != 0 || told.Load() != 1 { // a count
			t.Errorf("%s: %+v, %d told", name, got, told.Load())
		}
		if got := add("3"); got.Kept != 1 || got.Dropped[DroppedDisk] != 3 {
			t.Errorf("%s: %+v, %d told", name, got, told.Load())
		}
	}
}

// A store that is opened again goes on: it counts what is there, cuts a line that was not
// finished, and neither follows links nor waits for FIFOs.
func TestReopen(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, Options{})
	s.Add(from("a"), rejected(t, MaxBatch, "1\n2\n2\n"))
	s.Add(from("a"), rejected(t, MaxBatch, "{"))
	testkit.OK(t, s.Close())
	paths, err := Files(disk.Real{}, dir)
	testkit.OK(t, err)
	f, err := os.OpenFile(paths[0], os.O_APPEND|os.O_WRONLY, 0)
	testkit.OK(t, err)
	_, err = f.WriteString(`{"id":"` + strings.Repeat("0", 200))
	testkit.OK(t, errors.Join(err, f.Close()))
	testkit.OK(t, makeFIFO(filepath.Join(dir, "f-0.syntax."+strings.Repeat("0", ulid.Len)+".ndjson")))
	target := filepath.Join(t.TempDir(), "target")
	testkit.OK(t, os.WriteFile(target, []byte("x"), 0o600))
	link := filepath.Join(dir, "x-0.syntax."+strings.Repeat("0", ulid.Len)+".ndjson")
	testkit.OK(t, os.Symlink(target, link))
	var told []string
	s = open(t, dir, Options{OnError: func(err error) { told = append(told, err.Error()) }})
	if got := s.Stats(); got.Start != 4 || len(told) != 3 || !strings.Contains(strings.Join(told, "\n"), "symbolic link") || !strings.Contains(strings.Join(told, "\n"), "207 bytes of an unfinished line are cut") {
		t.Errorf("%+v, %q", got, told)
	}
	s.Add(from("a"), rejected(t, MaxBatch, "3"))
	testkit.OK(t, s.Close())
	if again, err := Files(disk.Real{}, dir); err != nil || len(again) != 4 {
		t.Errorf("%q, %v: the file was not written on", again, err)
	}
	testkit.OK(t, os.Remove(link))
	testkit.OK(t, os.Remove(filepath.Join(dir, "f-0.syntax."+strings.Repeat("0", ulid.Len)+".ndjson")))
	if list, _ := entries(t, disk.Real{}, dir); len(list) != 4 {
		t.Errorf("%+v", list)
	}
	if text, err := os.ReadFile(target); err != nil || string(text) != "x" {
		t.Errorf("%q, %v", text, err)
	}
	// With a smaller bound the oldest go.
	s = open(t, dir, Options{})
	for i := range 200 {
		s.Add(from(fmt.Sprint(i)), rejected(t, MaxBatch, "7"))
	}
	testkit.OK(t, s.Close())
	for _, link := range []string{"link", "file"} {
		other := filepath.Join(t.TempDir(), link)
		if link == "link" {
			testkit.OK(t, os.Symlink(dir, other))
		} else {
			testkit.OK(t, os.WriteFile(other, nil, 0o600))
		}
		if _, err := Open(other, Options{MaxBytes: 1 << 20}); err == nil || !strings.Contains(err.Error(), "no folder") {
			t.Errorf("%s: %v", link, err)
		}
	}
	if _, err := Open(t.TempDir(), Options{MaxBytes: 1000}); err == nil || !strings.Contains(err.Error(), "1 MiB") {
		t.Errorf("a small bound: %v", err)
	}
}

func TestFind(t *testing.T) {
	s := open(t, t.TempDir(), Options{})
	at := func(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }
	add := func(tenant, receiver, body string, seconds int) {
		s.Add(Origin{Receiver: receiver, Tenant: tenant, Time: at(seconds)}, rejected(t, MaxBatch, body))
		settled(t, s)
	}
	add("a", "/api/logs", "10", 0)
	add("b", "/api/logs", "20", 1)
	add("a", "/_bulk", "{30", 2)
	add("", "/api/logs", "40", 3)
	add("a", "/api/logs", "\"\xff5\"", 4)
	add("a", "/api/logs", "10", 9) // again
	find := func(f Filter, last int) string {
		t.Helper()
		var got []string
		testkit.OK(t, s.Find(t.Context(), f, last, func(e *Entry) error {
			text, err := e.Text()
			got = append(got, strings.NewReplacer("{", "", "\"", "", "\xff", "").Replace(string(text)))
			return err
		}))
		return strings.Join(got, " ")
	}
	a, none := "a", ""
	for _, tt := range []struct {
		filter Filter
		last   int
		want   string
	}{
		{Filter{}, 100, "10 20 30 40 5"}, {Filter{}, 2, "40 5"}, {Filter{}, 0, "10 5 20 30 40"},
		{Filter{Tenant: &a}, 9, "10 30 5"}, {Filter{Tenant: &none}, 9, "40"}, {Filter{Tenant: &a}, 1, "5"},
		{Filter{Reason: "syntax"}, 9, "30"}, {Filter{Receiver: "/_bulk"}, 9, "30"}, {Filter{Reason: "nonsense"}, 9, ""},
		{Filter{Text: "20"}, 9, "20"}, {Filter{Text: "\xff"}, 9, "5"}, {Filter{Text: "line 1, column"}, 9, "30"},
		{Filter{Since: at(3)}, 9, "10 40 5"}, {Filter{Until: at(3)}, 9, "10 20 30"}, {Filter{Since: at(10)}, 9, ""},
	} {
		if got := find(tt.filter, tt.last); got != tt.want {
			t.Errorf("%+v, last %d: %s, want %s", tt.filter, tt.last, got, tt.want)
		}
	}
	stop := errors.New("stop")
	if err := s.Find(t.Context(), Filter{}, 9, func(*Entry) error { return stop }); !errors.Is(err, stop) {
		t.Error(err)
	}
}

// A dead letter that is marked stays, and events like it become a new one; a tenant marks
// its own only.
func TestMark(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, Options{})
	for _, tenant := range []string{"a", "b"} {
		s.Add(from(tenant), rejected(t, MaxBatch, "1\n2\n"))
	}
	settled(t, s)
	var ids []string
	testkit.OK(t, s.Find(t.Context(), Filter{Text: "1"}, 9, func(e *Entry) error { ids = append(ids, e.ID); return nil }))
	a := "a"
	if n, err := s.Mark(Filter{Tenant: &a}, append(ids, "nonsense")); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	for _, tenant := range []string{"a", "b"} {
		s.Add(from(tenant), rejected(t, MaxBatch, "1"))
	}
	testkit.OK(t, s.Close())
	list, _ := entries(t, disk.Real{}, dir)
	marked, b := 0, 0
	for _, e := range list {
		if e.Replayed {
			marked++
			if e.Tenant != "a" || e.Event != "1" || e.Count != 1 {
				t.Errorf("%+v", e)
			}
		}
		if e.Tenant == "b" && e.Count == 2 {
			b++
		}
	}
	if len(list) != 5 || marked != 1 || b != 1 {
		t.Errorf("%+v", list)
	}
	copied := filepath.Join(t.TempDir(), "copy")
	testkit.OK(t, os.WriteFile(copied, []byte("{}\n"), 0o600))
	if err := Mark(disk.Real{}, Place{File: copied}); err == nil {
		t.Error("something else was marked")
	}
}

// Names of files have what can be read of a principal, are short, and are never those of
// another one.
func TestNames(t *testing.T) {
	seen := map[string]string{}
	for _, p := range []string{"", "shop", "Shop", "\x00shop", "../../etc", "a.b", "a/b", "a\\b", "é", strings.Repeat("long", 100), "\x00.token", "\x002001:db8::/64", "con"} {
		name := nameOf(p)
		if other, has := seen[name]; has || len(name) > 53 || strings.ContainsAny(name, "./\\:\x00 ") {
			t.Errorf("%q is called %q, as %q", p, name, other)
		}
		seen[name] = p
	}
}

// Many add at once, while others read and mark.
func TestConcurrently(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, Options{})
	var wg sync.WaitGroup
	for p := range 4 {
		wg.Go(func() {
			for i := range 100 {
				s.Add(from(fmt.Sprint(p)), rejected(t, 1<<20, fmt.Sprintf("%q\n7\n", fmt.Sprintf("%d-%s", i, strings.Repeat("x", 5000)))))
				check(t, s.Stats())
			}
		})
		wg.Go(func() {
			for range 10 {
				var ids []string
				if err := s.Find(t.Context(), Filter{}, 5*(p%2), func(e *Entry) error { ids = append(ids, e.ID); return nil }); err != nil {
					t.Error(err)
				}
				if _, err := s.Mark(Filter{}, ids); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	testkit.OK(t, s.Close())
	if stats := settled(t, s); stats.Rejected != 800 || stats.Dropped[DroppedDisk] > 0 {
		t.Errorf("%+v", stats)
	}
	got, size := entries(t, disk.Real{}, dir)
	counted := uint64(0)
	for _, e := range got {
		counted += e.Count
	}
	if kept := s.Stats().Kept; counted != kept || size > 1<<20 {
		t.Errorf("%d events in files of %d bytes, %d are kept", counted, size, kept)
	}
}

// Who rejects without end has the disk busy for a quarter of the time, and what others
// reject meanwhile is kept.
func TestRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		busy := time.Duration(0) // owned by the goroutine that writes, which has ended when it is read
		s := open(t, "/d", Options{MaxBytes: 64 << 20, Disk: &disktest.Faulty{FS: disktest.NewMem(), Hook: func(op disktest.Op) disktest.Fault {
			if op.Kind == disktest.Write {
				time.Sleep(10 * time.Millisecond)
				busy += 10 * time.Millisecond
			}
			return disktest.Fault{}
		}}})
		const length = 20 * time.Second
		for i := range int(length / time.Millisecond) {
			s.Add(from("a"), rejected(t, MaxBatch, fmt.Sprintf("%q", fmt.Sprint(i, strings.Repeat("x", 10_000)))))
			if i%1000 == 0 {
				s.Add(from("b"), rejected(t, MaxBatch, fmt.Sprint(i)))
			}
			time.Sleep(time.Millisecond)
		}
		testkit.OK(t, s.Close())
		stats := settled(t, s)
		if busy > length*3/10 || busy < length/5 || stats.Dropped[DroppedQueue] == 0 {
			t.Errorf("%v of %v, %+v", busy, length, stats)
		}
		n := 0
		testkit.OK(t, s.Find(t.Context(), Filter{Tenant: new("b")}, 0, func(*Entry) error { n++; return nil }))
		if n != 20 {
			t.Errorf("%d dead letters of 20", n)
		}
	})
}

// Files of another user are left alone.
func TestFilesOfOthers(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Log("only root can make files of others")
		return
	}
	dir := t.TempDir()
	s := open(t, dir, Options{})
	s.Add(from("a"), rejected(t, MaxBatch, "1\n"))
	testkit.OK(t, s.Close())
	paths, err := Files(disk.Real{}, dir)
	testkit.OK(t, err)
	testkit.OK(t, os.Chown(paths[0], 12345, 12345))
	var told error
	s = open(t, dir, Options{OnError: func(err error) { told = err }})
	if got := s.Stats(); got.Start != 0 || !errors.Is(told, disk.ErrOwner) {
		t.Errorf("%+v, %v", got, told)
	}
	testkit.OK(t, s.Close())
}

// A line that no Store has written is not read into memory however long it is, and those
// around it are found.
func TestLongLine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.b."+strings.Repeat("0", ulid.Len)+ext)
	testkit.OK(t, os.WriteFile(path, []byte("first\n"+strings.Repeat("x", maxLine+5)+"\nlast"), 0o640))
	type found struct {
		text string
		len  int
		Place
	}
	want := []found{
		{"first\n", 6, Place{path, 0, 6}},
		{"xxxxx", maxLine, Place{path, 6, maxLine + 6}},
		{"last", 4, Place{path, maxLine + 12, 4}},
	}
	var got []found
	testkit.OK(t, EachLine(disk.Real{}, path, math.MaxInt64, func(line []byte, at Place) error {
		got = append(got, found{string(line[:min(len(line), len(want[len(got)].text))]), len(line), at})
		return nil
	}))
	if !slices.Equal(got, want) {
		t.Errorf("lines %v, want %v", got, want)
	}
}

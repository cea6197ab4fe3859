package chaos

import (
	"bytes"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/rollway/rollway/bench/internal/child"
	"github.com/rollway/rollway/collector/journal"
	"github.com/rollway/rollway/internal/recordlog"
	"github.com/rollway/rollway/internal/smalldisk"
	"github.com/rollway/rollway/internal/testkit"
)

// redteamScene is a collector with small segments that are packed and deleted, a sink, whose
// cursor is saved, and clients, one of them with events that are rejected: all that the data folder
// is written for goes on at the same time.
func redteamScene(t *testing.T, dir, name string) *scene {
	t.Helper()
	programs := t.TempDir()
	program, err := child.BuildRollway(programs)
	testkit.OK(t, err)
	addr, err := testkit.FreeAddr()
	testkit.OK(t, err)
	kafka, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, kafkaTopic))
	testkit.OK(t, err)
	t.Cleanup(kafka.Close)
	forget(kafka)
	s := newScene(name, program, dir, addr)
	s.view.retained = true
	s.config = fmt.Sprintf(`journal: {segment_size: 1MiB, retain_size: 4MiB, max_keys: 20000}
rejected: {keep_size: 16MiB}
kafka: {brokers: %q, topic: %q, max_age: 10ms}
timeouts: {linger: 10ms}
`, strings.Join(kafka.ListenAddrs(), " "), kafkaTopic)
	t.Cleanup(s.kill)
	return s
}

// forget has the cluster acknowledge records without keeping them in memory.
func forget(kafka *kfake.Cluster) {
	next := int64(0)
	kafka.ControlKey(kmsg.Produce.Int16(), func(req kmsg.Request) (kmsg.Response, error, bool) {
		kafka.KeepControl()
		produce := req.(*kmsg.ProduceRequest)
		resp := produce.ResponseKind().(*kmsg.ProduceResponse)
		for _, topic := range produce.Topics {
			t := kmsg.NewProduceResponseTopic()
			t.Topic, t.TopicID = topic.Topic, topic.TopicID
			for _, partition := range topic.Partitions {
				p := kmsg.NewProduceResponseTopicPartition()
				p.Partition, p.BaseOffset = partition.Partition, next
				next += 1000
				t.Partitions = append(t.Partitions, p)
			}
			resp.Topics = append(resp.Topics, t)
		}
		return resp, nil, true
	})
}

// reject sends what is rejected until the scene ends.
func (s *scene) reject() {
	s.load.clients.Go(func() {
		for n := 0; ; n++ {
			select {
			case <-s.load.ending:
				return
			case <-time.After(2 * time.Millisecond):
			}
			s.load.sending.RLock()
			resp, err := s.load.client.Post("http://"+s.addr+"/api/logs", "", bytes.NewReader(fmt.Appendf(nil, "junk %d %s", n, strings.Repeat("x", 500))))
			if err == nil {
				resp.Body.Close()
			}
			s.load.sending.RUnlock()
		}
	})
}

// report adds the scene to the table, and then fails the test if something is wrong.
func (s *scene) report(t *testing.T, attack, notes string) {
	t.Helper()
	for _, r := range s.account.snapshot() {
		if r.acked {
			s.try.Requests++
		}
	}
	testkit.Attack{
		Attack: attack, Times: s.try.Rounds, Promised: "no acknowledged event lost, twice, torn or moved; counts and journal agree",
		Measured: fmt.Sprintf("%s; %d requests acknowledged, %d lost, %d twice, %d otherwise wrong, %d of %d reconciliations disagree",
			notes, s.try.Requests, s.try.Lost, s.try.Twice, s.try.Wrong()-s.try.Lost-s.try.Twice-s.try.Disagreed, s.try.Disagreed, s.try.Reconciled),
	}.Report(t)
	if s.try.Wrong() > 0 || s.try.Rounds == 0 || s.try.Requests == 0 || s.try.Lookups == 0 {
		t.Errorf("%+v", *s.try)
	}
}

// killCalls are the system calls at which the collector is killed, in turns.
var killCalls = []string{"rename,renameat,renameat2", "unlink,unlinkat", "fsync", "ftruncate", "openat", "fdatasync", "pwrite64", "rename,renameat,renameat2"}

// phases tell by a path what a system call is a part of.
var phases = []struct {
	name string
	path *regexp.Regexp
}{
	{"cursor", regexp.MustCompile(`/cursors`)}, {"manifest", regexp.MustCompile(`/MANIFEST`)}, {"pack", regexp.MustCompile(`\.pack\b`)},
	{"retention", regexp.MustCompile(`unlink(at)?\(.*\.(seg|open)\b`)}, {"seal", regexp.MustCompile(`rename.*\.seg\b`)}, {"keys", regexp.MustCompile(`\.keys?\b`)},
	{"dead letters", regexp.MustCompile(`/rejected`)}, {"identity", regexp.MustCompile(`/ID\b|/LOCK\b`)}, {"ledger", regexp.MustCompile(`ledger\.json`)},
	{"segment", regexp.MustCompile(`\.(seg|open)\b`)}, {"folder", regexp.MustCompile(`/journal>?"?`)},
}

// phaseOf reads from a trace at which call its process was killed.
func phaseOf(trace []byte) string {
	last := ""
	for line := range strings.Lines(string(trace)) {
		if strings.Contains(line, "+++ killed by") {
			break
		}
		if strings.Contains(line, "(") && !strings.Contains(line, "resumed>") {
			last = line
		}
	}
	for _, p := range phases {
		if p.path.MatchString(last) {
			return p.name
		}
	}
	return "start"
}

// TestRedteamKillPoints kills the collector at a system call: at the first of a kind since its
// start, and at the next one after a moment under load, in which it seals, packs and deletes
// segments, and saves the manifest, cursors, keys and dead letters.
func TestRedteamKillPoints(t *testing.T) {
	testkit.Strace(t)
	rounds := testkit.Rounds(t, testkit.Redteam, 6, 120)
	s := redteamScene(t, t.TempDir(), "points")
	s.trace = filepath.Join(t.TempDir(), "trace")
	s.load.begin(6, 0)
	s.reject()
	hits := map[string]int{}
	for n := range rounds {
		calls := killCalls[n%len(killCalls)]
		spec := calls + ":signal=KILL:when=1"
		testkit.OK(t, os.RemoveAll(s.trace))
		if n%6 == 5 {
			s.wrap = []string{"strace", "-f", "--seccomp-bpf", "-qq", "-y", "-o", s.trace, "-e", "trace=" + calls, "-e", "inject=" + spec}
			if err := s.start(); err == nil {
				s.await(3 * time.Second)
			}
			s.killTraced()
			s.wrap = nil
		} else {
			testkit.OK(t, s.start())
			time.Sleep(time.Duration(50+s.rng.IntN(600)) * time.Millisecond)
			detach, err := s.inject(calls, spec)
			testkit.OK(t, err)
			s.await(3 * time.Second)
			s.kill()
			testkit.OK(t, detach())
		}
		text, err := os.ReadFile(s.trace)
		testkit.OK(t, err)
		if bytes.Contains(text, []byte("+++ killed by SIGKILL")) {
			s.try.Rounds++
			hits[phaseOf(text)]++
		}
		testkit.OK(t, s.check(false))
	}
	s.wrap = nil
	testkit.OK(t, s.start())
	testkit.OK(t, s.end())
	var notes []string
	for _, phase := range slices.SortedFunc(maps.Keys(hits), func(a, b string) int { return hits[b] - hits[a] }) {
		notes = append(notes, fmt.Sprintf("%s %d", phase, hits[phase]))
	}
	s.report(t, "kill -9 at a system call", strings.Join(notes, ", "))
	if len(hits) < 3 || s.try.Rounds < rounds/2 {
		t.Errorf("%d of %d kills met %v", s.try.Rounds, rounds, hits)
	}
}

// tenantsScene is a redteamScene whose load is of tenant kept, and that has another load, of
// tenant brief, whose lines the journal deletes soon.
func tenantsScene(t *testing.T, name string, journal string) (s *scene, brief *load) {
	t.Helper()
	dir := t.TempDir()
	s = redteamScene(t, dir, name)
	tokens := filepath.Join(dir, "tokens.yaml")
	testkit.OK(t, os.WriteFile(tokens, []byte(`- {name: all, secret: 0123456789abcdef0, may: [read, write]}
- {name: kept, secret: 0123456789abcdef1, tenant: kept}
- {name: brief, secret: 0123456789abcdef2, tenant: brief}
`), 0o600))
	t.Setenv("ROLLWAY_TOKEN", "0123456789abcdef0")
	s.config = strings.ReplaceAll(s.config, "retain_size: 4MiB", "tenants: {brief: {retain_size: 1MiB}}"+journal) + fmt.Sprintf("access: {tokens: %q}\n", tokens)
	brief = newLoad(s.addr, "brief", &account{}, &Try{})
	s.load.token, brief.token = "0123456789abcdef1", "0123456789abcdef2"
	s.view = view{tenant: "kept"}
	return s, brief
}

// checkBrief checks what the journal has of tenant brief, after check: each line that is gone
// is one that the journal says it has deleted, and no offset is that of two lines.
func (s *scene) checkBrief(t *testing.T, brief *load, answered bool) {
	t.Helper()
	brief.count(func(try *Try) {
		testkit.OK(t, lookUp(try, s.journal(), brief.account.snapshot(), answered, view{tenant: "brief", dropped: true}))
	})
	rep, err := journal.Audit(s.journal(), journal.AuditOptions{})
	testkit.OK(t, err)
	if damage := rep.Damage(0); len(damage) > 0 || len(rep.Missing) > 0 || uint64(rep.Records)+rep.Deleted != rep.Next-rep.First {
		t.Fatalf("%d records and %d deleted ones from %d to %d, missing %v, damage %v", rep.Records, rep.Deleted, rep.First, rep.Next, rep.Missing, damage)
	}
	given := make(map[uint64]int)
	for i, account := range []*account{s.account, brief.account} {
		for number, r := range account.snapshot() {
			for offset := r.first; r.acked && offset < r.first+uint64(events(number)); offset++ {
				if of, twice := given[offset]; twice {
					t.Fatalf("offset %d was given twice, to requests %d and %d of tenant %d", offset, of, number, i)
				}
				given[offset] = number
			}
		}
	}
}

// endBrief ends both loads and checks all that there is.
func (s *scene) endBrief(t *testing.T, brief *load) {
	t.Helper()
	testkit.OK(t, brief.drain())
	testkit.OK(t, s.end())
	s.checkBrief(t, brief, true)
	s.try.Requests += brief.account.acked()
	for _, n := range []struct{ to, from *int }{{&s.try.Lost, &brief.try.Lost}, {&s.try.Twice, &brief.try.Twice}, {&s.try.Alien, &brief.try.Alien}, {&s.try.Misplace, &brief.try.Misplace}, {&s.try.Changed, &brief.try.Changed}, {&s.try.Dropped, &brief.try.Dropped}} {
		*n.to += *n.from
	}
}

// dropping reports whether a packed segment is being written again without some blocks.
func (s *scene) dropping() bool {
	files, _ := filepath.Glob(filepath.Join(s.journal(), "*.pack"))
	for _, path := range files {
		path = strings.TrimSuffix(path, ".pack") + ".seg"
		f, err := os.Open(path)
		if err != nil {
			continue
		}
		h, err := recordlog.ReadHeader(f, recordlog.JournalSegment, path)
		if f.Close(); err == nil && h.Flags != 0 {
			return true
		}
	}
	return false
}

// TestRedteamKillTenants kills the collector while it deletes the lines of one tenant from
// segments that have lines of others too.
func TestRedteamKillTenants(t *testing.T) {
	rounds := testkit.Rounds(t, testkit.Redteam, 3, 60)
	s, brief := tenantsScene(t, "tenants", "")
	testkit.OK(t, s.start())
	s.load.begin(2, 5*time.Millisecond)
	brief.begin(4, 0)
	hits := 0
	for n := range rounds {
		for begin := time.Now(); !s.dropping() && time.Since(begin) < 10*time.Second; {
			time.Sleep(time.Millisecond)
		}
		time.Sleep(time.Duration(s.rng.IntN(1+n%2*20)) * time.Millisecond)
		s.kill()
		s.try.Rounds++
		if s.dropping() {
			hits++
		}
		testkit.OK(t, s.check(false))
		s.checkBrief(t, brief, false)
		testkit.OK(t, s.start())
		testkit.OK(t, s.more(5))
	}
	s.endBrief(t, brief)
	s.report(t, "kill -9 while the lines of one tenant are deleted", fmt.Sprintf("%d in the middle of a segment; %d lines found deleted, each said to be", hits, s.try.Dropped))
	if hits < rounds/4 || s.try.Dropped == 0 {
		t.Errorf("%d of %d kills were in the middle of a segment, %d lines are deleted", hits, rounds, s.try.Dropped)
	}
}

// scrubbing reports whether the collector has a sealed segment open to read it. Without a sink
// nothing else does that for long.
func (s *scene) scrubbing() bool {
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", s.Pid()))
	for _, file := range files {
		if path, _ := os.Readlink(file); !strings.HasSuffix(path, ".seg") {
			continue
		}
		info, _ := os.ReadFile(strings.Replace(file, "/fd/", "/fdinfo/", 1))
		_, flags, _ := strings.Cut(string(info), "flags:")
		if flags, _, _ = strings.Cut(flags, "\n"); strings.HasSuffix(flags, "0") { // O_RDONLY
			return true
		}
	}
	return false
}

// fill stores about size bytes of lines without a tenant.
func (s *scene) fill(t *testing.T, size int) {
	t.Helper()
	l := newLoad(s.addr, "fill", s.account, s.try)
	for l.token = "0123456789abcdef0"; size > 0; {
		var b []byte
		for number := 0; len(b) < 1<<20; number += 61 {
			b = append(message(append(b, `{"msg":"`...), size+number, 0), "\"}\n"...)
		}
		size -= len(b)
		req, err := http.NewRequest("POST", "http://"+s.addr+"/api/logs", bytes.NewReader(b))
		testkit.OK(t, err)
		req.Header.Set("Authorization", "Bearer "+l.token)
		resp, err := l.client.Do(req)
		testkit.OK(t, err)
		if resp.Body.Close(); resp.StatusCode != 200 {
			t.Fatal(resp.Status)
		}
	}
}

// stopScrubbing stops the collector after delay and reports whether it has a sealed segment open
// to read it. If not, the collector goes on.
func (s *scene) stopScrubbing(t *testing.T, delay time.Duration) bool {
	time.Sleep(delay)
	testkit.OK(t, syscall.Kill(s.Pid(), syscall.SIGSTOP))
	for stopped := false; !stopped; {
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.Pid()))
		testkit.OK(t, err)
		stopped = bytes.Contains(status, []byte("\nState:\tT"))
	}
	if s.scrubbing() {
		return true
	}
	testkit.OK(t, syscall.Kill(s.Pid(), syscall.SIGCONT))
	return false
}

// TestRedteamKillScrub kills the collector while it reads a sealed segment again.
func TestRedteamKillScrub(t *testing.T) {
	rounds := testkit.Rounds(t, testkit.Redteam, 1, 40)
	s, brief := tenantsScene(t, "scrub", ", scrub: 1m")
	s.config = regexp.MustCompile("(?m)^kafka:.*$").ReplaceAllString(s.config, "")
	testkit.OK(t, s.start())
	s.fill(t, testkit.Rounds(t, testkit.Redteam, 12, 32)<<20)
	testkit.OK(t, s.restart()) // else the first segment is read when the round of the empty journal ends, in a minute
	s.load.begin(1, 5*time.Millisecond)
	brief.begin(1, 5*time.Millisecond)
	for n := range rounds {
		testkit.OK(t, s.more(5))
		stopped := func() bool {
			return s.scrubbing() && s.stopScrubbing(t, time.Duration(s.rng.IntN(1+n%2*100))*time.Millisecond)
		}
		testkit.OK(t, await("a stop while a segment is read again", s.account.acked, stopped))
		s.try.Rounds++
		s.kill()
		testkit.OK(t, s.check(false))
		s.checkBrief(t, brief, false)
		testkit.OK(t, s.start())
	}
	s.endBrief(t, brief)
	s.report(t, "kill -9 while a sealed segment is read again", "each in a read")
}

// killTraced kills the collector, and not strace, which would leave it alive.
func (s *scene) killTraced() {
	if s.Process == nil {
		return
	}
	children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", s.Pid()))
	for _, child := range strings.Fields(string(children)) {
		if pid, err := strconv.Atoi(child); err == nil {
			syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	if err != nil || len(children) == 0 {
		s.kill()
	}
	s.Wait()
}

// await waits until the collector has ended, or for d.
func (s *scene) await(d time.Duration) {
	ended := make(chan struct{})
	go func() {
		s.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-time.After(d):
	}
}

// TestRedteamDiskFull fills the disk at many sizes, so that each kind of write meets its end,
// and makes room again; every third time the collector is killed while the disk is full.
func TestRedteamDiskFull(t *testing.T) {
	dir := smalldisk.Mount(t, "size=12m")
	if dir == "" {
		return
	}
	rounds := testkit.Rounds(t, testkit.Redteam, 4, 48)
	s := redteamScene(t, dir, "full")
	testkit.OK(t, s.start())
	s.load.begin(6, 0)
	s.reject()
	ballast := filepath.Join(dir, "ballast")
	for n := range rounds {
		before := s.refused()
		testkit.OK(t, await("a full disk", func() int { return s.refused() + s.account.acked() }, func() bool {
			fill(t, ballast, dir, int64(n%24)*16<<10)
			return s.refused() > before+60
		}))
		s.try.Rounds++
		if n%3 == 2 {
			testkit.OK(t, s.restart())
		}
		if err := os.Remove(ballast); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		testkit.OK(t, s.more(30))
		testkit.OK(t, s.reconcile(true))
	}
	testkit.OK(t, s.end())
	s.report(t, "a disk that is full, at other sizes each time", fmt.Sprintf("%d requests refused", s.try.Refused))
}

// fill appends to a file until free bytes are left in its file system.
func fill(t *testing.T, path, dir string, free int64) {
	var st syscall.Statfs_t
	testkit.OK(t, syscall.Statfs(dir, &st))
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return // the disk is full
	}
	defer f.Close()
	f.Write(make([]byte, max(0, int64(st.Bavail)*st.Bsize-free))) // what fits
}

// TestRedteamNoSpace has each kind of system call that needs room fail with ENOSPC for a while.
func TestRedteamNoSpace(t *testing.T) {
	testkit.Strace(t)
	rounds := testkit.Rounds(t, testkit.Redteam, 4, 21)
	s := redteamScene(t, t.TempDir(), "nospace")
	testkit.OK(t, s.start())
	s.load.begin(6, time.Millisecond)
	s.reject()
	// Not write: the Go runtime wakes itself by it, and ends the process if that fails.
	specs := []string{
		"openat:error=ENOSPC:when=2+3", "pwrite64:error=ENOSPC:when=2+2", "rename,renameat,renameat2:error=ENOSPC", "ftruncate,fallocate:error=ENOSPC",
		"fsync:error=ENOSPC", "fdatasync:error=ENOSPC:when=2+2", "mkdir,mkdirat,unlink,unlinkat:error=ENOSPC",
	}
	for n := range rounds {
		testkit.OK(t, s.more(30))
		calls, _, _ := strings.Cut(specs[n%len(specs)], ":")
		end, err := s.inject(calls, specs[n%len(specs)])
		testkit.OK(t, err)
		time.Sleep(700 * time.Millisecond)
		s.try.Rounds++
		testkit.OK(t, end())
		testkit.OK(t, s.stop(true))
		testkit.OK(t, s.check(false))
		testkit.OK(t, s.start())
	}
	testkit.OK(t, s.end())
	s.report(t, "ENOSPC of one system call after the other", fmt.Sprintf("%d requests refused", s.try.Refused))
}

// TestRedteamClock sets the clock forth and back under retention by age, keys, and a token
// with a rate: nothing younger than retain_age by any clock is deleted, no request is stored
// twice, no token is locked out, and kept connections stay.
func TestRedteamClock(t *testing.T) {
	testkit.Program(t, "go")
	rounds := testkit.Rounds(t, testkit.Redteam, 4, 20)
	dir := t.TempDir()
	s := redteamScene(t, dir, "clock")
	program, err := buildWithClock(t.TempDir())
	testkit.OK(t, err)
	s.program = program
	file, tokens := filepath.Join(dir, "clock"), filepath.Join(dir, "tokens.yaml")
	set := func(d time.Duration) { testkit.OK(t, os.WriteFile(file, fmt.Append(nil, int64(d.Seconds())), 0o600)) }
	set(0)
	testkit.OK(t, os.WriteFile(tokens, []byte("- {name: all, secret: 0123456789abcdef0, may: [read, write]}\n- {name: slow, secret: 0123456789abcdef1, events_per_second: 100}\n"), 0o600))
	s.env = []string{clockEnv + "=" + file, "ROLLWAY_TOKEN=0123456789abcdef0"}
	t.Setenv("ROLLWAY_TOKEN", "0123456789abcdef0")
	s.load.token, s.view = "0123456789abcdef0", view{}
	s.config = strings.ReplaceAll(s.config, "retain_size: 4MiB", "retain_age: 12d, key_age: 30d") + fmt.Sprintf("access: {tokens: %q}\n", tokens)
	testkit.OK(t, s.start())
	s.load.begin(4, time.Millisecond)
	const day = 24 * time.Hour
	jumps := []time.Duration{25 * time.Hour, -25 * time.Hour, 5 * day, -5 * day, time.Hour, -time.Hour, 5 * time.Second, -5 * time.Second, 0}
	late, kept := 0, &http.Client{Transport: &http.Transport{MaxConnsPerHost: 1}, Timeout: 30 * time.Second}
	for n := range rounds {
		set(jumps[n%len(jumps)])
		testkit.OK(t, s.more(60))
		s.try.Rounds++
		// One event of a token that may send 100 a second has to pass within a second or so.
		for begin := time.Now(); !s.passes(kept, "0123456789abcdef1"); time.Sleep(50 * time.Millisecond) {
			if time.Since(begin) > 5*time.Second {
				t.Errorf("after the clock was set to %v, a token within its rate is refused for %v", jumps[n%len(jumps)], time.Since(begin))
				late++
				break
			}
		}
		if n%4 == 3 {
			testkit.OK(t, s.restart())
		} else {
			testkit.OK(t, s.reconcile(true))
		}
	}
	testkit.OK(t, s.end())
	s.report(t, "the wall clock is set forth and back by days", fmt.Sprintf("%d tokens locked out", late))
}

// passes reports whether an event of a token is looked at: it is refused for what it is, and
// not for its token's rate.
func (s *scene) passes(c *http.Client, token string) bool {
	req, err := http.NewRequest("POST", "http://"+s.addr+"/api/logs", strings.NewReader("junk"))
	if err != nil {
		return false
	}
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := c.Do(req)
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	return resp.StatusCode == 400
}

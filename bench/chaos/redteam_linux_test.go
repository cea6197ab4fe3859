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
	s.retained = true
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
	s.load.token, s.retained = "0123456789abcdef0", false
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

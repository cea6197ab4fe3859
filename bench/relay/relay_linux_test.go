package relay

import (
	"io"
	"maps"
	"math"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rollway/rollway/bench/internal/measure"
	"github.com/rollway/rollway/internal/testkit"
)

func TestMain(m *testing.M) {
	Main()
	os.Setenv("GORACE", "atexit_sleep_ms=0") // a child that the race detector watches would take a second to end
	os.Exit(m.Run())
}

func testRig(t *testing.T) *rig {
	t.Helper()
	r, err := newRig(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	r.settle = time.Millisecond
	t.Cleanup(func() {
		if err := r.upstream.stop(); err != nil {
			t.Error(err)
		}
	})
	return r
}

// TestContenders sends bytes through every relay that this machine has, checks
// that it passes the end of an upload on, and looks at its process.
func TestContenders(t *testing.T) {
	testkit.Nightly(t, testkit.Bench, "it measures for real, if briefly")
	r := testRig(t)
	for _, c := range contenders() {
		for _, tls := range []bool{false, true} {
			if tls && !c.tls || !tls && !c.plain {
				continue
			}
			t.Run(c.name+", "+socketMode(tls), func(t *testing.T) {
				if lacks := c.lacks(); lacks != "" {
					testkit.Missing(t, lacks)
				}
				s, err := transfer{tls: tls, chunk: burst, length: 1 << 20, conns: 2}.take(r, c)
				if err != nil {
					t.Fatal(err)
				}
				if s.Ops != 2<<20 || s.NsPerOp <= 0 || s.CPUNsPerOp <= 0 {
					t.Errorf("sample %+v", s)
				}
				if s, err = (idleness{tls, 4}).take(r, c); err != nil || s.Extra["descriptors"] < 1 || s.Extra["conns"] != 4 {
					t.Errorf("idle: %+v, %v", s, err)
				}
				if s, err = (pingPongs{tls, 20}).take(r, c); err != nil || s.Extra["p50"] <= 0 || s.Extra["p99"] < s.Extra["p50"] {
					t.Errorf("ping-pong: %+v, %v", s, err)
				}
			})
		}
	}
}

// TestReadCounts knows what a relay with a buffer of 4 KiB must need.
func TestReadCounts(t *testing.T) {
	r := testRig(t)
	c := contender{name: poolName(4), job: job{Pump: pumpPool, Size: 4 << 10}}
	s, err := transfer{chunk: burst, length: 4 << 20, conns: 1}.take(r, c)
	if least := float64(1<<30) / 4096; err != nil || s.Extra["reads_gib"] < least || s.Extra["reads_gib"] > 100*least {
		t.Errorf("%v reads per GiB, %v", s.Extra["reads_gib"], err)
	}
}

// TestCPUOfOneProcess: a relay that works uses time, one that does nothing hardly any.
func TestCPUOfOneProcess(t *testing.T) {
	r := testRig(t)
	before, err := r.upstream.cpu()
	if err != nil {
		t.Fatal(err)
	}
	conn, err := r.dial(r.upstream.TLSAddr, true)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := download(conn, 16<<20, burst); err != nil {
		t.Fatal(err)
	}
	after, err := r.upstream.cpu()
	if err != nil || after-before < time.Millisecond {
		t.Errorf("16 MiB were encrypted in %v of CPU, %v", after-before, err)
	}
}

func TestMemoryIsSeen(t *testing.T) {
	r := testRig(t)
	pool := contender{name: poolName(16), job: job{Pump: pumpPool, Size: 16 << 10}}
	stack := contender{name: stackName, job: job{Pump: pumpStack}}
	for _, one := range []struct {
		c           contender
		how         string
		stack, heap float64 // least for each, bytes
	}{
		{stack, doSpawn, 32 << 10, 0},
		{pool, doSpawn, 0, 16 << 10},
		{pool, doPipes, 2 << 10, 32 << 10},
		{pool, "", 2 << 10, 32 << 10},
	} {
		s, err := memoryOver{steps: []int{20, 200}, how: one.how}.take(r, one.c)
		if err != nil {
			t.Fatal(err)
		}
		// A tenth off: what was free before is used first.
		if s.Extra["stack_200"] < 0.9*200*one.stack || s.Extra["heap_200"] < 0.9*200*one.heap {
			t.Errorf("%s, %q: %+v", one.c.name, one.how, s.Extra)
		}
	}
	for _, pipes := range []bool{false, true} {
		s, err := twoBursts{n: 20, pipes: pipes}.take(r, pool)
		if err != nil || s.Extra["active_heap"] <= 0 || s.Extra["clean_heap"] > s.Extra["active_heap"] {
			t.Errorf("pipes %v: %+v, %v", pipes, s.Extra, err)
		}
	}
}

// TestStopEndsChildren: a program's own children must not outlive it.
func TestStopEndsChildren(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	p, err := startProgram(ln.Addr().String(), "sh", "-c", "trap '' INT; sleep 1000 & wait")
	if err != nil {
		t.Fatal(err)
	}
	var all []int
	for begin := time.Now(); len(all) < 2; time.Sleep(time.Millisecond) {
		if all, err = family(p.cmd.Process.Pid); err != nil || time.Since(begin) > time.Minute {
			t.Fatalf("family %v, %v", all, err)
		}
	}
	if err := p.stop(); err != nil {
		t.Error(err)
	}
	for begin := time.Now(); ; time.Sleep(time.Millisecond) {
		state, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(all[1]), "stat"))
		if err != nil || strings.Contains(string(state), ") Z ") {
			break
		}
		if time.Since(begin) > time.Minute {
			t.Fatalf("process %d still runs: %s", all[1], state)
		}
	}
}

func TestProgramsThatFail(t *testing.T) {
	if _, err := startProgram("127.0.0.1:1", "sh", "-c", "echo no such option; exit 3"); err == nil || !strings.Contains(err.Error(), "no such option") {
		t.Errorf("a program that ends: %v", err)
	}
	if _, err := startChild(job{Cert: "/none", Key: "/none", Pump: pumpPool}); err == nil {
		t.Error("a child without a certificate has started")
	}
}

// TestRun measures two groups with little, keeps the first while the second is
// measured again, and makes of it what can be made.
func TestRun(t *testing.T) {
	path := filepath.Join(t.TempDir(), "relay.json")
	results := NewResults()
	run := func(groups ...string) {
		t.Helper()
		if err := Run(io.Discard, results, Settings{Groups: groups, Relays: []string{Splice, poolName(16)}, Short: true}); err != nil {
			t.Fatal(err)
		}
		if err := results.Save(path); err != nil {
			t.Fatal(err)
		}
		back, err := Load(path)
		if err != nil || !reflect.DeepEqual(back, results) {
			t.Fatalf("read back %+v, %v, want %+v", back, err, results)
		}
		results = back
	}
	run("raw", "tls")
	first := results.Parts[1].Samples
	run("raw")
	if len(results.Parts) != 2 || results.Parts[0].Group != "raw" || len(results.Parts[0].Samples) != 4 || !reflect.DeepEqual(results.Parts[1].Samples, first) {
		t.Errorf("parts %+v", results.Parts)
	}
	if svg, err := results.cpuPicture(results.summarize()); err != nil || !strings.Contains(svg, poolName(16)) {
		t.Errorf("picture %v:\n%s", err, svg)
	}
	if _, err := results.Tables(); err == nil {
		t.Error("tables were made without our relay")
	}
}

func TestBulkSubjects(t *testing.T) {
	for _, tls := range []bool{false, true} {
		times := map[string]int{}
		for _, su := range bulkSubjects(Settings{}, tls, contenders()) {
			times[su.who]++
		}
		of64 := 2
		if tls {
			of64 = 6
		}
		if times[Ours] != 6 || times[Splice] != 6 || times[poolName(64)] != of64 || times["HAProxy"] != 2 {
			t.Errorf("TLS %v: %v measurements a round", tls, times)
		}
	}
}

func TestBars(t *testing.T) {
	figure := func(cpu float64, extra map[string]float64) measure.Summary {
		return measure.Summary{Ns: 1, CPUNs: cpu, Extra: extra}
	}
	f := figures{}
	set := func(where, library, mode string, s measure.Summary) {
		f[measure.Key{Case: where, Library: library, Mode: mode}] = s
	}
	for _, dir := range []string{caseUpload, caseDownload} {
		set(dir, Ours, modeRaw, figure(0.104, nil))
		set(dir, Splice, modeRaw, figure(0.1, nil))
		set(dir, "HAProxy", modeRaw, figure(0.2, nil))
		set(dir, Ours, modeTLS, figure(0.5, nil))
		set(dir, poolName(64), modeTLS, figure(0.5, nil))
		set(dir, poolName(4), modeTLS, figure(0.6, nil))
	}
	set(caseIdle, Ours, modeRaw, figure(0, map[string]float64{"bytes": 10 * 1024, "descriptors": 2.001, "conns": 9900}))
	set(caseLatency, Ours, modeRaw, figure(0, map[string]float64{"p50": 40e3, "p99": 130e3}))
	set(caseLatency, direct, modeRaw, figure(0, map[string]float64{"p50": 10e3, "p99": 30e3}))
	set(caseSmallUp, Ours, modeRaw, figure(1.09, nil))
	set(caseSmallUp, "HAProxy", modeRaw, figure(1, nil))
	ratio := func(where, a, b, mode string) float64 {
		over, ok := f.get(where, a, mode)
		under, ok2 := f.get(where, b, mode)
		if !ok || !ok2 {
			return math.NaN()
		}
		return over.CPUNs / under.CPUNs
	}
	reached := func() (yes, no int) {
		text, err := bars(f, ratio)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Count(text, "| yes |"), strings.Count(text, "| **no** |")
	}
	if yes, no := reached(); yes != 11 || no != 0 {
		t.Errorf("%d reached and %d not, want all 11", yes, no)
	}
	for _, worse := range []struct {
		where, mode string
		s           measure.Summary
		missed      int
	}{
		{caseUpload, modeRaw, figure(0.106, nil), 1},
		{caseUpload, modeRaw, figure(0.2, nil), 2},
		{caseUpload, modeTLS, figure(0.501, nil), 1},
		{caseIdle, modeRaw, figure(0, map[string]float64{"bytes": 10*1024 + 1, "descriptors": 2.1}), 2},
		{caseSmallUp, modeRaw, figure(1.11, nil), 1},
		{caseLatency, modeRaw, figure(0, map[string]float64{"p50": 40.1e3, "p99": 130.1e3}), 2},
	} {
		good := maps.Clone(f)
		set(worse.where, Ours, worse.mode, worse.s)
		if yes, no := reached(); no != worse.missed || yes != 11-worse.missed {
			t.Errorf("%+v: %d reached, %d not, want %d not", worse, yes, no, worse.missed)
		}
		f = good
	}
	delete(f, measure.Key{Case: caseUpload, Library: Ours, Mode: modeRaw})
	if _, err := bars(f, ratio); err == nil {
		t.Error("targets were judged without figures")
	}
}

package relay

import (
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/rollway/rollway/bench/internal/child"
	"github.com/rollway/rollway/bench/internal/measure"
	"github.com/rollway/rollway/internal/testkit"
)

func TestMain(m *testing.M) {
	child.Main()
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
		if err := r.upstream.Stop(); err != nil {
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
	before, err := r.upstream.CPU()
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
	after, err := r.upstream.CPU()
	if err != nil || after-before < time.Millisecond {
		t.Errorf("16 MiB were encrypted in %v of CPU, %v", after-before, err)
	}
}

func TestMemoryIsSeen(t *testing.T) {
	r := testRig(t)
	pool := contender{name: poolName(16), job: job{Pump: pumpPool, Size: 16 << 10}}
	s, err := idleInGo{n: 200}.take(r, pool)
	if err != nil {
		t.Fatal(err)
	}
	// A tenth off: what was free before is used first.
	if s.Extra["stack"] < 0.9*200*2<<10 || s.Extra["heap"] < 0.9*200*32<<10 || s.Extra["conns"] != 200 {
		t.Errorf("%+v", s.Extra)
	}
	s, err = afterBurst{n: 20}.take(r, pool)
	if err != nil || s.Extra["idle_heap"] <= 0 || s.Extra["clean_heap"] > s.Extra["idle_heap"] {
		t.Errorf("%+v, %v", s.Extra, err)
	}
}

func TestChildrenThatFail(t *testing.T) {
	if _, err := startChild(job{Cert: "/none", Key: "/none", Pump: pumpPool}); err == nil || !strings.Contains(err.Error(), "/none") {
		t.Errorf("a child without a certificate: %v", err)
	}
}

// TestRun measures two groups with little, keeps the first while the second is
// measured again.
func TestRun(t *testing.T) {
	path := filepath.Join(t.TempDir(), "relay.json")
	results := NewResults()
	run := func(groups ...string) {
		t.Helper()
		if err := Run(io.Discard, results, Settings{Groups: groups, Relays: []string{Splice, poolName(16)}, Short: true}); err != nil {
			t.Fatal(err)
		}
		if err := measure.Save(path, results); err != nil {
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

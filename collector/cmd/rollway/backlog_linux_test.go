package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rollway/rollway/collector/journal"
)

var (
	backlog    = flag.Int64("backlog", 8<<20, "bytes of lines that TestReadyWithBacklog has the collector find")
	backlogDir = flag.String("backlogdir", "", "where they are; default a temporary folder")
)

// readyBy is how soon the collector answers, whatever the backlog. A run of few
// bytes is not held to it, as it measures the machine's load.
const readyBy = time.Second

// A collector with a backlog, plain or packed, is ready soon after a clean stop
// and after a kill -9. With -backlog 10000000000 it has to be within readyBy,
// just written to a disk that is busy with it, and, for root, when nothing of it
// is in memory.
func TestReadyWithBacklog(t *testing.T) {
	for _, pack := range []bool{false, true} {
		name := "plain"
		if pack {
			name = "packed"
		}
		t.Run(name, func(t *testing.T) {
			dir := *backlogDir
			if dir == "" {
				dir = t.TempDir()
			} else if err := os.MkdirAll(filepath.Join(dir, name), 0o750); err != nil {
				t.Fatal(err)
			} else {
				dir = filepath.Join(dir, name)
				t.Cleanup(func() { os.RemoveAll(dir) })
			}
			data := filepath.Join(dir, "data")
			began := time.Now()
			records := makeBacklog(t, filepath.Join(data, "journal"), *backlog, pack)
			t.Logf("%d lines made in %v", records, time.Since(began).Round(time.Second))
			start := func(what string) *daemon {
				begin := time.Now()
				d := serveDaemon(t, "-data", data)
				for {
					resp, err := http.Get(d.addr + "/readyz")
					if err == nil {
						resp.Body.Close()
						if resp.StatusCode == http.StatusOK {
							break
						}
					}
					time.Sleep(time.Millisecond)
				}
				took := time.Since(begin)
				status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", d.cmd.Process.Pid))
				if err != nil {
					t.Fatal(err)
				}
				_, resident, _ := bytes.Cut(status, []byte("VmRSS:"))
				resident, _, _ = bytes.Cut(resident, []byte("\n"))
				t.Logf("%s: ready after %v, resident %s", what, took.Round(time.Millisecond), bytes.TrimSpace(resident))
				if *backlog >= 1<<30 && took > readyBy {
					t.Errorf("%s: ready after %v", what, took)
				}
				return d
			}
			d := start("just written")
			if code, body := d.post(t, `{"msg":"one more"}`); code != 200 || !strings.Contains(body, fmt.Sprintf(`"first_offset":%d`, records)) {
				t.Fatal(code, body)
			}
			d.kill()
			d = start("after kill -9")
			d.end(t)
			d = start("after a clean stop")
			if *backlog >= 1<<30 && os.WriteFile("/proc/sys/vm/drop_caches", []byte("3"), 0) == nil { // of the whole machine
				d.kill()
				d = start("after kill -9, nothing in memory")
				d.end(t)
				if err := os.WriteFile("/proc/sys/vm/drop_caches", []byte("3"), 0); err != nil {
					t.Fatal(err)
				}
				d = start("after a clean stop, nothing in memory")
			}
			if got := d.query(t, "-last", "1"); len(got) != 1 || !strings.Contains(got[0], "one more") {
				t.Errorf("the last line is %q", got)
			}
		})
	}
}

// makeBacklog fills a journal and returns how many records it has. It is not
// synced except for what the journal does.
func makeBacklog(t *testing.T, dir string, size int64, pack bool) (records int) {
	t.Helper()
	j, err := journal.Open(dir, journal.Options{Pack: pack, SegmentBytes: min(128<<20, size/8)})
	if err != nil {
		t.Fatal(err)
	}
	const lines = 2000
	var b journal.Batch
	for stored := int64(0); stored < size; stored += int64(len(b.Lines)) {
		b = journal.Batch{Lines: b.Lines[:0], Records: lines, MinTime: stored, MaxTime: stored + 1}
		for i := range lines {
			n := records + i
			b.Lines = fmt.Appendf(b.Lines, `{"time":"2026-11-21T12:00:00.%09dZ","level":"INFO","msg":"request %x served","service":"shop","attrs":{"method":"GET","path":"/items/%d","status":%d,"ms":%d.%d,"peer":"10.0.%d.%d","trace":"%016x"}}`+"\n",
				n%1e9, n*2654435761, n%9973, 200+n%5, n%300, n%10, n%256, n%251, uint64(n)*11400714819323198485)
		}
		if _, err := j.Append(context.Background(), b); err != nil {
			t.Fatal(err)
		}
		records += lines
	}
	for pack {
		s := j.Stats()
		if int(s.PackedSegments) >= s.Segments-1 {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	return records
}

package main

import (
	"bufio"
	"fmt"
	"math"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rollway/rollway/internal/testkit"
)

// A traced is one system call of a traced process: the lines of the trace in
// which it began and ended.
type traced struct {
	name, text string
	begin, end int
}

// syncsSegment reports whether c is an fdatasync of a segment. The manifest of the
// segments is synced in the background, and no request waits for it.
func (c *traced) syncsSegment() bool {
	return c.name == "fdatasync" && strings.Contains(c.text, ".open>")
}

var (
	callBegin  = regexp.MustCompile(`^\d+ +([a-z0-9]+)\(`)
	callResume = regexp.MustCompile(`^\d+ +<\.\.\. [a-z0-9]+ resumed>`)
)

// readTrace reads what strace -f wrote. Calls that
// had not ended then end after all others.
func readTrace(t *testing.T, path string) (calls []*traced) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	running := map[string]*traced{}
	in := bufio.NewScanner(f)
	in.Buffer(nil, 64<<20)
	for n := 0; in.Scan(); n++ {
		line := in.Text()
		thread, _, _ := strings.Cut(line, " ")
		if callResume.MatchString(line) {
			if c := running[thread]; c != nil {
				c.end, c.text = n, c.text+line
				calls = append(calls, c)
				delete(running, thread)
			}
			continue
		}
		m := callBegin.FindStringSubmatch(line)
		if m == nil {
			continue // a signal
		}
		c := &traced{name: m[1], text: line, begin: n, end: n}
		if strings.HasSuffix(line, "<unfinished ...>") {
			running[thread] = c
			continue
		}
		calls = append(calls, c)
	}
	if err := in.Err(); err != nil {
		t.Fatal(err)
	}
	for _, c := range running {
		c.end = math.MaxInt
		calls = append(calls, c)
	}
	return calls
}

// traceDaemon traces d's writes and fsyncs, each fsync taking delay longer, until
// the function it returns is called, which returns the trace.
func traceDaemon(t *testing.T, d *daemon, delay time.Duration) func() []*traced {
	t.Helper()
	strace := testkit.Program(t, "strace")
	path := filepath.Join(t.TempDir(), "trace")
	cmd := exec.Command(strace, "-f", "-y", "-o", path, "-s", "1000000", "-e", "trace=pwrite64,fdatasync,fsync,write",
		"-e", fmt.Sprintf("inject=fdatasync:delay_exit=%d", delay.Microseconds()), "-p", strconv.Itoa(d.cmd.Process.Pid))
	var said testkit.Buffer
	cmd.Stderr = &said
	start(t, cmd)
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	stop := sync.OnceFunc(func() {
		cmd.Process.Signal(syscall.SIGINT)
		<-ended
	})
	t.Cleanup(stop)
	for end := time.Now().Add(time.Minute); !strings.Contains(said.String(), "attached"); time.Sleep(time.Millisecond) {
		select {
		case err := <-ended:
			ended <- err
			testkit.Missing(t, "leave to trace a process: "+said.String())
		default:
		}
		if time.Now().After(end) {
			t.Fatalf("strace does not attach: %s", said.String())
		}
	}
	return func() []*traced {
		stop()
		return readTrace(t, path)
	}
}

// realFolder returns a folder that is not in memory.
func realFolder(t *testing.T) string {
	dir := t.TempDir()
	var st syscall.Statfs_t
	if err := syscall.Statfs(dir, &st); err != nil {
		t.Fatal(err)
	}
	const tmpfs = 0x01021994
	if st.Type == tmpfs {
		testkit.Missing(t, "a folder for temporary files that is on a disk")
	}
	return dir
}

// postAsking sends one event and returns its offset and the durability that the
// answer tells.
func postAsking(d *daemon, msg, durability string) (offset, kept string, err error) {
	req, err := http.NewRequest("POST", d.addr+"/api/logs", strings.NewReader(`{"msg":"`+msg+`"}`))
	if err != nil {
		return "", "", err
	}
	if durability != "" {
		req.Header.Set("X-Durability", durability)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", "", err
	}
	defer resp.Body.Close()
	body := make([]byte, 1000)
	n, _ := resp.Body.Read(body)
	m := regexp.MustCompile(`"first_offset":(\d+)}`).FindSubmatch(body[:n])
	if resp.StatusCode != 200 || m == nil {
		return "", "", fmt.Errorf("%s: %d %s", msg, resp.StatusCode, body[:n])
	}
	return string(m[1]), resp.Header.Get("X-Durability"), nil
}

// A 2xx of synced leaves only after an fdatasync has returned that began after
// the lines were written; concurrent requests share one; a buffered request
// waits for none.
func TestSyncedIsSynced(t *testing.T) {
	for _, c := range []struct{ config, header string }{{"buffered", "synced"}, {"synced", ""}, {"synced", "buffered"}, {"buffered", ""}} {
		want := c.header
		if want == "" {
			want = c.config
		}
		t.Run("config "+c.config+" header "+c.header, func(t *testing.T) {
			d := serveDaemon(t, "-data", realFolder(t), "-durability", c.config)
			trace := traceDaemon(t, d, 20*time.Millisecond)
			const clients, each = 8, 6
			offsets := make([][]string, clients)
			var posting sync.WaitGroup
			for client := range clients {
				posting.Go(func() {
					for n := range each {
						offset, kept, err := postAsking(d, eventName(client, n), c.header)
						if err != nil || kept != want {
							t.Errorf("kept %q: %v", kept, err)
							return
						}
						offsets[client] = append(offsets[client], offset)
					}
				})
			}
			posting.Wait()
			calls := trace()
			syncs := 0
			for _, c := range calls {
				if c.syncsSegment() {
					syncs++
				}
			}
			if want == "buffered" {
				if syncs != 0 {
					t.Errorf("%d calls of fdatasync for buffered requests", syncs)
				}
				return
			}
			if syncs == 0 || syncs >= clients*each {
				t.Errorf("%d calls of fdatasync for %d synced requests", syncs, clients*each)
			}
			for client := range offsets {
				for n, offset := range offsets[client] {
					checkSyncedBefore(t, calls, eventName(client, n), `\"first_offset\":`+offset+`}`)
				}
			}
		})
	}
}

// checkSyncedBefore wants the write of msg to the disk, then an fdatasync, then the
// answer, which is the first write of text.
func checkSyncedBefore(t *testing.T, calls []*traced, msg, text string) {
	t.Helper()
	find := func(name, text string) *traced {
		for _, c := range calls {
			// What is kept of a rejected event is no answer.
			if c.name == name && strings.Contains(c.text, text) && !strings.Contains(c.text, `\"reason\":`) {
				return c
			}
		}
		t.Errorf("%s: the trace has no %s of it", msg, name)
		return &traced{}
	}
	stored, answered := find("pwrite64", msg), find("write", text)
	for _, c := range calls {
		if c.syncsSegment() && c.begin > stored.end && c.end < answered.begin && strings.Contains(c.text, "= 0") {
			return
		}
	}
	t.Errorf("%s: answered in line %d of the trace, stored in line %d, without an fdatasync between", msg, answered.begin, stored.end)
}

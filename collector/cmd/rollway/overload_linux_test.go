//go:build !race

// Under the race detector a process has memory that is not the collector's.

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// residentPeak is the most memory that a process has had, in bytes.
func residentPeak(t *testing.T, pid int) int64 {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "VmHWM:")
	number, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
	kib, err := strconv.ParseInt(number, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return kib << 10
}

// Many more bodies at a time than limits.in_flight has room for are answered
// 503, and stored when they come again; memory stays within what is allowed and
// what the collector needs anyhow.
func TestMemoryUnderOverload(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "rollway.yaml")
	if err := os.WriteFile(path, []byte("limits:\n  max_unpacked: 8MiB\n  in_flight: 32MiB\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	d := serveDaemon(t, "-config", path, "-data", filepath.Join(dir, "data"))
	const senders, each, events = 128, 2, 4000
	body := bytes.Repeat([]byte(`{"level":"info","msg":"`+strings.Repeat("word ", 100)+"\"}\n"), events) // 2 MB
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: senders}}
	defer client.CloseIdleConnections()
	var refused, latest atomic.Int64 // latest: when a request was stored, after begin
	var sending sync.WaitGroup
	begin := time.Now()
	for s := range senders {
		sending.Go(func() {
			for n := range each {
				for ; ; time.Sleep(10 * time.Millisecond) {
					// How long one waits for the others is the machine's business.
					if time.Since(begin)-time.Duration(latest.Load()) > 2*time.Minute {
						t.Errorf("sender %d: request %d is refused, and nothing is stored for two minutes", s, n)
						return
					}
					resp, err := client.Post(d.addr+"/api/logs", "", bytes.NewReader(body))
					if err != nil {
						continue // closed before all of the body was sent
					}
					io.Copy(io.Discard, resp.Body)
					resp.Body.Close()
					if resp.StatusCode == http.StatusOK {
						latest.Store(int64(time.Since(begin)))
						break
					}
					if resp.StatusCode != http.StatusServiceUnavailable || resp.Header.Get("Retry-After") == "" {
						t.Errorf("%s", resp.Status)
						return
					}
					refused.Add(1)
				}
			}
		})
	}
	sending.Wait()
	peak := residentPeak(t, d.cmd.Process.Pid)
	t.Logf("%d requests of %d bytes stored, %d refused, resident %d MB at most", senders*each, len(body), refused.Load(), peak>>20)
	if refused.Load() == 0 {
		t.Error("nothing was refused: this is no overload")
	}
	if peak > 256<<20 { // all bodies and their lines together have 512 MB
		t.Errorf("%d bytes were resident", peak)
	}
	r := cli(t, "", "reconcile", "-addr", d.addr)
	r.want(t, 0)
	if want := fmt.Sprintf("stored %d", senders*each*events); !strings.Contains(r.stdout, want) {
		t.Errorf("no %q in\n%s", want, r.stdout)
	}
}

// Connections that send their headers a byte at a time are closed when their
// time is over, and keep nobody else from being served.
func TestSlowHeaders(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "rollway.yaml")
	if err := os.WriteFile(path, []byte("timeouts:\n  read_header: 1s\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	d := serveDaemon(t, "-config", path, "-data", filepath.Join(dir, "data"))
	const slow = 500
	var conns sync.WaitGroup
	ended := make(chan error, slow)
	for range slow {
		c, err := net.Dial("tcp", strings.TrimPrefix(d.addr, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		conns.Go(func() {
			defer c.Close()
			go io.Copy(io.Discard, c)
			var err error
			for begin := time.Now(); err == nil && time.Since(begin) < time.Minute; time.Sleep(50 * time.Millisecond) {
				_, err = io.WriteString(c, "P")
			}
			ended <- err
		})
	}
	for i := range 20 {
		if code, body := d.post(t, fmt.Sprintf(`{"msg":"beside %d"}`, i)); code != 200 {
			t.Fatal(code, body)
		}
	}
	conns.Wait()
	close(ended)
	for err := range ended {
		var op *net.OpError
		if !errors.As(err, &op) {
			t.Fatalf("a connection without headers was kept: %v", err)
		}
	}
	if code, body := d.post(t, `{"msg":"afterwards"}`); code != 200 {
		t.Fatal(code, body)
	}
}

//go:build !race

// Under the race detector a process has memory that is not the collector's.

package main

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Many more bodies at a time than limits.in_flight has room for are answered
// 503, and stored when they come again; memory stays within what is allowed and
// what the collector needs anyhow.
func TestMemoryUnderOverload(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "rollway.yaml")
	writeFile(t, path, "limits:\n  max_unpacked: 8MiB\n  in_flight: 32MiB\n")
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

// residentBound is what the collector may come to with 64 MiB in flight: a quarter of
// that for garbage, and as much again as it needs anyhow, for slow machines.
const residentBound = 240 << 20

// attacked serves with 64 MiB in flight, and has the most memory that it needed
// compared when the test is over.
func attacked(t *testing.T) *daemon {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "rollway.yaml")
	writeFile(t, path, "limits:\n  max_unpacked: 16MiB\n  in_flight: 64MiB\n")
	d := serveDaemon(t, "-config", path, "-data", filepath.Join(dir, "data"))
	t.Cleanup(func() {
		if d.cmd.ProcessState != nil {
			t.Error("the collector has ended")
			return
		}
		peak := residentPeak(t, d.cmd.Process.Pid)
		t.Logf("resident %d MB at most", peak>>20)
		if peak > residentBound {
			t.Errorf("%d bytes were resident, %d are allowed", peak, residentBound)
		}
	})
	return d
}

// Headers come to many times their size too, and are there before anybody knows who
// sends them.
func TestResidentHeaders(t *testing.T) {
	d := attacked(t)
	const senders = 600
	var head bytes.Buffer
	head.WriteString("POST /api/logs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n")
	for i := 0; head.Len() < 60<<10; i++ {
		fmt.Fprintf(&head, "%x:\r\n", i)
	}
	head.WriteString("\r\n{")
	var conns []net.Conn
	defer func() {
		for _, c := range conns {
			c.Close()
		}
	}()
	var refused atomic.Int64
	for range senders {
		c, err := net.Dial("tcp", strings.TrimPrefix(d.addr, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		conns = append(conns, c)
		go func() {
			c.Write(head.Bytes()) // it may be refused before the end
			var b [12]byte
			if _, err := io.ReadFull(c, b[:]); err != nil || string(b[9:]) == "503" {
				refused.Add(1)
			}
		}()
	}
	for end := time.Now().Add(time.Minute); refused.Load() < senders/2; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Errorf("of %d connections with long headers %d are refused", senders, refused.Load())
			return
		}
	}
	if code, body := d.post(t, `{"msg":"beside"}`); code != 200 {
		t.Error(code, body)
	}
}

// Slow senders of little do not keep what senders of much have left in pools.
func TestResidentSlowAfterLarge(t *testing.T) {
	d := attacked(t)
	body := bytes.Repeat([]byte(`{"msg":"`+strings.Repeat("word ", 100)+"\"}\n"), 1800) // 900 KB
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 8}}
	defer client.CloseIdleConnections()
	var slow []net.Conn
	defer func() {
		for _, c := range slow {
			c.Close()
		}
	}()
	for range 60 {
		var sending sync.WaitGroup
		for range 8 {
			sending.Go(func() {
				resp, err := client.Post(d.addr+"/api/logs", "", bytes.NewReader(body))
				if err != nil {
					return // closed before all of the body was sent
				}
				io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
			})
		}
		sending.Wait()
		for range 8 { // TE has net/http read it, and wait for the rest
			c, err := net.Dial("tcp", strings.TrimPrefix(d.addr, "http://"))
			if err != nil {
				t.Fatal(err)
			}
			slow = append(slow, c)
			if _, err := io.WriteString(c, "POST /api/logs HTTP/1.1\r\nHost: localhost\r\nTE: x\r\nContent-Length: 100\r\n\r\n{"); err != nil {
				t.Fatal(err)
			}
		}
	}
}

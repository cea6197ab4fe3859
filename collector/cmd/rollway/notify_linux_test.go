package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rollway/rollway/internal/smalldisk"
	"github.com/rollway/rollway/internal/testkit"
)

// A manager is the socket of a service manager.
type manager struct {
	*net.UnixConn
}

func newManager(t *testing.T, name string) manager {
	t.Helper()
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: name, Net: "unixgram"})
	testkit.OK(t, err)
	t.Cleanup(func() { conn.Close() })
	testkit.OK(t, conn.SetReadDeadline(time.Now().Add(time.Minute)))
	return manager{conn}
}

// next returns the assignments of the next message.
func (m manager) next(t *testing.T) []string {
	t.Helper()
	var buf [4096]byte
	n, err := m.Read(buf[:])
	testkit.OK(t, err)
	return strings.Split(string(buf[:n]), "\n")
}

// until returns the first message with an assignment, and all before it.
func (m manager) until(t *testing.T, assignment string) (found []string, before [][]string) {
	t.Helper()
	for {
		found = m.next(t)
		if slices.ContainsFunc(found, func(s string) bool { return strings.HasPrefix(s, assignment) }) {
			return found, before
		}
		before = append(before, found)
	}
}

// supervised starts a collector that tells m.
func supervised(t *testing.T, m manager, data string, env ...string) *daemon {
	t.Helper()
	env = append(append(os.Environ(), "NOTIFY_SOCKET="+m.LocalAddr().String()), env...)
	d, err := startDaemon(t.TempDir(), env, "-data", data)
	testkit.OK(t, err)
	t.Cleanup(d.kill)
	return d
}

// A service manager learns of each step in a collector's life, over a socket with a path
// and an abstract one.
func TestNotify(t *testing.T) {
	for _, name := range []string{filepath.Join(t.TempDir(), "notify"), fmt.Sprintf("@rollway-test-%d", os.Getpid())} {
		m := newManager(t, name)
		d := supervised(t, m, t.TempDir(), "WATCHDOG_USEC=100000")
		ready, before := m.until(t, "READY=1")
		if len(before) != 1 || !strings.HasPrefix(before[0][0], "STATUS=opening the journal in ") || !slices.Contains(ready, "STATUS=0 lines stored since the start, 0 B in the journal") {
			t.Errorf("%s: %q, then %q", name, before, ready)
		}
		for range 3 {
			m.until(t, "WATCHDOG=1")
		}
		began := monotonic()
		sendSignal(t, d.cmd, syscall.SIGHUP)
		reloading, _ := m.until(t, "RELOADING=1")
		at, err := strconv.ParseInt(strings.TrimPrefix(reloading[1], "MONOTONIC_USEC="), 10, 64)
		if at := time.Duration(at) * time.Microsecond; err != nil || at < began.Truncate(time.Microsecond) || at > monotonic() {
			t.Errorf("%s: %q, and it was %v", name, reloading, began)
		}
		m.until(t, "READY=1")
		sendSignal(t, d.cmd, syscall.SIGTERM)
		m.until(t, "STOPPING=1")
		testkit.OK(t, d.wait())
	}
}

// The watchdog of another process is not fed, and a socket that is gone stops nothing.
func TestNotifyOthers(t *testing.T) {
	m := newManager(t, filepath.Join(t.TempDir(), "notify"))
	s := func() *supervisor {
		t.Setenv("NOTIFY_SOCKET", m.LocalAddr().String())
		t.Setenv("WATCHDOG_USEC", "100000")
		return newSupervisor(nil)
	}
	if s := s(); s.watchdog != 100*time.Millisecond {
		t.Errorf("the watchdog is %v", s.watchdog)
	}
	t.Setenv("WATCHDOG_PID", "1")
	other := s()
	if other.watchdog != 0 {
		t.Errorf("the watchdog of another process is %v", other.watchdog)
	}
	m.Close()
	other.send("READY=1")
	d, err := startDaemon(t.TempDir(), append(os.Environ(), "NOTIFY_SOCKET=/none", "WATCHDOG_USEC=1000"))
	testkit.OK(t, err)
	d.end(t)
	if !strings.Contains(d.stderr.String(), "cannot be told") {
		t.Errorf("nothing is said of it:\n%s", d.stderr.String())
	}
	(*supervisor)(nil).send("READY=1")
}

// While the disk hangs, and with it the journal, the watchdog is not fed; a disk that is
// full or idle does not matter to it.
func TestWatchdogOfHangingJournal(t *testing.T) {
	disk := smalldisk.Ext4(t)
	if disk == "" {
		return
	}
	m := newManager(t, filepath.Join(t.TempDir(), "notify"))
	d := supervised(t, m, filepath.Join(disk, "data"), "WATCHDOG_USEC=100000")
	if code, said := d.post(t, `{"msg":"before"}`); code != 200 {
		t.Fatal(code, said)
	}
	thaw := smalldisk.Freeze(t, disk)
	frozen := true
	defer func() {
		if frozen {
			thaw()
		}
	}()
	answered := make(chan error, 1)
	go func() {
		if code, said := d.post(t, `{"msg":"meanwhile"}`); code != 200 {
			answered <- fmt.Errorf("%d %s", code, said)
		}
		close(answered)
	}()
	m.until(t, "STATUS=the journal has hung for ")
	for range 20 {
		if said := m.next(t); slices.Contains(said, "WATCHDOG=1") {
			t.Fatalf("fed while the journal hangs: %q", said)
		}
	}
	select {
	case err := <-answered:
		t.Fatal(errors.Join(errors.New("the disk does not hang"), err))
	default:
	}
	thaw()
	frozen = false
	m.until(t, "WATCHDOG=1")
	if err := <-answered; err != nil {
		t.Error(err)
	}
	d.end(t)
}

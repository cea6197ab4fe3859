//go:build linux

package remote_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rollway/rollway/internal/testkit"
	"github.com/rollway/rollway/remote"
)

// A journalPeer reads entries as systemd-journald does: from a datagram, or
// from a sealed file whose descriptor comes with an empty one.
type journalPeer struct {
	t    testing.TB
	conn *net.UnixConn
	url  string
	done chan struct{} // closed when nothing is read any more; nil before start

	mu    sync.Mutex
	got   []string
	files int
}

// startJournalPeer returns a peer that reads at a path of its own.
func startJournalPeer(t testing.TB) *journalPeer {
	t.Helper()
	p := listenJournal(t, socketPath(t))
	p.start()
	return p
}

// listenJournal returns a peer that has its socket at path, in place of what is
// there, and reads nothing yet.
func listenJournal(t testing.TB, path string) *journalPeer {
	t.Helper()
	os.Remove(path)
	c, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	p := &journalPeer{t: t, conn: c, url: "journald://" + path}
	t.Cleanup(p.stop)
	return p
}

func (p *journalPeer) start() {
	p.done = make(chan struct{})
	go p.read()
}

// stop ends the peer; what is in its queue is lost.
func (p *journalPeer) stop() {
	p.conn.Close()
	if p.done != nil {
		<-p.done
	}
}

func (p *journalPeer) read() {
	defer close(p.done)
	buf, oob := make([]byte, 1<<20), make([]byte, 1<<10)
	for {
		n, m, _, _, err := p.conn.ReadMsgUnix(buf, oob)
		if err != nil {
			return
		}
		entry := string(buf[:n])
		if m > 0 {
			if entry, err = readSealed(oob[:m], n); err != nil {
				p.t.Error(err)
			}
		}
		p.mu.Lock()
		if m > 0 {
			p.files++
		}
		p.got = append(p.got, entry)
		p.mu.Unlock()
	}
}

func init() { anyPeers["journald"] = anyJournal }

func anyJournal(t *testing.T) *anyPeer {
	path := socketPath(t)
	var lives []*journalPeer
	return &anyPeer{
		gram:    true,
		url:     "journald://" + path,
		options: remote.Options{Journald: remote.Journald{Identifier: "shop", Line: true}},
		up: func() {
			lives = append(lives, listenJournal(t, path))
			lives[len(lives)-1].start()
		},
		down: func() { lives[len(lives)-1].stop() },
		lines: func() (all []byte) {
			for _, life := range lives {
				for _, e := range life.entries() {
					all = append(all, journalLine(t, e)...)
				}
			}
			return all
		},
	}
}

func readSealed(oob []byte, n int) (string, error) {
	messages, err := syscall.ParseSocketControlMessage(oob)
	if err != nil || len(messages) != 1 || n != 0 {
		return "", fmt.Errorf("%d control messages with %d bytes: %v", len(messages), n, err)
	}
	fds, err := syscall.ParseUnixRights(&messages[0])
	if err != nil || len(fds) != 1 {
		return "", fmt.Errorf("%d descriptors: %v", len(fds), err)
	}
	f := os.NewFile(uintptr(fds[0]), "entry")
	defer f.Close()
	seals, err := unix.FcntlInt(f.Fd(), unix.F_GET_SEALS, 0)
	if want := unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_WRITE | unix.F_SEAL_SEAL; err != nil || seals&want != want {
		return "", fmt.Errorf("seals %x: %v", seals, err)
	}
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	data := make([]byte, info.Size())
	_, err = f.ReadAt(data, 0)
	return string(data), err
}

func (p *journalPeer) entries() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.got...)
}

// journalLine returns the line that an entry of shop was made of, by
// Journald.Line.
func journalLine(t testing.TB, entry string) string {
	t.Helper()
	line, ok := strings.CutPrefix(entry, "PRIORITY=6\nSYSLOG_IDENTIFIER=shop\nMESSAGE=")
	if !ok {
		t.Errorf("entry %.100q", entry)
	}
	return line
}

// An entry over the limit of a datagram is sent in a file, in its place.
func TestJournaldLargeEntry(t *testing.T) {
	t.Parallel()
	peer := startJournalPeer(t)
	w := open(t, peer.url, remote.Options{Journald: remote.Journald{Identifier: "shop"}})
	long := `{"level":"WARN","msg":"` + strings.Repeat("x", 3<<20) + "\"}\n"
	write(t, w, numbered(0, 1)+long+numbered(1, 2))
	if err := w.Close(); err != nil {
		t.Errorf("Close = %v", err)
	}
	eventually(t, "three entries are there", func() bool { return len(peer.entries()) == 3 })
	want := "PRIORITY=4\nSYSLOG_IDENTIFIER=shop\nMESSAGE=" + strings.Repeat("x", 3<<20) + "\n"
	if got := peer.entries(); got[1] != want || !strings.Contains(got[0], "SEQ=0\n") || !strings.Contains(got[2], "SEQ=1\n") {
		t.Errorf("the peer read %.100q, %.100q, %.100q", got[0], got[1], got[2])
	}
	if peer.files != 1 {
		t.Errorf("%d entries came by a file, want 1", peer.files)
	}
	settled(t, w, 3, 3)
}

func TestJournaldOptionErrors(t *testing.T) {
	for url, o := range map[string]remote.Options{
		"journald://host/x":    {},
		"tcp://h:1":            {Journald: remote.Journald{Line: true}},
		"journald://":          {Journald: remote.Journald{Identifier: "a\nb"}},
		"journald:///x":        {MaxDatagram: 5},
		"journald:///x#fragme": {},
	} {
		if _, err := remote.Open(url, o); err == nil {
			t.Errorf("%s, %+v: no error", url, o)
		}
	}
	open(t, "journald://", remote.Options{})
}

// startJournald runs a real systemd-journald in a namespace of its own and
// returns the socket's path and a function that reads what it has of shop. It
// has to be root and leaves nothing behind.
func startJournald(t *testing.T) (socket string, read func() []map[string]any) {
	t.Helper()
	const daemon = "/lib/systemd/systemd-journald"
	if _, err := os.Stat(daemon); err != nil {
		testkit.Missing(t, "systemd-journald: "+err.Error())
	}
	journalctl := testkit.Program(t, "journalctl")
	if os.Getuid() != 0 {
		testkit.Missing(t, "root: systemd-journald makes its sockets below /run/systemd")
	}
	namespace := fmt.Sprintf("rollway-test-%d", os.Getpid())
	run := "/run/systemd/journal." + namespace
	socket = run + "/socket"
	t.Cleanup(func() {
		os.RemoveAll(run)
		for _, dir := range []string{"/var/log/journal", "/run/log/journal"} {
			own, _ := filepath.Glob(dir + "/*." + namespace)
			for _, d := range own {
				os.RemoveAll(d)
			}
		}
	})
	cmd := exec.Command(daemon, namespace)
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	exited := make(chan error, 1)
	go func() { exited <- cmd.Wait() }()
	t.Cleanup(func() {
		cmd.Process.Signal(syscall.SIGTERM)
		<-exited
	})
	eventually(t, "systemd-journald listens", func() bool {
		select {
		case err := <-exited:
			exited <- err
			testkit.Missing(t, fmt.Sprintf("systemd-journald, which ends here: %v, %s", err, log.String()))
		default:
		}
		_, err := os.Stat(socket)
		return err == nil
	})
	return socket, func() (all []map[string]any) {
		out, err := exec.Command(journalctl, "--namespace="+namespace, "-t", "shop", "-o", "json", "--all", "--no-pager").Output()
		if err != nil {
			return nil
		}
		d := json.NewDecoder(bytes.NewReader(out))
		for d.More() {
			var entry map[string]any
			if err := d.Decode(&entry); err != nil {
				t.Fatal(err)
			}
			all = append(all, entry)
		}
		return all
	}
}

func TestRealJournald(t *testing.T) {
	t.Parallel()
	socket, read := startJournald(t)
	w := open(t, "journald://"+socket, remote.Options{Journald: remote.Journald{Identifier: "shop"}})
	long := strings.Repeat("x", 400<<10)
	write(t, w, `{"time":"2026-05-28T12:40:00.123456789Z","level":"ERROR","msg":"two\nlines","source":"db.go:12","attrs":{"customer.id":"c_1","message":"forged","stack":"a\nb"}}`+"\n"+
		"panic: not JSON\n"+
		`{"level":"WARN","msg":"`+long+`"}`+"\n"+
		numbered(0, 100))
	if err := w.Close(); err != nil {
		t.Errorf("Close = %v", err)
	}
	settled(t, w, 103, 103)
	var got []map[string]any
	eventually(t, "103 entries are in the journal", func() bool {
		got = read()
		return len(got) >= 103
	})
	for i, want := range []map[string]any{
		{"MESSAGE": "two\nlines", "PRIORITY": "3", "TIME": "2026-05-28T12:40:00.123456789Z", "CODE_FILE": "db.go", "CODE_LINE": "12",
			"CUSTOMER_ID": "c_1", "ATTR_MESSAGE": "forged", "STACK": "a\nb", "_TRANSPORT": "journal", "_PID": fmt.Sprint(os.Getpid())},
		{"MESSAGE": "panic: not JSON", "PRIORITY": "6"},
		{"MESSAGE": long, "PRIORITY": "4"},
	} {
		for k, v := range want {
			if got[i][k] != v {
				t.Errorf("entry %d: %s is %.100v, want %.100v", i, k, got[i][k], v)
			}
		}
	}
	for i, e := range got[3:] {
		if e["SEQ"] != fmt.Sprint(i) || e["MESSAGE"] != "line" {
			t.Errorf("entry %d is %v", i+3, e)
		}
	}
	if len(got) != 103 {
		t.Errorf("%d entries, want 103", len(got))
	}
}

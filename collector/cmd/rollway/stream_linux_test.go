package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"unicode/utf8"
	"unsafe"

	"github.com/rollway/rollway/internal/encode"
)

// A terminalPair is a pseudoterminal, and what its programs have written.
type terminalPair struct {
	program *os.File // the programs' side

	mu   sync.Mutex
	text bytes.Buffer // guarded by mu
	done chan struct{}
}

func openTerminal(t *testing.T) *terminalPair {
	t.Helper()
	control := func(f *os.File, request uintptr, n *uint32) {
		if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, f.Fd(), request, uintptr(unsafe.Pointer(n))); errno != 0 {
			t.Fatal(errno)
		}
	}
	people, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	var unlocked, number uint32
	control(people, syscall.TIOCSPTLCK, &unlocked)
	control(people, syscall.TIOCGPTN, &number)
	program, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	p := &terminalPair{program: program, done: make(chan struct{})}
	go func() {
		defer close(p.done)
		buf := make([]byte, 4096)
		for {
			n, err := people.Read(buf)
			p.mu.Lock()
			p.text.Write(buf[:n])
			p.mu.Unlock()
			if err != nil { // EIO once nobody has the other side
				return
			}
		}
	}()
	t.Cleanup(func() { program.Close(); people.Close() })
	return p
}

func (p *terminalPair) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.String()
}

// end returns what was written once no program has the terminal.
func (p *terminalPair) end() string {
	p.program.Close()
	<-p.done
	return p.String()
}

// run runs a command line in this process.
func (p *terminalPair) run(args ...string) int {
	return run(args, &call{stdin: p.program, stdout: newStream(p.program), stderr: newStream(p.program)})
}

// ownSequences are what Rollway may send to a terminal: its colors, and the carriage
// returns of a status line and of the terminal's line ends.
var ownSequences = regexp.MustCompile("\x1b\\[(0|2|3[1236]|1;37;41)m|\r")

// harmless fails the test if text, written by a command, has what controls a terminal.
func harmless(t *testing.T, text, command string) {
	t.Helper()
	rest := ownSequences.ReplaceAllString(text, "")
	for i := 0; i < len(rest); {
		r, size := utf8.DecodeRuneInString(rest[i:])
		if size == 1 && r == utf8.RuneError && rest[i] < 0xa0 || size > 1 && controls(r) || size == 1 && controls(rune(rest[i])) {
			t.Fatalf("%s: byte %d of what the terminal got is %q\n%q", command, i, rest[i:i+size], text)
		}
		i += size
	}
}

// Every command, with hostile names, flags, files, answers and log lines, on a terminal.
func TestTerminalIsHarmless(t *testing.T) {
	t.Setenv("TERM", "xterm")
	t.Setenv("NO_COLOR", "")
	t.Setenv("HOME", t.TempDir())
	line := `{"time":"2026-05-28T12:40:00Z","level":"INFO","msg":` + quoted(hostileText) + `,"attrs":{` + quoted(hostileText) + `:[` + quoted(hostileText) + `]}}`
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/api/query":
			w.Header().Set("Trailer", "Rollway-Error")
			io.WriteString(w, line+"\n"+hostileText+"\n")
			w.Header().Set("Rollway-Error", "\u009b31m\u202e")
		case "/api/tail":
			fmt.Fprintf(w, "id: 1\ndata: %s\n\nevent: end\ndata: {\"reason\":%s}\n\n", line, quoted(hostileText))
		case "/healthz", "/readyz":
			io.WriteString(w, `{"status":"alive","journal":"j"}`)
		default:
			w.WriteHeader(http.StatusTeapot)
			fmt.Fprintf(w, `{"error":%s}`, quoted(hostileText))
		}
	}))
	defer server.Close()
	dir := t.TempDir()
	t.Chdir(dir)
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		writeFile(t, path, text)
		return path
	}
	name := strings.ReplaceAll(hostileText, "/", "")
	lines := file("lines"+name, line+"\n"+hostileText+"\n")
	settings := file("settings.yaml", "listen: \"\u202e:x\"\n\"a\u009b31m\": 1\nlimits:\n  max_body: \"\\e[2J\"\n")
	secrets := file("tokens.yaml", "- name: \"\u202e\u009b\"\n  sec: 1\n")
	tokens := file("tokens-settings.yaml", "access:\n  tokens: "+secrets+"\n")
	report := file("report", "# TYPE rollway_x counter\n"+hostileText+" 1\n")
	letters := file("rejected.ndjson", `{"receiver":`+quoted(hostileText)+`,"reason":`+quoted(hostileText)+`,"event":`+quoted(line)+`}`+"\n"+hostileText+"\n")
	addr := "-addr=" + server.URL
	cases := [][]string{
		{hostileText},
		{"query", addr, "x"}, {"query", addr, "-o", "json"}, {"query", addr, "-o", "text"}, {"query", addr, "-o", "csv"}, {"query", addr, "-o", "table"}, {"query", addr, "-o", "chart"}, {"query", addr, "-last", "1"},
		{"query", addr, `level>"` + hostileText + `"`}, {"query", "-addr", "http://127.0.0.1:1/" + hostileText},
		{"cat", lines}, {"cat", "-o", "json", lines}, {"cat", "-o", "text", lines}, {"cat", "-o", "csv", lines}, {"cat", "-where", hostileText + "=(", lines}, {"cat", dir},
		{"verify", lines, dir}, {"verify", "-json", "-closed", lines},
		{"send", addr, lines}, {"send", addr, "-dry-run", lines}, {"send", addr, "-format", hostileText, lines},
		{"replay", addr, letters}, {"replay", addr, dir},
		{"check", "-config", settings}, {"check", settings}, {"check", tokens}, {"check", "-example"},
		{"serve", "-config", settings}, {"serve", "-config", tokens}, {"serve", "-data", lines, "-listen", "127.0.0.1:0"},
		{"plan", "-from", report}, {"plan", "-from", server.URL},
		{"recover", lines}, {"recover", dir}, {"probe", lines}, {"reconcile", addr}, {"reconcile", lines},
		{"relay", "-listen", "tcp://127.0.0.1:0", "-to", "x://" + hostileText}, {"relay", "-listen", "tcp://" + hostileText + ":1", "-to", "tcp://127.0.0.1:1"},
		{"demo", hostileText}, {"help", hostileText}, {"version"},
	}
	for _, cmd := range commands() {
		cases = append(cases, []string{cmd.name, "-" + hostileText}, []string{cmd.name, hostileText, hostileText + "/" + hostileText})
		for _, f := range []string{"-addr", "-config", "-data", "-listen", "-since", "-from", "-to", "-max-line"} {
			cases = append(cases, []string{cmd.name, f, hostileText, hostileText})
		}
	}
	for _, args := range cases {
		p := openTerminal(t)
		code := p.run(args...)
		text := p.end()
		if text == "" && code != 0 {
			t.Errorf("rollway %q: status %d, and nothing is said", args, code)
		}
		harmless(t, text, fmt.Sprintf("rollway %q", args))
	}
	// The tail's server ends each stream, and it would connect again and again.
	p := openTerminal(t)
	tail := p.start(t, "tail", addr, "-o", "json")
	waitFor(t, "the tail's line", func() bool { return strings.Count(p.String(), "2026-05-28") > 0 })
	interruptAndWait(t, tail)
	harmless(t, p.end(), "rollway tail -o json")
}

// What a collector and a relay log of their clients is harmless on a terminal too, and
// has colors.
func TestTerminalOfLogs(t *testing.T) {
	p := openTerminal(t)
	serve := p.start(t, "serve", "-listen", "127.0.0.1:0", "-listen-tcp", "127.0.0.1:0", "-data", t.TempDir())
	address := regexp.MustCompile(`TCP +(\S+),`)
	waitFor(t, "the banner", func() bool { return strings.Contains(p.String(), "rollway query hello") })
	conn, err := net.Dial("tcp", address.FindStringSubmatch(p.String())[1])
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(conn, "{\"msg\":\"x\",%s}\n", hostileText)
	conn.Close()
	waitFor(t, "the rejected event", func() bool { return strings.Contains(p.String(), "events rejected") })
	interruptAndWait(t, serve)
	text := p.end()
	harmless(t, text, "rollway serve")
	if !strings.Contains(text, encode.ColorYellow+"WARN") {
		t.Errorf("the log has no colors: %q", text)
	}
}

func (p *terminalPair) start(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("rollway", args...)
	cmd.Stdout, cmd.Stderr = p.program, p.program
	start(t, cmd)
	t.Cleanup(func() { cmd.Process.Kill() })
	return cmd
}

func interruptAndWait(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	sendSignal(t, cmd, os.Interrupt)
	var exit *exec.ExitError
	if err := cmd.Wait(); err != nil && !errors.As(err, &exit) {
		t.Error(err)
	}
}

// quoted is text as a JSON string that has its controls as they are, where JSON allows it.
func quoted(text string) string {
	var b strings.Builder
	for _, r := range text {
		if r < ' ' || r == utf8.RuneError {
			fmt.Fprintf(&b, `\u%04x`, r)
		} else {
			b.WriteRune(r)
		}
	}
	return `"` + b.String() + `"`
}

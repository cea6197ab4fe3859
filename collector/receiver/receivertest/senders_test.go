package receivertest

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rollway/rollway/collector/config"
	"github.com/rollway/rollway/collector/receiver/decodetest"
	"github.com/rollway/rollway/internal/testkit"
)

// A sender is a client that sends the events of testdata/senders/events.json: a script
// whose head, in comments, says what it is.
type sender struct {
	name   string // of its script and of its recording
	script string
	head   map[string]string // client, to, packages and others
}

// senders are all of them, by name.
func senders(t testing.TB) (list []sender) {
	t.Helper()
	var files []string
	for _, pattern := range []string{"*.py", "*.js", "go/*/main.go", "java/*.xml"} {
		found, err := filepath.Glob(filepath.Join("testdata", "senders", pattern))
		testkit.OK(t, err)
		files = append(files, found...)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), filepath.Ext(file))
		if name == "main" {
			name = filepath.Base(filepath.Dir(file))
		}
		if name == "prelude" || name == "pom" {
			continue
		}
		text, err := os.ReadFile(file)
		testkit.OK(t, err)
		s := sender{name, file, map[string]string{}}
		for line := range strings.Lines(string(text)) {
			key, value, is := strings.Cut(strings.TrimLeft(line, "#/<!- "), ": ")
			if !is || !strings.ContainsAny(line[:1], "#/<") {
				break
			}
			s.head[key] = strings.TrimSuffix(strings.TrimSpace(value), " -->")
		}
		if s.head["client"] == "" || networks[s.head["to"]] == nil {
			t.Fatalf("%s: its head does not say which client it is, or where it sends: %v", file, s.head)
		}
		list = append(list, s)
	}
	slices.SortFunc(list, func(a, b sender) int { return strings.Compare(a.name, b.name) })
	return list
}

// networks are where senders send, with the address of a collector.
var networks = map[string]func(s *Server) net.Addr{
	"http":       func(s *Server) net.Addr { return s.Addr() },
	"tcp":        func(s *Server) net.Addr { return s.TCPAddr() },
	"syslog-tcp": func(s *Server) net.Addr { return s.SyslogAddrs()[0] },
	"syslog-udp": func(s *Server) net.Addr { return s.SyslogAddrs()[1] },
	"gelf-tcp":   func(s *Server) net.Addr { return s.GELFAddrs()[0] },
	"gelf-udp":   func(s *Server) net.Addr { return s.GELFAddrs()[1] },
	"forward":    func(s *Server) net.Addr { return s.ForwardAddrs()[0] },
}

func everyListener(c *config.Config) {
	c.ListenTCP, c.ListenForward = "tcp://127.0.0.1:0", "tcp://127.0.0.1:0"
	c.ListenSyslog, c.ListenGELF = "tcp://127.0.0.1:0 udp://127.0.0.1:0", "tcp://127.0.0.1:0 udp://127.0.0.1:0"
}

// A recording is what a sender once sent, and when.
type recording struct {
	Begin, End time.Time
	Events     int
	sent       []byte // requests in a row, what came over a connection, or datagrams, each after its length
}

func (s *sender) recorded() string {
	return filepath.Join("testdata", "senders", "recorded", s.name+".gz")
}

func (s *sender) read(t testing.TB) (r recording) {
	t.Helper()
	packed, err := os.ReadFile(s.recorded())
	if err != nil {
		t.Fatalf("%v; record it: ROLLWAY_NIGHTLY=senders REQUIRE=all go test -run TestSendersLive/%s -update", err, s.name)
	}
	z, err := gzip.NewReader(bytes.NewReader(packed))
	testkit.OK(t, err)
	text, err := io.ReadAll(z)
	testkit.OK(t, err)
	head, sent, _ := bytes.Cut(text, []byte("\n"))
	testkit.OK(t, json.Unmarshal(head, &r))
	r.sent = sent
	return r
}

func (r recording) write(t testing.TB, file string) {
	t.Helper()
	var b bytes.Buffer
	z, _ := gzip.NewWriterLevel(&b, gzip.BestCompression)
	testkit.OK(t, json.NewEncoder(z).Encode(r))
	z.Write(r.sent)
	testkit.OK(t, z.Close())
	testkit.OK(t, os.WriteFile(file, b.Bytes(), 0o644))
}

// run has the client itself send to a collector.
func (s *sender) run(t *testing.T) recording {
	t.Helper()
	server := Run(t, everyListener)
	to := s.head["to"]
	var addr string
	var sent func() []byte
	if to == "http" {
		p := &proxy{to: server.URL}
		front := httptest.NewUnstartedServer(p)
		front.Config.Protocols = new(http.Protocols)
		front.Config.Protocols.SetHTTP1(true)
		front.Config.Protocols.SetUnencryptedHTTP2(true) // gRPC
		front.Start()
		defer front.Close()
		addr = front.Listener.Addr().String()
		sent = func() []byte {
			p.mu.Lock()
			defer p.mu.Unlock()
			if t.Failed() || testing.Verbose() {
				t.Logf("the client got\n%.3000s", p.answers.String())
			}
			return bytes.Clone(p.seen.Bytes())
		}
	} else {
		network := "tcp"
		if strings.HasSuffix(to, "udp") {
			network = "udp"
		}
		r := record(t, network, networks[to](server).String())
		addr, sent = r.addr, r.bytes
	}
	host, port, err := net.SplitHostPort(addr)
	testkit.OK(t, err)
	events, err := filepath.Abs(filepath.Join("testdata", "senders", "events.json"))
	testkit.OK(t, err)
	began := time.Now()
	s.start(t, []string{"HOST=" + host, "PORT=" + port, "TO=http://" + addr, "DSN=" + dsn("http://"+addr), "EVENTS=" + events, "COLLECTOR=" + server.URL, "GOWORK=off"})
	r := recording{Begin: began.UTC(), End: time.Now().UTC()}
	r.Events = server.settled()
	r.sent = sent()
	return r
}

func (s *Server) came() int {
	r := s.Stats().Receive
	return int(r.Received + r.IgnoredTotal())
}

// settled returns how many events have come once no more come for a while.
func (s *Server) settled() int {
	for n, same := s.came(), 0; ; time.Sleep(50 * time.Millisecond) {
		if now := s.came(); now != n {
			n, same = now, 0
		} else if same++; same > 10 {
			return n
		}
	}
}

// start runs the script after what all scripts of its language begin with.
func (s *sender) start(t *testing.T, env []string) {
	t.Helper()
	packages, cmd := strings.Fields(s.head["packages"]), (*exec.Cmd)(nil)
	switch filepath.Ext(s.script) {
	case ".go":
		cmd = exec.Command(testkit.Program(t, "go"), "run", "-trimpath", "./"+s.name)
		cmd.Dir = filepath.Dir(filepath.Dir(s.script))
	case ".xml":
		config, err := filepath.Abs(s.script)
		testkit.OK(t, err)
		cmd = exec.Command(testkit.Program(t, "java"), "-Dlogback.configurationFile="+config, "-Dlog4j2.configurationFile="+config, "-cp", classpath(t), s.head["main"])
	}
	if cmd != nil {
		cmd.Env = append(os.Environ(), env...)
		out, err := cmd.CombinedOutput()
		if t.Logf("the client said: %s", out); err != nil {
			t.Fatal(err)
		}
		return
	}
	begin, err := os.ReadFile(filepath.Join("testdata", "senders", "prelude"+filepath.Ext(s.script)))
	testkit.OK(t, err)
	script, err := os.ReadFile(s.script)
	testkit.OK(t, err)
	text := string(begin) + string(script)
	if filepath.Ext(s.script) == ".py" {
		runPython(t, env, text, packages...)
		return
	}
	runNode(t, env, text, packages...)
}

// classpath is where the clients in Java are, which are compiled once.
func classpath(t *testing.T) string {
	t.Helper()
	testkit.Program(t, "mvn")
	path, err := compileJava()
	testkit.OK(t, err)
	return path
}

var compileJava = sync.OnceValues(func() (classpath string, err error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	target := filepath.Join(cache, "rollway-test", "java")
	path := filepath.Join(target, "classpath") // Maven's own output has escapes of colors
	cmd := exec.Command("mvn", "-q", "-B", "-Dtarget="+target, "compile", "exec:exec", "-Dexec.executable=echo", "-Dexec.args=%classpath", "-Dexec.outputFile="+path)
	cmd.Dir = filepath.Join("testdata", "senders", "java")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("mvn compile: %w\n%s", err, out)
	}
	text, err := os.ReadFile(path)
	return strings.TrimSpace(string(text)), err
})

// fetchSenders has what the clients need fetched and compiled, some at a time: one after another
// that takes most of the time of all.
func fetchSenders(t *testing.T, list []sender) {
	begun := map[string]bool{}
	for _, s := range list {
		packages, kind := strings.Fields(s.head["packages"]), filepath.Ext(s.script)
		if key := kind + s.head["packages"]; begun[key] || len(packages) == 0 && (kind == ".py" || kind == ".js") {
			continue
		} else {
			begun[key] = true
		}
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			switch kind {
			case ".py":
				pip(t, packages...)
			case ".js":
				testkit.NPM(t, packages...)
			case ".go":
				cmd := exec.Command(testkit.Program(t, "go"), "build", "-trimpath", "./...")
				cmd.Dir = filepath.Dir(filepath.Dir(s.script))
				if out, err := cmd.CombinedOutput(); err != nil {
					t.Fatalf("%v: %s", err, out)
				}
			case ".xml":
				classpath(t)
			}
		})
	}
}

// replay sends a recording again and returns the lines that are stored.
func (s *sender) replay(t testing.TB, r recording) []string {
	t.Helper()
	server := Run(t, everyListener)
	switch to := s.head["to"]; {
	case to == "http":
		for _, req := range decodetest.ReadRequests(t, r.sent) {
			req.URL.Scheme, req.URL.Host, req.RequestURI = "http", server.Addr().String(), ""
			resp, err := transportOf(req).RoundTrip(req)
			testkit.OK(t, err)
			io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
		}
		overHTTP2.CloseIdleConnections() // the collector would wait for them
	case strings.HasSuffix(to, "udp"):
		conn, err := net.Dial("udp", networks[to](server).String())
		testkit.OK(t, err)
		defer conn.Close()
		for sent := r.sent; len(sent) > 0; {
			head, rest, _ := bytes.Cut(sent, []byte(" "))
			n, err := strconv.Atoi(string(head))
			testkit.OK(t, err)
			_, err = conn.Write(rest[:n])
			testkit.OK(t, err)
			sent = rest[n:]
		}
		Eventually(t, fmt.Sprintf("%d events", r.Events), func() bool { return server.came() >= r.Events })
	default:
		conn, err := net.Dial("tcp", networks[to](server).String())
		testkit.OK(t, err)
		defer conn.Close()
		_, err = conn.Write(r.sent)
		testkit.OK(t, err)
		testkit.OK(t, conn.(*net.TCPConn).CloseWrite())
		io.Copy(io.Discard, conn) // until the collector has read all
	}
	return server.Lines(t)
}

// TestSendersLive has each client send for real, some at a time, as each is waited for.
// Nothing may have become of it that the recording does not show; with -update that is made
// anew.
func TestSendersLive(t *testing.T) {
	testkit.Nightly(t, testkit.Senders, "its clients come from a registry")
	t.Run("fetch", func(t *testing.T) { fetchSenders(t, senders(t)) })
	for _, s := range senders(t) {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			r := s.run(t)
			if *update {
				r.write(t, s.recorded())
				return
			}
			live, then := s.compare(t, r), s.compare(t, s.read(t))
			for _, d := range live {
				if !slices.ContainsFunc(then, func(o difference) bool { return o.path == d.path }) {
					t.Errorf("%s of event %v is now %s", d.path, d.events, d.stored)
				}
			}
		})
	}
}

// TestSenders sends again what the clients of testdata/senders once sent, and compares
// docs/SENDERS.md, which -update writes, with what became of it.
func TestSenders(t *testing.T) {
	list := senders(t)
	if len(list) == 0 {
		t.Fatal("there are no senders")
	}
	reasons := readReasons(t)
	found := make([][]difference, len(list))
	t.Run("replay", func(t *testing.T) {
		for i, s := range list {
			t.Run(s.name, func(t *testing.T) {
				t.Parallel()
				found[i] = s.compare(t, s.read(t))
			})
		}
	})
	for i, s := range list {
		for j := range found[i] {
			d := &found[i][j]
			if d.why = reasons.of(s.name, d); d.why == "" {
				t.Errorf("%s: %s of event %v is %s, and testdata/senders/reasons.txt does not say why", s.name, d.path, d.events, d.stored)
			}
		}
	}
	text := senderPage(t, list, found)
	page := filepath.Join("..", "..", "..", "docs", "SENDERS.md")
	if *update {
		testkit.OK(t, os.WriteFile(page, text, 0o644))
		reasons.write(t)
		return
	}
	if kept, err := os.ReadFile(page); err != nil || !bytes.Equal(kept, text) {
		t.Errorf("docs/SENDERS.md is not what the recordings give (%v); write it anew: go test ./receiver/receivertest -run TestSenders -update", err)
	}
}

// Reasons are lines of testdata/senders/reasons.txt: a client, a field and why it is not as
// expected, each of the first two perhaps with * at its end.
type reasons struct {
	list []reason
}

type reason struct {
	line, client, path, why string
	used                    *bool
}

var reasonLine = regexp.MustCompile(`^(\S+) +(\S+) +(.+)$`)

func readReasons(t testing.TB) (r reasons) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "senders", "reasons.txt"))
	testkit.OK(t, err)
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSuffix(line, "\n")
		m := reasonLine.FindStringSubmatch(line)
		if m == nil {
			t.Fatalf("reasons.txt: %q is not a client, a field and a reason", line)
		}
		r.list = append(r.list, reason{line, m[1], m[2], m[3], new(bool)})
	}
	return r
}

func (r reasons) of(client string, d *difference) string {
	for _, one := range r.list {
		if like(one.client, client) && like(one.path, d.path) {
			*one.used = true
			return one.why
		}
	}
	return ""
}

func like(pattern, text string) bool {
	begin, any := strings.CutSuffix(pattern, "*")
	return text == pattern || any && strings.HasPrefix(text, begin)
}

// write leaves out what no difference needs any more.
func (r reasons) write(t testing.TB) {
	t.Helper()
	var b strings.Builder
	for _, one := range r.list {
		if *one.used {
			fmt.Fprintln(&b, one.line)
		}
	}
	testkit.OK(t, os.WriteFile(filepath.Join("testdata", "senders", "reasons.txt"), []byte(b.String()), 0o644))
}

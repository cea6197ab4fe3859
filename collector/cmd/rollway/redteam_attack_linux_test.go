package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rollway/rollway/internal/testkit"
)

func init() { programs["attack"] = attack }

// attack is a program that keeps connections to a collector: attack ADDR plain|tls
// KIND:CONNECTIONS …. It begins at the end of its input, whose words are tokens for them in
// turn. Without tokens the connections come from 127.0.0.2 to 127.0.0.9. Its output ends when
// each connection was made or refused once.
func attack() {
	addr, secure := os.Args[1], os.Args[2] == "tls"
	input, _ := io.ReadAll(os.Stdin)
	tokens := strings.Fields(string(input))
	var all, begun sync.WaitGroup
	for _, arg := range os.Args[3:] {
		kind, count, _ := strings.Cut(arg, ":")
		n, _ := strconv.Atoi(count)
		for i := range n {
			a := attacker{addr: addr, secure: secure}
			if len(tokens) > 0 {
				a.header = "Authorization: Bearer " + tokens[i%len(tokens)] + "\r\n"
			} else {
				a.from.LocalAddr = &net.TCPAddr{IP: net.IPv4(127, 0, 0, byte(2+i%8))}
			}
			begun.Add(1)
			all.Go(func() {
				once := sync.OnceFunc(begun.Done)
				for ; ; time.Sleep(10 * time.Millisecond) { // refused or closed
					c := a.dial()
					once()
					if c != nil {
						attacks[kind](c, a.header)
						c.Close()
					}
				}
			})
		}
	}
	begun.Wait()
	os.Stdout.Close()
	all.Wait()
}

// An attacker keeps a connection.
type attacker struct {
	from   net.Dialer
	addr   string
	secure bool
	header string
}

func (a *attacker) dial() net.Conn {
	c, err := a.from.Dial("tcp", a.addr)
	if err != nil || !a.secure {
		return c
	}
	secured := tls.Client(c, &tls.Config{InsecureSkipVerify: true})
	if secured.Handshake() != nil {
		c.Close()
		return nil
	}
	return secured
}

// attacks are what a connection is used for until it fails.
var attacks = map[string]func(c net.Conn, header string){
	"junk":   func(c net.Conn, header string) { repeat(c, attackRequest(header, strings.Repeat("junk\n", 12_000))) },
	"bombs":  func(c net.Conn, header string) { repeat(c, attackRequest(header, bomb())) },
	"idle":   func(c net.Conn, _ string) { io.Copy(io.Discard, c) },
	"unread": unread,
}

// unread sends requests and never reads an answer.
func unread(c net.Conn, header string) {
	request := attackRequest(header, strings.Repeat("1\n", 100)) // whose answer is 50 times as long
	for {
		if _, err := c.Write(request); err != nil {
			return
		}
	}
}

// repeat sends a request again as soon as it is answered.
func repeat(c net.Conn, request []byte) {
	answers := bufio.NewReader(c)
	for {
		if _, err := c.Write(request); err != nil {
			return
		}
		resp, err := http.ReadResponse(answers, nil)
		if err != nil {
			return
		}
		io.Copy(io.Discard, resp.Body)
	}
}

// bomb is 16 KiB of events that are rejected, in 54 bytes.
func bomb() string {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	z.Write([]byte(strings.Repeat("1\n", 8192)))
	z.Close()
	return b.String()
}

func attackRequest(header, body string) []byte {
	return fmt.Appendf(nil, "POST /api/logs HTTP/1.1\r\nHost: localhost\r\n%sContent-Length: %d\r\n\r\n%s", header, len(body), body)
}

// startAttack runs attack in a control group and on a processor of its own. begun returns when
// each connection was made or refused once.
func startAttack(t *testing.T, addr, tokens string, kinds []string) (begun, stop func()) {
	t.Helper()
	group := attackGroup(t)
	how := "plain"
	host, secure := strings.CutPrefix(addr, "https://")
	if secure {
		how = "tls"
	}
	cmd := exec.Command("attack", append([]string{strings.TrimPrefix(host, "http://"), how}, kinds...)...)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	testkit.OK(t, err)
	out, err := cmd.StdoutPipe()
	testkit.OK(t, err)
	// A child inherits the processors of the thread that starts it.
	runtime.LockOSThread()
	var before, last unix.CPUSet
	testkit.OK(t, unix.SchedGetaffinity(0, &before))
	for cpu := range 8 * len(before) * 8 {
		if before.IsSet(cpu) {
			last.Zero()
			last.Set(cpu)
		}
	}
	testkit.OK(t, unix.SchedSetaffinity(0, &last))
	err = cmd.Start()
	testkit.OK(t, unix.SchedSetaffinity(0, &before))
	runtime.UnlockOSThread()
	testkit.OK(t, err)
	stop = sync.OnceFunc(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	t.Cleanup(stop)
	testkit.OK(t, os.WriteFile(filepath.Join(group, "cgroup.procs"), []byte(strconv.Itoa(cmd.Process.Pid)), 0o644))
	io.WriteString(in, tokens)
	in.Close()
	return func() { io.Copy(io.Discard, out) }, stop
}

// attackGroup makes a control group for processors' time, of version 1 or 2.
func attackGroup(t *testing.T) string {
	t.Helper()
	for _, root := range []string{"/sys/fs/cgroup/cpu", "/sys/fs/cgroup"} {
		dir := filepath.Join(root, fmt.Sprintf("rollway-attack-%d-%d", os.Getpid(), time.Now().UnixNano()))
		if os.Mkdir(dir, 0o755) != nil {
			continue
		}
		t.Cleanup(func() {
			for range 100 { // until the process in it is gone
				if err := os.Remove(dir); err == nil || errors.Is(err, os.ErrNotExist) {
					return
				}
				time.Sleep(10 * time.Millisecond)
			}
			t.Errorf("%s cannot be removed", dir)
		})
		return dir
	}
	testkit.Missing(t, "a control group for processors, which takes root")
	return ""
}

// A witness sends lines and asks probes beside an attack, and notes how long each takes.
type witness struct {
	*target
	kept, fresh *http.Client
	every       time.Duration // from a line to the next
	anew        int           // one in so many lines comes over a new connection, and has a probe beside it

	mu     sync.Mutex
	posts  []time.Duration // guarded by mu
	probes []time.Duration // guarded by mu
	failed []string        // guarded by mu
}

func newWitness(a *target) *witness {
	client := func(keep bool) *http.Client {
		return &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{DisableKeepAlives: !keep, MaxIdleConnsPerHost: 16, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	}
	w := &witness{target: a, kept: client(true), fresh: client(false), every: 10 * time.Millisecond, anew: 5}
	if strings.HasPrefix(a.addr, "https:") {
		// Beside eight attackers a ninth of the processors is its share: 30 handshakes of TLS a second
		// and 100 lines take all of that where the collector has 0.8 processors.
		w.every, w.anew = 20*time.Millisecond, 20
	}
	return w
}

// do sends one request and notes what came of it in list.
func (w *witness) do(client *http.Client, list *[]time.Duration, method, path, body string) {
	r, err := http.NewRequest(method, w.addr+path, strings.NewReader(body))
	testkit.OK(w.t, err)
	if w.token != "" {
		r.Header.Set("Authorization", "Bearer "+w.token)
	}
	begin := time.Now()
	resp, err := client.Do(r)
	what := fmt.Sprint(err)
	if err == nil {
		answer, readErr := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err, what = readErr, fmt.Sprint(resp.Status, " ", string(answer[:min(len(answer), 300)])); resp.StatusCode != 200 {
			err = errors.New(resp.Status)
		}
	}
	took := time.Since(begin)
	w.mu.Lock()
	defer w.mu.Unlock()
	if *list = append(*list, took); err != nil {
		w.failed = append(w.failed, fmt.Sprintf("%s %s after %v: %s", method, path, took, what))
	}
}

// watch sends lines and, over new connections, probes, however long each takes.
func (w *witness) watch(d time.Duration) {
	var out sync.WaitGroup
	defer out.Wait()
	tick := time.NewTicker(w.every)
	defer tick.Stop()
	probes := []string{"/healthz", "/readyz", "/metrics"}
	for i := range int(d / w.every) {
		<-tick.C
		client := w.kept
		if i%w.anew == 0 {
			client = w.fresh
			out.Go(func() { w.do(client, &w.probes, "GET", probes[i/w.anew%3], "") })
		}
		out.Go(func() { w.do(client, &w.posts, "POST", "/api/logs", `{"msg":"of a victim"}`) })
	}
}

// allAttacks are made one by one, and all at once.
var allAttacks = []string{"junk:300", "bombs:1500", "unread:400", "idle:1000"}

// A siege is how long an attack goes on, and what a client may notice of it.
type siege struct {
	early        bool          // the witness begins before each connection was made
	settle, last time.Duration // before the witness begins, and from then on
	p99, probe   time.Duration // of the witness, at most
	share        int           // of the connections, one in share is made
	tries        int           // how often it is measured until p99 and probe are kept
}

// fullSiege is that of make redteam, on a machine that does nothing else, or little: it is measured
// twice at most.
var fullSiege = siege{settle: time.Second, last: 6 * time.Second, p99: 250 * time.Millisecond, probe: time.Second, share: 1, tries: 2}

// shortSiege is that of a run of all tests, which has other tests beside it. Its p99 is 30 to 60 ms
// on two cores that others use too, and 600 to 1,000 ms without turns on the processors. Other tests
// may take both cores for a second or two: then it is measured again.
var shortSiege = siege{settle: 500 * time.Millisecond, last: 1500 * time.Millisecond, p99: 500 * time.Millisecond, probe: 2 * time.Second, share: 4, tries: 4}

// underAttack checks that a collector serves a witness while attackers keep connections to it, and
// takes no thread for each of them.
func underAttack(t *testing.T, a *target, tokens string, how siege, kinds ...string) {
	t.Helper()
	kinds = slices.Clone(kinds)
	for i, kind := range kinds {
		name, count, _ := strings.Cut(kind, ":")
		n, err := strconv.Atoi(count)
		testkit.OK(t, err)
		kinds[i] = fmt.Sprintf("%s:%d", name, n/how.share)
	}
	a.ready()
	a.bound = mostResident(5000) // 4,000 whose requests wait take as much
	if strings.HasPrefix(a.addr, "https:") {
		a.bound = mostResident(10000)
	}
	begun, stop := startAttack(t, a.addr, tokens, kinds)
	if !how.early {
		begun()
	}
	time.Sleep(how.settle)
	w := newWitness(a)
	var p99, probe time.Duration
	for range how.tries {
		w.posts, w.probes = nil, nil
		w.watch(how.last)
		slices.Sort(w.posts)
		slices.Sort(w.probes)
		if p99, probe = w.posts[len(w.posts)*99/100], w.probes[len(w.probes)-1]; p99 <= how.p99 && probe <= how.probe {
			break
		}
	}
	w.kept.CloseIdleConnections()
	threads, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", a.cmd.Process.Pid))
	testkit.OK(t, err)
	stop()
	left := a.unharmed()
	testkit.Attack{
		Attack: strings.Join(kinds, ", ") + " connections", Times: len(w.posts), Promised: fmt.Sprintf("POST of another client p99 ≤ %v, 0 refused; probes ≤ %v", how.p99, how.probe),
		Measured: fmt.Sprintf("p99 %v, %d refused; probes ≤ %v; %d threads; %s", p99.Round(time.Millisecond), len(w.failed), probe.Round(time.Millisecond), len(threads), left),
	}.Report(t)
	if p99 > how.p99 || probe > how.probe || len(threads) > 64 {
		t.Errorf("p99 %v, probes ≤ %v, %d threads", p99, probe, len(threads))
	}
	if len(w.failed) > 0 {
		t.Errorf("%d requests failed: %s", len(w.failed), w.failed[0])
	}
}

// TestRedteamAttack attacks from eight addresses.
func TestRedteamAttack(t *testing.T) {
	testkit.NoRace(t, "its victims wait for a collector that is ten times as slow")
	sets := [][]string{allAttacks}
	for _, kind := range allAttacks[:testkit.Rounds(t, testkit.Redteam, 0, len(allAttacks))] {
		sets = append(sets, []string{kind})
	}
	how := []siege{shortSiege, fullSiege}[testkit.Rounds(t, testkit.Redteam, 0, 1)]
	for _, kinds := range sets {
		t.Run(strings.Join(kinds, "+"), func(t *testing.T) { underAttack(t, newTarget(t, ""), "", how, kinds...) })
	}
}

// TestRedteamAttackTLS is the same within TLS.
func TestRedteamAttackTLS(t *testing.T) {
	testkit.NoRace(t, "its victims wait for a collector that is ten times as slow")
	how := []siege{shortSiege, fullSiege}[testkit.Rounds(t, testkit.Redteam, 0, 1)]
	underAttack(t, newTargetTLS(t), "", how, allAttacks...)
}

// TestRedteamHandshakes is an attack whose connections all begin at once: 3,200 handshakes of
// TLS come before a client's line. A client waits for longer while they last.
func TestRedteamHandshakes(t *testing.T) {
	testkit.Nightly(t, testkit.Redteam, "its victims wait for longer beside other tests")
	how := fullSiege
	how.early, how.settle, how.p99, how.probe = true, 0, 2*time.Second, 2*time.Second
	underAttack(t, newTargetTLS(t), "", how, allAttacks...)
}

func newTargetTLS(t *testing.T) *target {
	t.Helper()
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	writeCertificate(t, 1, cert, key)
	t.Setenv("SSL_CERT_FILE", cert) // for commands
	a := newTarget(t, fmt.Sprintf("tls: {cert: %q, key: %q}\n", cert, key))
	a.client.Transport = newWitness(a).fresh.Transport
	return a
}

// TestRedteamAttackTokens attacks with tokens of eight tenants from the victim's address.
func TestRedteamAttackTokens(t *testing.T) {
	testkit.NoRace(t, "its victims wait for a collector that is ten times as slow")
	how := []siege{shortSiege, fullSiege}[testkit.Rounds(t, testkit.Redteam, 0, 1)]
	var list, secrets bytes.Buffer
	for i := range 8 {
		secret := strings.Repeat(string(rune('a'+i)), 20)
		fmt.Fprintf(&list, "- {name: t%d, secret: %s, tenant: t%d}\n", i, secret, i)
		fmt.Fprintln(&secrets, secret)
	}
	fmt.Fprintf(&list, "- {name: all, secret: %s, may: [read, write]}\n", secretAll)
	tokens := filepath.Join(t.TempDir(), "tokens.yaml")
	writeText(t, tokens, list.String())
	a := newTarget(t, fmt.Sprintf("access: {tokens: %q}\n", tokens))
	a.token = secretAll
	underAttack(t, a, secrets.String(), how, allAttacks...)
}

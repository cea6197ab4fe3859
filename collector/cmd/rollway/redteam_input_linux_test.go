package main

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zlib"
	"github.com/klauspost/compress/zstd"

	"github.com/rollway/rollway/internal/testkit"
)

// packers make what unpacks to many times its size.
var packers = map[string]func(io.Writer) io.WriteCloser{
	"gzip":    func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) },
	"deflate": func(w io.Writer) io.WriteCloser { return zlib.NewWriter(w) },
	"br":      func(w io.Writer) io.WriteCloser { return brotli.NewWriterLevel(w, 5) },
	"snappy":  func(w io.Writer) io.WriteCloser { return snappy.NewBufferedWriter(w) },
	"zstd": func(w io.Writer) io.WriteCloser {
		z, err := zstd.NewWriter(w, zstd.WithWindowSize(8<<20))
		if err != nil {
			panic(err) // the options are valid
		}
		return z
	},
}

// receivers with a head and a tail that make a body of any JSON text in between.
var receivers = []struct{ path, kind, head, tail string }{
	{"/api/logs", "application/json", "", ""},
	{"/v1/logs", "application/json", `{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"body":{"stringValue":"x"},"attributes":`, `}]}]}]}`},
	{"/loki/api/v1/push", "application/json", `{"streams":[{"stream":{"a":"b"},"values":`, `}]}`},
	{"/_bulk", "application/x-ndjson", "{\"index\":{}}\n", "\n"},
	{"/services/collector/event", "application/json", `{"event":`, `}`},
	{"/services/collector/raw", "text/plain", "", ""},
	{"/api/7/store/", "application/json", "", ""},
	{"/api/7/envelope/", "application/x-sentry-envelope", "{}\n{\"type\":\"event\"}\n", "\n"},
}

// contents are texts that cost a parser more than their size.
func contents() map[string]string {
	deep := strings.Repeat("[", 200_000) + strings.Repeat("]", 200_000)
	var same, many, unicode strings.Builder
	for n := range 60_000 {
		fmt.Fprintf(&same, `"key":%d,`, n)
		fmt.Fprintf(&many, `"%s":1,`, collision(n))
		unicode.WriteString(`\u0000\ud800\u202e`)
	}
	return map[string]string{
		"deep arrays": deep, "deep objects": strings.Repeat(`{"a":`, 100_000) + "1" + strings.Repeat("}", 100_000), "open objects": strings.Repeat(`{"a":`, 300_000),
		"one key 60,000 times": "{" + same.String() + `"msg":"x"}`, "60,000 keys of one hash": "{" + many.String() + `"msg":"x"}`,
		"a key of 1 MiB": `{"` + strings.Repeat("k", 1<<20) + `":1}`, "a number of 900,000 digits": `{"n":` + strings.Repeat("9", 900_000) + `}`,
		"huge exponents": `{"time":1e999999999,"level":-1e999999999,"n":1e-999999999}`, "escapes": `{"msg":"` + unicode.String() + `"}`,
		"commas": strings.Repeat(",", 1<<20), "quotes": strings.Repeat(`"`, 1<<20), "backslashes": `{"msg":"` + strings.Repeat(`\`, 1<<20), "blanks": strings.Repeat(" ", 4<<20),
		"tiny events": strings.Repeat("{}\n", 300_000), "tiny junk": strings.Repeat("1\n", 300_000), "empty lines": strings.Repeat("\n", 2<<20),
		"times": `{"time":"` + strings.Repeat("9", 500_000) + `-01-01T00:00:00Z"}`, "invalid UTF-8": `{"msg":"` + strings.Repeat("\xff\xfe", 400_000) + `"}`,
		"a list of pairs": "[" + strings.Repeat(`["1","x"],`, 200_000) + `["1","x"]]`, "labels": `{"streams":[{"stream":{` + strings.TrimSuffix(many.String()[:900_000], ",") + `},"values":[` + strings.Repeat(`["1","x"],`, 20_000) + `["1","x"]]}]}`,
	}
}

// collision returns keys that many simple hashes map to one value: "Aa" and "BB" in all orders.
func collision(n int) string {
	var b strings.Builder
	for bit := range 17 {
		b.WriteString([]string{"Aa", "BB"}[n>>bit&1])
	}
	return b.String()
}

// TestRedteamBombs sends every receiver texts that cost more than their size, plain and in
// every coding, and bombs of zeros in every coding, several at the same time.
func TestRedteamBombs(t *testing.T) {
	at := testkit.Rounds(t, testkit.Redteam, 2, 8)
	every := testkit.Rounds(t, testkit.Redteam, 11, 3)
	if testkit.Race(t, "unpacking takes ten times as long: it has fewer bombs") {
		every *= 5
	}
	a := newTarget(t, "").ready()
	type bomb struct{ name, path, kind, coding, body string }
	var bombs []bomb
	n := 0
	add := func(name, path, kind, coding string, body func() string) {
		if n++; n%every == 0 {
			bombs = append(bombs, bomb{name, path, kind, coding, body()})
		}
	}
	pack := func(coding, text string, times int) string {
		var b bytes.Buffer
		w := packers[coding](&b)
		for range times {
			io.WriteString(w, text)
		}
		testkit.OK(t, w.Close())
		return b.String()
	}
	texts, codings := contents(), []string{"gzip", "deflate", "br", "snappy", "zstd"}
	for i, r := range receivers {
		for name, text := range texts {
			body := r.head + text + r.tail
			add(name, r.path, r.kind, "", func() string { return body })
			coding := codings[(i+len(name))%len(codings)]
			add(name, r.path, r.kind, coding, func() string { return pack(coding, body, 1) })
		}
		for _, coding := range codings {
			add("512 MiB of zeros", r.path, r.kind, coding, func() string { return pack(coding, string(make([]byte, 8<<20)), 64) })
		}
	}
	client := &http.Client{Timeout: time.Minute, Transport: &http.Transport{MaxIdleConnsPerHost: at}}
	answers, slowest, slowestName := map[int]int{}, time.Duration(0), ""
	var mu sync.Mutex
	for _, b := range bombs {
		var sending sync.WaitGroup
		for range at {
			sending.Go(func() {
				req, err := http.NewRequest("POST", a.addr+b.path, strings.NewReader(b.body))
				if err != nil {
					t.Error(err)
					return
				}
				req.Header.Set("Content-Type", b.kind)
				if b.coding != "" {
					req.Header.Set("Content-Encoding", b.coding)
				}
				begin := time.Now()
				resp, err := client.Do(req)
				mu.Lock()
				defer mu.Unlock()
				if took := time.Since(begin); took > slowest {
					slowest, slowestName = took, b.name+" in "+b.coding+" to "+b.path
				}
				if err != nil {
					if !isReset(err) { // answered before all was sent
						t.Errorf("%s in %q to %s: %v", b.name, b.coding, b.path, err)
					}
					answers[0]++
					return
				}
				io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
				answers[resp.StatusCode]++
				if resp.StatusCode >= 500 && resp.StatusCode != 503 {
					t.Errorf("%s in %q to %s: %s", b.name, b.coding, b.path, resp.Status)
				}
			})
		}
		sending.Wait()
	}
	client.CloseIdleConnections()
	left := a.unharmed()
	testkit.Attack{
		Attack: "bombs: unpacked, nested, of many keys, digits and pieces, to every HTTP receiver in every coding", Times: len(bombs) * at,
		Promised: "an answer, no 5xx except 503; memory as documented",
		Measured: fmt.Sprintf("answers %v, slowest %v; %s", answers, slowest.Round(time.Millisecond), left),
	}.Report(t)
	t.Logf("slowest: %s, %v", slowestName, slowest)
	if slowest > 30*time.Second {
		t.Errorf("%s took %v", slowestName, slowest)
	}
}

// TestRedteamQueries asks what is expensive to answer, and does not read answers.
func TestRedteamQueries(t *testing.T) {
	how := time.Duration(testkit.Rounds(t, testkit.Redteam, 300, 3000)) * time.Millisecond
	size := testkit.Rounds(t, testkit.Redteam, 8, 60)
	a := newTarget(t, "timeouts: {query: 5s, write: 3s}\n")
	a.bound = mostResident(600) + 128<<20 + 200<<20 // what queries with last and tails that are not read take
	line := `{"msg":"` + strings.Repeat("some words that are found ", 30) + `","k":{"a":[1,2,3,"` + strings.Repeat("v", 100) + `"]}}` + "\n"
	for range size {
		if code, body := a.request("POST", "/api/logs", strings.Repeat(line, 1<<20/len(line))); code != 200 {
			t.Fatal(code, body)
		}
	}
	a.ready()
	ask := func(path string, read bool) *assault {
		return &assault{conns: 40, run: func(c net.Conn, stop <-chan struct{}) (times int) {
			for in := bufio.NewReader(c); ; times++ {
				select {
				case <-stop:
					return times
				default:
				}
				if _, err := fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", path); err != nil {
					return times
				}
				c.SetReadDeadline(time.Now().Add(20 * time.Second))
				if !read {
					io.ReadFull(in, make([]byte, 100))
					<-stop
					return times + 1
				}
				resp, err := http.ReadResponse(in, nil)
				if err != nil {
					return times
				}
				if _, err := io.Copy(io.Discard, resp.Body); err != nil {
					return times
				}
			}
		}}
	}
	terms := strings.Repeat(`+attrs~zzz`, 480)
	var ors strings.Builder
	for n := range 400 {
		fmt.Fprintf(&ors, "+or+attrs~y%d", n)
	}
	worst, times := time.Duration(0), int64(0)
	for name, as := range map[string]*assault{
		"attrs~ 480 times":        ask("/api/query?q=x"+terms, true),
		"400 ors":                 ask("/api/query?q=attrs~yy"+ors.String(), true),
		"100 parentheses":         ask("/api/query?q="+strings.Repeat("(", 100)+"attrs~zz"+strings.Repeat(")", 100), true),
		"negations":               ask("/api/query?q="+strings.Repeat("not+", 99)+"attrs~zz", true),
		"a long text":             ask("/api/query?q="+strings.Repeat("some%20", 1000), true),
		"the last million":        ask("/api/query?last=1000000", true),
		"all, not read":           ask("/api/query?limit=1000000", false),
		"the last, not read":      ask("/api/query?last=10000", false),
		"tails that do not read":  ask("/api/tail?from=0", false),
		"tails with many terms":   ask("/api/tail?q=x"+terms, false),
		"no query":                ask("/api/query?q=(((", true),
		"a header with 60 KiB":    ask("/api/query?q=zz HTTP/1.1\r\nX: "+strings.Repeat("y", 60<<10)+"\r\nY:", true),
		"a target of 60 KiB":      ask("/api/query?q="+strings.Repeat("%41", 20<<10), true),
		"the ledger, and metrics": ask("/metrics", true),
	} {
		p99 := a.under(as, how)
		t.Logf("%-30s %6d times, a victim's p99 %v, resident %d MiB", name, as.times.Load(), p99, residentPeak(t, a.cmd.Process.Pid)>>20)
		worst, times = max(worst, p99), times+as.times.Load()
	}
	left := a.unharmed()
	testkit.Attack{
		Attack: "queries and tails: 480 terms, nesting, long texts, all lines, not read", Times: int(times),
		Promised: "no victim is refused; nothing is left over",
		Measured: fmt.Sprintf("0 refused, p99 %v under the worst; %s", worst.Round(time.Millisecond), left),
	}.Report(t)
}

// listensAt returns where the target says that it listens, from the row of a name.
func (a *target) listensAt(row, proto string) string {
	a.t.Helper()
	m := regexp.MustCompile(`(?m)^  ` + row + ` +(?:` + proto + ` )?([0-9.]+:[0-9]+)`).FindStringSubmatch(a.stdout.String())
	if m == nil {
		a.t.Fatalf("no address of %s in\n%s", row, a.stdout.String())
	}
	return m[1]
}

// TestRedteamPaths names tenants, indices and projects so that they might lead out of a
// folder, or into a file that is the collector's: nothing but the files of docs/FORMAT.md is
// written.
func TestRedteamPaths(t *testing.T) {
	rounds := testkit.Rounds(t, testkit.Redteam, 1, 5)
	a := newTarget(t, "").ready()
	sent := 0
	for range rounds {
		for _, name := range []string{
			"..", "../..", "../../x", "..%2f..%2fx", "..%5c..%5cx", "%2e%2e%2f%2e%2e%2fetc", "....//....//x", "/etc/passwd", "%2fetc%2fpasswd", "x%00.seg", "CON", "nul", "journal", "MANIFEST", "LOCK", strings.Repeat("a", 300),
			strings.Repeat("../", 300) + "x", "%c0%ae%c0%ae/", "~", "$HOME", "`id`", "$(id)", ";id", "|id", "x\u202ey", "%0d%0aX: y", "{{7*7}}", "*", "?", "-rf", " ",
		} {
			for _, form := range []string{"/%s/_bulk", "/elastic/%s/_bulk", "/api/%s/envelope/", "/api/%s/store/", "/%s", "/api/logs/../%s", "/debug/%s", "/api/query?q=%s", "/static/../%s"} {
				text, err := talk(hostPort(a.addr), fmt.Sprintf("POST "+form+" HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s", name, len(bulk("x")), bulk("x")), 200*time.Millisecond)
				if err != nil || strings.HasPrefix(text, "HTTP/1.1 5") || strings.Contains(text, "root:") || strings.Contains(text, "\nX: y") {
					t.Errorf(form+": %.200s, %v", name, text, err)
				}
				sent++
			}
		}
	}
	left := a.unharmed()
	allowed := regexp.MustCompile(`^(\.|journal(/(LOCK|ID|MANIFEST|HISTORY|\d{20}\.(open|seg)|cursors))?|rejected(/.*)?)$`)
	var others []string
	testkit.OK(t, filepath.WalkDir(filepath.Dir(a.data), func(path string, d fs.DirEntry, err error) error {
		if rel, _ := filepath.Rel(a.data, path); err == nil && strings.HasPrefix(path, a.data) && !allowed.MatchString(rel) {
			others = append(others, rel)
		}
		return err
	}))
	testkit.Attack{
		Attack: "names of indices and projects that are paths", Times: sent, Promised: "no file but the journal's; no 5xx",
		Measured: fmt.Sprintf("%d other files; %s", len(others), left),
	}.Report(t)
	if len(others) > 0 {
		t.Errorf("written as well: %q", others)
	}
}

// TestRedteamFloods sends datagrams and streams of junk by syslog, lines over TCP and
// forward, faster than they are read.
func TestRedteamFloods(t *testing.T) {
	how := time.Duration(testkit.Rounds(t, testkit.Redteam, 300, 3000)) * time.Millisecond
	if testkit.Race(t, "what is sent is worked off for minutes: it floods for a shorter time") {
		how /= 6
	}
	most := testkit.RaceRounds(t, 8, 1<<30) // of one connection: what waits in its buffers is worked off, too
	a := newTarget(t, "listen_tcp: \"127.0.0.1:0\"\nlisten_syslog: \"udp://127.0.0.1:0 tcp://127.0.0.1:0\"\nlisten_forward: \"tcp://127.0.0.1:0\"\n").ready()
	junk := [][]byte{
		[]byte("<13>1 2026-11-22T04:30:00Z h a - - - junk"), make([]byte, 60<<10), []byte("<999999>"), []byte("<13>" + strings.Repeat("[a b=\"c\"]", 6000)), {}, []byte("\xef\xbb\xbf<13>x"), []byte(strings.Repeat("<13>x\n", 9000)),
	}
	datagrams := &assault{conns: 4, run: func(_ net.Conn, stop <-chan struct{}) (times int) {
		c, err := net.Dial("udp", a.listensAt("syslog", "udp"))
		if err != nil {
			return 0
		}
		defer c.Close()
		for ; ; times++ {
			if times == most {
				<-stop
			}
			select {
			case <-stop:
				return times
			default:
				c.Write(junk[times%len(junk)]) // what the kernel takes
			}
		}
	}}
	stream := func(row, proto string, texts ...string) *assault {
		return &assault{conns: 8, run: func(_ net.Conn, stop <-chan struct{}) (times int) {
			c, err := net.Dial("tcp", a.listensAt(row, proto))
			if err != nil {
				return 0
			}
			defer c.Close()
			for ; ; times++ {
				if times == most {
					<-stop
				}
				select {
				case <-stop:
					return times
				default:
				}
				c.SetWriteDeadline(time.Now().Add(time.Second))
				if _, err := io.WriteString(c, texts[times%len(texts)]); err != nil {
					return times
				}
			}
		}}
	}
	worst, times := time.Duration(0), int64(0)
	for name, as := range map[string]*assault{
		"datagrams":           datagrams,
		"lines of junk":       stream("TCP", "tcp", strings.Repeat("junk\n", 2000), strings.Repeat("{}\n", 2000), strings.Repeat("x", 60<<10)),
		"a line without end":  stream("TCP", "tcp", strings.Repeat("y", 60<<10)),
		"nested without end":  stream("TCP", "tcp", strings.Repeat(`{"a":`, 12<<10)),
		"forward, nested":     stream("forward", "tcp", strings.Repeat("\x91", 60<<10)),
		"forward, long":       stream("forward", "tcp", "\x93\xa1t\xdd\xff\xff\xff\xff"+strings.Repeat("\x92\x00\x80", 10<<10), strings.Repeat("\x92\x00\x80", 10<<10)),
		"forward, a long key": stream("forward", "tcp", "\x93\xdb\xff\xff\xff\xff"+strings.Repeat("t", 60<<10), strings.Repeat("t", 60<<10)),
		"forward, small maps": stream("forward", "tcp", strings.Repeat("\x93\xa1t\x00\x80", 4000)),
	} {
		p99 := a.under(as, how)
		t.Logf("%-30s %8d times, a victim's p99 %v, resident %d MiB", name, as.times.Load(), p99, residentPeak(t, a.cmd.Process.Pid)>>20)
		worst, times = max(worst, p99), times+as.times.Load()
	}
	left := a.unharmed()
	testkit.Attack{
		Attack: "floods of datagrams, lines, syslog and forward", Times: int(times), Promised: "no victim is refused; received = the outcomes",
		Measured: fmt.Sprintf("0 refused, p99 %v under the worst; %s", worst.Round(time.Millisecond), left),
	}.Report(t)
}

// TestRedteamTLS holds up TLS: handshakes that stop, records that come byte by byte, clients
// that renegotiate or read nothing.
func TestRedteamTLS(t *testing.T) {
	how := time.Duration(testkit.Rounds(t, testkit.Redteam, 300, 3000)) * time.Millisecond
	conns := testkit.Rounds(t, testkit.Redteam, 40, 400)
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	writeCertificate(t, 1, cert, key)
	t.Setenv(caEnv, cert)
	a := newTarget(t, fmt.Sprintf("tls: {cert: %q, key: %q}\n", cert, key))
	a.bound = mostResident(conns + 100)
	a.client = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	a.ready()
	over := func(do func(c *tls.Conn, stop <-chan struct{})) *assault {
		return &assault{conns: conns, run: func(c net.Conn, stop <-chan struct{}) int {
			s := tls.Client(c, &tls.Config{InsecureSkipVerify: true})
			c.SetDeadline(time.Now().Add(20 * time.Second))
			if s.Handshake() == nil {
				do(s, stop)
			}
			return 1
		}}
	}
	slowly := func(w io.Writer, text string, stop <-chan struct{}) {
		for i := range len(text) {
			select {
			case <-stop:
				return
			case <-time.After(50 * time.Millisecond):
			}
			if _, err := io.WriteString(w, text[i:i+1]); err != nil {
				return
			}
		}
	}
	worst, times := time.Duration(0), int64(0)
	for name, as := range map[string]*assault{
		"nothing at all": {conns: conns, run: func(c net.Conn, stop <-chan struct{}) int { io.Copy(io.Discard, c); return 1 }},
		"a part of ClientHello": {conns: conns, run: func(c net.Conn, stop <-chan struct{}) int {
			io.WriteString(c, "\x16\x03\x01\x02\x00\x01")
			io.Copy(io.Discard, c)
			return 1
		}},
		"plain HTTP": {conns: 20, run: func(c net.Conn, stop <-chan struct{}) int {
			io.WriteString(c, "GET / HTTP/1.1\r\n\r\n")
			io.Copy(io.Discard, c)
			return 1
		}},
		"handshakes alone": over(func(*tls.Conn, <-chan struct{}) {}),
		"a header bit by bit": over(func(c *tls.Conn, stop <-chan struct{}) {
			slowly(c, "POST /api/logs HTTP/1.1\r\nHost: 127.0.0.1\r\n"+strings.Repeat("X: y\r\n", 100), stop)
		}),
		"a body bit by bit": over(func(c *tls.Conn, stop <-chan struct{}) {
			io.WriteString(c, "POST /api/logs HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1000\r\n\r\n")
			slowly(c, strings.Repeat("{", 1000), stop)
		}),
		"answers not read": over(func(c *tls.Conn, stop <-chan struct{}) {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if _, err := io.WriteString(c, "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"); err != nil {
					return
				}
			}
		}),
	} {
		p99 := a.under(as, how)
		t.Logf("%-30s %8d times, a victim's p99 %v, resident %d MiB", name, as.times.Load(), p99, residentPeak(t, a.cmd.Process.Pid)>>20)
		worst, times = max(worst, p99), times+as.times.Load()
	}
	left := a.unharmed()
	testkit.Attack{
		Attack: "TLS that stops, comes byte by byte or is not read", Times: int(times), Promised: "no victim is refused; nothing is left over",
		Measured: fmt.Sprintf("0 refused, p99 %v under the worst; %s", worst.Round(time.Millisecond), left),
	}.Report(t)
}

// terminalAttacks are what a stored line must not do to a reader's terminal.
var terminalAttacks = []string{"\x1b]0;owned\x07", "\x1b[2J", "\x9b31m", "\u009b31m", "\x7f", "\u202e", "\u2066", "\u200f", "\x00", "\r", "\b\b\b", "\u0085", "\x1bP", "\x0e", "\u2028", "\u061c"}

// TestRedteamTerminal stores lines with control characters in each field and reads them in
// each way on a terminal: none of the characters comes through.
func TestRedteamTerminal(t *testing.T) {
	rounds := testkit.Rounds(t, testkit.Redteam, 1, 3)
	t.Setenv("TERM", "xterm")
	t.Setenv("NO_COLOR", "")
	a := newTarget(t, "")
	for _, c := range terminalAttacks {
		quoted := strings.ReplaceAll(fmt.Sprintf("%+q", c), `\x`, `\u00`)
		quoted = strings.NewReplacer(`\a`, `\u0007`, `\b`, `\u0008`, `\v`, `\u000b`, `\r`, `\u000d`).Replace(strings.Trim(quoted, `"`))
		raw := strings.Map(func(r rune) rune {
			if r < 0x20 || r == 0xfffd {
				return 'c' // JSON takes no control characters as they are
			}
			return r
		}, c)
		for _, text := range []string{quoted, raw} {
			body := fmt.Sprintf(`{"msg":"m %[1]s","service":"s %[1]s","logger":"l %[1]s","source":"f %[1]s","error":{"k %[1]s":"%[1]s"},"trace_id":"%[1]s","key %[1]s":"v %[1]s","list":["%[1]s"],"level":"%[1]s"}`, text)
			if code, answer := a.request("POST", "/api/logs", body); code != 200 {
				t.Errorf("%q: %d %s", c, code, answer)
			}
			a.request("POST", "/api/logs", text+"{ rejected")
		}
	}
	segment, err := filepath.Glob(filepath.Join(a.data, "journal", "*.open"))
	testkit.OK(t, err)
	evil := filepath.Join(t.TempDir(), "a\x1b[31K\u202eb.yaml")
	writeText(t, evil, "listen: \"\x7f\u202e\"\n\x1b[2J: 1\n")
	found, times := 0, 0
	for range rounds {
		for _, args := range [][]string{
			{"query", ""}, {"query", "-o", "ndjson", ""}, {"query", "-last", "100", ""}, {"query", "\x1b[31K(\u202e"}, {"cat", a.data}, {"cat", "-o", "csv", a.data}, {"cat", segment[0]}, {"verify", a.data}, {"reconcile", a.data},
			{"serve", "-config", evil}, {"check", "-config", evil}, {"send", evil + "\x1b]0;x\x07"}, {"\x1b[2J"}, {"help", "\u202e"}, {"plan", "-from", evil}, {"clients"}, {"rejected"}, {"replay", "-dry-run", filepath.Join(a.data, "rejected")},
			{"replay", filepath.Join(a.data, "rejected")}, {"recover", evil},
		} {
			switch args[0] {
			case "query", "clients", "rejected", "reconcile", "replay":
				args = append([]string{args[0], "-addr", a.addr}, args[1:]...)
			}
			p := openTerminal(t)
			p.run(args...)
			out := p.end()
			times++
			if i := strings.IndexFunc(ownSequences.ReplaceAllString(out, ""), controls); i >= 0 || !utf8.ValidString(out) {
				found++
				t.Errorf("rollway %q prints a control character: %q", args, out)
			}
		}
	}
	left := a.unharmed()
	testkit.Attack{
		Attack: "lines, dead letters, names and arguments with control characters, read on a terminal", Times: times, Promised: "each is escaped",
		Measured: fmt.Sprintf("%d came through; %s", found, left),
	}.Report(t)
}

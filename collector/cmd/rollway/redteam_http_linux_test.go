package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rollway/rollway/internal/testkit"
)

// A smuggle is bytes that two readers of HTTP might divide into requests differently. It
// contains the request outer, and something that is no request, or is one only for those
// who read it wrong: inner.
type smuggle struct {
	name      string
	raw       func(outer, inner string) string
	pipelined bool // inner is a request that may be read as one
}

// bulk is the body of a request that stores its id.
func bulk(id string) string { return "{\"index\":{}}\n{\"msg\":\"" + id + "\"}\n" }

// bulkHead begins a request that stores id; each line of more ends in CRLF.
func bulkHead(id, more string) string {
	return "POST /" + id + "/_bulk HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/x-ndjson\r\n" + more + "\r\n"
}

// whole is a complete request that stores id.
func whole(id string) string {
	return bulkHead(id, fmt.Sprintf("Content-Length: %d\r\n", len(bulk(id)))) + bulk(id)
}

func chunk(text string) string { return fmt.Sprintf("%x\r\n%s\r\n", len(text), text) }

const (
	lastChunk = "0\r\n\r\n"
	chunked   = "Transfer-Encoding: chunked\r\n"
)

func length(n int) string { return fmt.Sprintf("Content-Length: %d\r\n", n) }

// withHead sends outer in one chunk, and then inner, which counts as body for those who go
// by a Content-Length of it all and not by the header.
func withHead(header string) func(outer, inner string) string {
	return func(o, i string) string {
		body := chunk(bulk(o)) + lastChunk + whole(i)
		return bulkHead(o, length(len(body))+header) + body
	}
}

// lengthBefore sends a length that ends before inner, beside a coding that does not.
func lengthBefore(header string) func(outer, inner string) string {
	return func(o, i string) string {
		return bulkHead(o, length(len(bulk(o)))+header) + bulk(o) + whole(i)
	}
}

// onlyHead sends outer as the body of a chunked request whose coding is written oddly.
func onlyHead(header string) func(outer, inner string) string {
	return func(o, i string) string { return bulkHead(o, header) + chunk(bulk(o)) + lastChunk + whole(i) }
}

func smuggles() []smuggle {
	list := []smuggle{
		{"pipelining", func(o, i string) string { return whole(o) + whole(i) }, true},
		{"CL.TE", withHead(chunked), false},
		{"TE.CL", lengthBefore(chunked), false},
		{"TE.CL, the length within the first chunk", func(o, i string) string {
			head := fmt.Sprintf("%x\r\n", len(bulk(o)+whole(i)))
			return bulkHead(o, length(len(head)+len(bulk(o)))+chunked) + head + bulk(o) + whole(i) + "\r\n" + lastChunk
		}, false},
		{"two lengths, the first longer", func(o, i string) string {
			return bulkHead(o, length(len(bulk(o)+whole(i)))+length(len(bulk(o)))) + bulk(o) + whole(i)
		}, false},
		{"two lengths, the second longer", func(o, i string) string {
			return bulkHead(o, length(len(bulk(o)))+length(len(bulk(o)+whole(i)))) + bulk(o) + whole(i)
		}, false},
		{"two lengths in one field", func(o, i string) string {
			return bulkHead(o, fmt.Sprintf("Content-Length: %d, %d\r\n", len(bulk(o)), len(bulk(o)+whole(i)))) + bulk(o) + whole(i)
		}, false},
		{"the same length twice", func(o, i string) string {
			return bulkHead(o, length(len(bulk(o)))+length(len(bulk(o)))) + bulk(o) + whole(i)
		}, true},
		{"no length at all", func(o, i string) string { return bulkHead(o, "") + whole(i) }, true},
		{"GET with a body", func(o, i string) string {
			return "GET /" + o + "/_bulk HTTP/1.1\r\nHost: 127.0.0.1\r\n" + length(len(whole(i))) + "\r\n" + whole(i)
		}, false},
		{"HEAD with a chunked body", func(o, i string) string {
			return "HEAD / HTTP/1.1\r\nHost: 127.0.0.1\r\n" + chunked + "\r\n" + chunk(whole(i)) + lastChunk
		}, false},
		{"OPTIONS with a body", func(o, i string) string {
			return "OPTIONS * HTTP/1.1\r\nHost: 127.0.0.1\r\n" + length(len(whole(i))) + "\r\n" + whole(i)
		}, false},
		{"CONNECT", func(o, i string) string {
			return "CONNECT 127.0.0.1:1 HTTP/1.1\r\nHost: 127.0.0.1:1\r\n" + length(len(whole(i))) + "\r\n" + whole(i)
		}, false},
		{"Expect and a body at once", func(o, i string) string {
			return bulkHead(o, "Expect: 100-continue\r\n"+length(len(bulk(o)+whole(i)))) + bulk(o) + whole(i)
		}, false},
		{"Expect of something else", func(o, i string) string {
			return bulkHead(o, "Expect: 200-ok\r\n"+length(len(whole(i)))) + whole(i)
		}, false},
		{"Upgrade to a web socket", func(o, i string) string {
			return "GET /api/tail HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n" + length(len(whole(i))) + "\r\n" + whole(i)
		}, false},
		{"Upgrade to HTTP/2", func(o, i string) string {
			return bulkHead(o, "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA\r\n"+length(len(bulk(o)+whole(i)))) + bulk(o) + whole(i)
		}, false},
		{"absolute form, another host", func(o, i string) string {
			return strings.Replace(whole(o), "POST /", "POST http://evil.example/", 1) + whole(i)
		}, true},
		{"absolute form with a user", func(o, i string) string {
			return strings.Replace(whole(o), "POST /", "POST http://user:pass@127.0.0.1:1/", 1) + whole(i)
		}, true},
		{"authority form", func(o, i string) string {
			return strings.Replace(whole(o), "POST /"+o+"/_bulk", "POST 127.0.0.1", 1) + whole(i)
		}, true},
		{"NUL in the path", func(o, i string) string { return strings.Replace(whole(o), "/_bulk", "\x00/_bulk", 1) + whole(i) }, true},
		{"NUL in the path, encoded", func(o, i string) string { return strings.Replace(whole(o), "/_bulk", "%00/_bulk", 1) + whole(i) }, true},
		{"CRLF in the path, encoded", func(o, i string) string {
			return strings.Replace(whole(o), "/_bulk", "%0d%0aTransfer-Encoding:%20chunked/_bulk", 1) + whole(i)
		}, true},
		{"a fragment", func(o, i string) string { return strings.Replace(whole(o), "/_bulk", "/_bulk#/x", 1) + whole(i) }, true},
		{"a dot path", func(o, i string) string {
			return strings.Replace(whole(o), "/"+o, "/x/../"+o, 1) + whole(i)
		}, true},
		{"a double slash", func(o, i string) string { return strings.Replace(whole(o), "/"+o, "//"+o, 1) + whole(i) }, true},
		{"HTTP/1.0 with chunks, kept", func(o, i string) string {
			return strings.Replace(bulkHead(o, chunked+"Connection: keep-alive\r\n"), "HTTP/1.1", "HTTP/1.0", 1) + chunk(bulk(o)) + lastChunk + whole(i)
		}, false},
		{"HTTP/1.0 with chunks and a length, kept", func(o, i string) string {
			return strings.Replace(withHead(chunked+"Connection: keep-alive\r\n")(o, i), "HTTP/1.1", "HTTP/1.0", 1)
		}, false},
		{"HTTP/1.2", func(o, i string) string { return strings.Replace(whole(o), "HTTP/1.1", "HTTP/1.2", 1) + whole(i) }, true},
		{"HTTP/2.0 in words", func(o, i string) string { return strings.Replace(whole(o), "HTTP/1.1", "HTTP/2.0", 1) + whole(i) }, true},
		{"HTTP/0.9", func(o, i string) string { return "GET /" + o + "\r\n" + whole(i) }, true},
		{"a chunk longer than it says", func(o, i string) string {
			return bulkHead(o, chunked) + fmt.Sprintf("%x\r\n%s", len(bulk(o))-2, bulk(o)) + "\r\n" + lastChunk + whole(i)
		}, false},
		{"a chunk's size in capitals and zeros", func(o, i string) string {
			return bulkHead(o, chunked) + fmt.Sprintf("000%X\r\n%s\r\n", len(bulk(o)), bulk(o)) + lastChunk + whole(i)
		}, true},
		{"a chunk's size beyond 64 bits", func(o, i string) string {
			return bulkHead(o, chunked) + fmt.Sprintf("1%016x\r\n%s\r\n", len(bulk(o)), bulk(o)) + lastChunk + whole(i)
		}, false},
		{"a chunk's size that is negative", func(o, i string) string {
			return bulkHead(o, chunked) + "-1\r\n" + bulk(o) + "\r\n" + lastChunk + whole(i)
		}, false},
		{"a chunk's size with 0x", func(o, i string) string {
			return bulkHead(o, chunked) + fmt.Sprintf("0x%x\r\n%s\r\n", len(bulk(o)), bulk(o)) + lastChunk + whole(i)
		}, false},
		{"a chunk's size with an underscore", func(o, i string) string {
			return bulkHead(o, chunked) + fmt.Sprintf("0_%x\r\n%s\r\n", len(bulk(o)), bulk(o)) + lastChunk + whole(i)
		}, false},
		{"a chunk's size after a blank", func(o, i string) string {
			return bulkHead(o, chunked) + fmt.Sprintf(" %x\r\n%s\r\n", len(bulk(o)), bulk(o)) + lastChunk + whole(i)
		}, false},
		{"a chunk extension", func(o, i string) string {
			return bulkHead(o, chunked) + fmt.Sprintf("%x;a=b\r\n%s\r\n", len(bulk(o)), bulk(o)) + "0;c=\"d\"\r\n\r\n" + whole(i)
		}, true},
		{"a chunk extension with a bare LF", func(o, i string) string {
			return bulkHead(o, chunked) + fmt.Sprintf("%x;\n%s\r\n", len(bulk(o)), bulk(o)) + lastChunk + whole(i)
		}, false},
		{"a chunk extension with a bare LF and a size", func(o, i string) string { // TERM.EXT
			return bulkHead(o, chunked) + fmt.Sprintf("%x;\n%x\r\n%s\r\n", 2, len(bulk(o)), bulk(o)) + lastChunk + whole(i)
		}, false},
		{"a chunk that ends in a bare LF", func(o, i string) string {
			return bulkHead(o, chunked) + fmt.Sprintf("%x\r\n%s\n", len(bulk(o)), bulk(o)) + lastChunk + whole(i)
		}, false},
		{"a chunk that ends in a bare CR", func(o, i string) string {
			return bulkHead(o, chunked) + fmt.Sprintf("%x\r\n%s\r", len(bulk(o)), bulk(o)) + lastChunk + whole(i)
		}, false},
		{"chunk sizes that end in a bare LF", func(o, i string) string {
			return bulkHead(o, chunked) + fmt.Sprintf("%x\n%s\n0\n\n", len(bulk(o)), bulk(o)) + whole(i)
		}, true},
		{"a last chunk 00", func(o, i string) string { return bulkHead(o, chunked) + chunk(bulk(o)) + "00\r\n\r\n" + whole(i) }, true},
		{"a trailer with a length", func(o, i string) string {
			return bulkHead(o, chunked+"Trailer: Content-Length\r\n") + chunk(bulk(o)) + "0\r\nContent-Length: 1000\r\n\r\n" + whole(i)
		}, true},
		{"a trailer that names a request", func(o, i string) string {
			return bulkHead(o, chunked) + chunk(bulk(o)) + "0\r\n" + strings.TrimSuffix(bulkHead(i, ""), "\r\n") + "\r\n" + whole(i)
		}, true},
		{"no line before the header's end", func(o, i string) string { return "\r\n\r\n" + whole(o) + whole(i) }, true},
		{"lines that end in a bare LF", func(o, i string) string { return strings.ReplaceAll(whole(o), "\r\n", "\n") + whole(i) }, true},
		{"a bare CR in a header", func(o, i string) string {
			return bulkHead(o, length(len(bulk(o)))+"X: a\rTransfer-Encoding: chunked\r\n") + bulk(o) + whole(i)
		}, true},
		{"a bare LF before a length", func(o, i string) string {
			return bulkHead(o, length(len(bulk(o)))+"X: a\n"+length(len(bulk(o)+whole(i)))) + bulk(o) + whole(i)
		}, false},
		{"a folded field", func(o, i string) string {
			return bulkHead(o, length(len(bulk(o)))+"X: a\r\n b\r\n") + bulk(o) + whole(i)
		}, true},
		{"a folded coding", func(o, i string) string { return withHead("Transfer-Encoding:\r\n chunked\r\n")(o, i) }, false},
		{"a folded first field", func(o, i string) string {
			return strings.Replace(withHead("X: y\r\n")(o, i), "\r\nHost", "\r\n "+strings.TrimSpace(chunked)+"\r\nHost", 1)
		}, false},
		{"a field without a name", func(o, i string) string { return bulkHead(o, length(len(bulk(o)))+": x\r\n") + bulk(o) + whole(i) }, true},
		{"a field without a colon", func(o, i string) string { return bulkHead(o, length(len(bulk(o)))+"garbage\r\n") + bulk(o) + whole(i) }, true},
		{"two hosts", func(o, i string) string {
			return bulkHead(o, length(len(bulk(o)))+"Host: evil.example\r\n") + bulk(o) + whole(i)
		}, true},
		{"no host", func(o, i string) string { return strings.Replace(whole(o), "Host: 127.0.0.1\r\n", "", 1) + whole(i) }, true},
		{"Connection names Content-Length", func(o, i string) string {
			return bulkHead(o, length(len(bulk(o)))+"Connection: keep-alive, Content-Length\r\n") + bulk(o) + whole(i)
		}, true},
		{"Connection names Transfer-Encoding", func(o, i string) string {
			return bulkHead(o, chunked+"Connection: keep-alive, Transfer-Encoding\r\n") + chunk(bulk(o)) + lastChunk + whole(i)
		}, true},
		{"a body that ends early", func(o, i string) string { return bulkHead(o, length(1000)) + bulk(o) }, false},
		{"a second request that ends early", func(o, i string) string { return whole(o) + bulkHead(i, length(1000)) + "x" }, false},
	}
	for name, value := range map[string]string{
		"+": "+%d", "-": "-%d", "hexadecimal": "0x%x", "exponent": "%de0", "zeros": "000%d", "blank inside": "%d 1", "blank after": "%d ", "tab before": "\t%d", "dot": "%d.0", "comma": "%d,", "vertical tab": "\v%d", "empty and": "%d\r\nContent-Length:",
	} {
		list = append(list, smuggle{"a length written with " + name, func(o, i string) string {
			return bulkHead(o, "Content-Length: "+fmt.Sprintf(value, len(bulk(o)))+"\r\n") + bulk(o) + whole(i)
		}, true})
	}
	for _, te := range []string{
		"Transfer-Encoding : chunked", " Transfer-Encoding: chunked", "Transfer-Encoding: xchunked", "Transfer-Encoding:\tchunked", "Transfer-Encoding: chunked\t", "Transfer-Encoding: \vchunked",
		"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity", "Transfer-Encoding: identity\r\nTransfer-Encoding: chunked", "Transfer-Encoding: chunked, identity", "Transfer-Encoding: identity, chunked",
		"Transfer-Encoding: chunked, chunked", "Transfer-Encoding: gzip, chunked", "Transfer-Encoding: chunked;x=y", "Transfer-Encoding: \"chunked\"", "Transfer-Encoding: CHUNKED", "Transfer-Encoding: chunk", "Transfer-Encoding:",
		"Transfer-Encoding: chunked\x00", "Transfer-Encoding\x00: chunked", "Transfer_Encoding: chunked", "Transfer-Encoding\r\n: chunked", "X: y\nTransfer-Encoding: chunked", "Transfer-Encoding: ,chunked", "Content-Encoding: chunked", "TE: chunked",
	} {
		list = append(list, smuggle{fmt.Sprintf("a length and %q", te), withHead(te + "\r\n"), false},
			smuggle{fmt.Sprintf("a short length and %q", te), lengthBefore(te + "\r\n"), !strings.Contains(te, "Transfer-Encoding")},
			smuggle{fmt.Sprintf("%q alone", te), onlyHead(te + "\r\n"), true})
	}
	return list
}

// A way is what a client's bytes pass on their way to the collector.
type way struct {
	name  string
	start func(t *testing.T, addr, collector string) (forwarded func() (passed, left map[string]int)) // nil: no proxy
}

func ways() []way {
	nginx := func(location string) func(*testing.T, string, string) func() (passed, left map[string]int) {
		return func(t *testing.T, addr, collector string) func() (passed, left map[string]int) {
			log := filepath.Join(t.TempDir(), "access.log")
			startNginx(t, addr, fmt.Sprintf("upstream c { server %s max_fails=0; keepalive 1; }\nserver { listen %s; access_log %s combined; merge_slashes off; location / { %s } }", collector, addr, log, location))
			return func() (passed, left map[string]int) { return passedBy(readText(t, log)) }
		}
	}
	haproxy := func(options string) func(*testing.T, string, string) func() (passed, left map[string]int) {
		return func(t *testing.T, addr, collector string) func() (passed, left map[string]int) {
			p := startHAProxy(t, addr, fmt.Sprintf("listen front\n\tbind %s\n\tlog stdout format raw local0\n\toption httplog\n\t%s\n\tserver c %s\n", addr, options, collector))
			return func() (passed, left map[string]int) { return passedBy(readText(t, p.log)) }
		}
	}
	const kept = `proxy_pass http://c; proxy_http_version 1.1; proxy_set_header Connection "";`
	return []way{
		{"alone", nil},
		{"nginx", nginx(kept)},
		{"nginx, bodies passed on at once", nginx(kept + " proxy_request_buffering off;")},
		{"nginx, HTTP/1.0 upstream", nginx("proxy_pass http://c;")},
		{"HAProxy", haproxy("http-reuse always")},
		{"HAProxy, lenient", haproxy("http-reuse always\n\toption accept-invalid-http-request")},
	}
}

var requestOf = regexp.MustCompile(`/([a-z]+[0-9]+)[^ /]*/_bulk`)

var idOf = regexp.MustCompile(`^[a-z]+[0-9]+`)

// clientLeft matches a line of a proxy's log about a client that did not wait for its
// answer: nginx has a status for it, HAProxy a state.
var clientLeft = regexp.MustCompile(` 499 | C[A-Z]-- `)

// passedBy counts by id the requests in a proxy's log that were answered 200, and those
// whose client left before. Both formats have the status as a word of its own.
func passedBy(log string) (passed, left map[string]int) {
	passed, left = map[string]int{}, map[string]int{}
	for line := range strings.Lines(log) {
		m := requestOf.FindStringSubmatch(line)
		switch {
		case m == nil:
		case strings.Contains(line, " 200 "):
			passed[m[1]]++
		case clientLeft.MatchString(line):
			left[m[1]]++
		}
	}
	return passed, left
}

// mutated changes a request here and there.
func mutated(rng *rand.Rand, raw string) string {
	pieces := []string{"\r", "\n", "\r\n", "\t", " ", "\x00", ":", ";", ",", "\v", "\x7f", "\xff", "chunked", "\r\nTransfer-Encoding: chunked\r\n", "\r\nContent-Length: 3\r\n", "\r\nConnection: close\r\n", "\r\n "}
	for range 1 + rng.IntN(3) {
		at := rng.IntN(len(raw))
		end := min(len(raw), at+rng.IntN(3))
		raw = raw[:at] + pieces[rng.IntN(len(pieces))] + raw[end:]
	}
	return raw
}

// talk sends raw to addr and returns what is answered within a short time.
func talk(addr, raw string, quiet time.Duration) (string, error) {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		return "", err
	}
	defer c.Close()
	if _, err := io.WriteString(c, raw); err != nil && !errors.Is(err, os.ErrDeadlineExceeded) && !isReset(err) {
		return "", err
	}
	var answer []byte
	for buf := make([]byte, 16<<10); ; {
		c.SetReadDeadline(time.Now().Add(quiet))
		n, err := c.Read(buf)
		if answer = append(answer, buf[:n]...); err != nil {
			return string(answer), nil
		}
	}
}

func isReset(err error) bool {
	return strings.Contains(err.Error(), "reset by peer") || strings.Contains(err.Error(), "broken pipe")
}

// TestRedteamSmuggling: however the bytes of a request are ambiguous, a proxy and the
// collector read the same requests: what the proxy counts as passed on and answered 200 is
// what is stored, by id, and the next client's request on a shared connection gets its own
// answer.
func TestRedteamSmuggling(t *testing.T) {
	rounds := testkit.Rounds(t, testkit.Redteam, 1, 6)
	list := smuggles()
	for _, w := range ways() {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			a := newTarget(t, "").ready()
			addr, forwarded := hostPort(a.addr), func() (passed, left map[string]int) { return nil, nil }
			if w.start != nil {
				addr = freeAddr(t)
				forwarded = w.start(t, addr, hostPort(a.addr))
			}
			rng := rand.New(rand.NewPCG(1, uint64(len(w.name))))
			answered, refused := map[string]int{}, 0
			for n := range rounds * len(list) {
				s := list[n%len(list)]
				outer, inner, next := fmt.Sprint("outer", n), fmt.Sprint("inner", n), fmt.Sprint("next", n)
				raw := s.raw(outer, inner)
				switch n / len(list) {
				case 0:
				case 1: // at once with the request of another, as one write
					raw += whole(fmt.Sprint("after", n))
				default:
					raw = mutated(rng, raw)
				}
				text, err := talk(addr, raw, 60*time.Millisecond)
				if err != nil {
					t.Fatalf("%s: %v", s.name, err)
				}
				ok := strings.Count(text, " 200 OK\r\n")
				if ok == 0 {
					refused++
				}
				answered[outer] = ok
				if text, err = talk(addr, strings.Replace(whole(next), "Host:", "Connection: close\r\nHost:", 1), 20*time.Second); strings.Count(text, "HTTP/1.1 ") != 1 || !strings.Contains(text, `"_index":"`+next+`"`) {
					t.Errorf("%s: the next client is answered %.300q, %v", s.name, text, err)
				}
			}
			stored := map[string]int{}
			for _, line := range a.lines(`_index=*`) {
				var e struct{ Attrs map[string]any }
				if err := json.Unmarshal([]byte(line), &e); err != nil {
					t.Fatal(err)
				}
				stored[idOf.FindString(fmt.Sprint(e.Attrs["_index"]))]++
			}
			passed, left := forwarded()
			for n := range rounds * len(list) {
				s := list[n%len(list)]
				outer, inner := fmt.Sprint("outer", n), fmt.Sprint("inner", n)
				all := stored[outer] + stored[inner] + stored[fmt.Sprint("after", n)]
				switch {
				case stored[fmt.Sprint("next", n)] != 1:
					t.Errorf("%s: the next client's is stored %d times", s.name, stored[fmt.Sprint("next", n)])
				case n/len(list) > 1: // a mutated one; only a proxy can tell what it is
				case stored[inner] > 0 && !s.pipelined && (w.start == nil || passed[inner] != stored[inner]):
					t.Errorf("%s: what is no request is stored", s.name)
				case stored[outer] > 1 || stored[inner] > 1:
					t.Errorf("%s: stored %d and %d times", s.name, stored[outer], stored[inner])
				case w.start == nil && answered[outer] < all:
					t.Errorf("%s: %d requests are answered 200, %d are stored", s.name, answered[outer], all)
				}
			}
			if w.start != nil {
				// What a client sent that left may be stored or not.
				for id := range maps.Keys(stored) {
					if stored[id] > passed[id]+left[id] && id != "" { // an id that was mutated
						t.Errorf("%s (%s): passed on %d times, stored %d times", id, list[atoi(id)%len(list)].name, passed[id], stored[id])
					}
				}
				for id := range maps.Keys(passed) {
					if stored[id] < passed[id] && atoi(id) < 2*len(list) { // mutated ones may have no event
						t.Errorf("%s (%s): passed on %d times, stored %d times", id, list[atoi(id)%len(list)].name, passed[id], stored[id])
					}
				}
			}
			unharmed := a.unharmed()
			testkit.Attack{
				Attack: "requests that can be read in two ways, " + w.name, Times: rounds * len(list),
				Promised: "the same requests for both; the next client gets its own answer",
				Measured: fmt.Sprintf("%d refused, %d lines, all of requests that were answered; %s", refused, len(slices.Collect(maps.Keys(stored))), unharmed),
			}.Report(t)
		})
	}
}

func atoi(id string) (n int) {
	fmt.Sscan(strings.TrimLeft(id, "abcdefghijklmnopqrstuvwxyz"), &n)
	return n
}

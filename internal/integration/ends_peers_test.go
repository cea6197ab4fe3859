package integration

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/rollway/rollway/remote"
)

// engineEnd posts to an HTTP server that reads bodies of an engine's protocol:
// answer returns the lines in a body and writes what the engine says.
func engineEnd(prefix, path string, o remote.Options, answer func(rw http.ResponseWriter, body []byte) (lines []byte, err error)) func(testing.TB) *end {
	return func(t testing.TB) *end {
		t.Helper()
		p := new(peer)
		keep := p.newConn()
		server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				return
			}
			lines, err := answer(rw, body)
			if err != nil {
				t.Error(err)
			}
			keep.Write(lines)
		}))
		t.Cleanup(server.Close)
		return remoteEnd(t, prefix+server.URL+path, o, p.bytes, p.count)
	}
}

// lokiEnd pushes as to Grafana Loki, one stream, so that there is one order.
func lokiEnd() func(testing.TB) *end {
	o := remote.Options{Loki: remote.Loki{Labels: map[string]string{"app": "combine"}, LevelLabel: "-"}}
	return engineEnd("loki+", "", o, func(rw http.ResponseWriter, body []byte) (lines []byte, err error) {
		var push struct {
			Streams []struct{ Values [][2]string }
		}
		if err := json.Unmarshal(body, &push); err != nil || len(push.Streams) != 1 {
			return nil, fmt.Errorf("push of %d streams: %v", len(push.Streams), err)
		}
		for _, v := range push.Streams[0].Values {
			lines = append(append(lines, v[1]...), '\n')
		}
		rw.WriteHeader(http.StatusNoContent)
		return lines, nil
	})
}

// stamp is what remote puts before a line that has no @timestamp.
var stamp = regexp.MustCompile(`^\{"@timestamp":"[-0-9T:.]+Z",?`)

// elasticEnd sends bulks as to Elasticsearch, which takes all.
func elasticEnd() func(testing.TB) *end {
	return engineEnd("elastic+", "/logs-combine", remote.Options{}, func(rw http.ResponseWriter, body []byte) (lines []byte, err error) {
		action := true
		var items []string
		for line := range bytes.Lines(body) {
			if !action {
				lines = append(lines, stamp.ReplaceAll(line, []byte("{"))...)
				items = append(items, `{"create":{"status":201}}`)
			}
			action = !action
		}
		fmt.Fprintf(rw, `{"errors":false,"took":1,"items":[%s]}`, strings.Join(items, ","))
		return lines, nil
	})
}

// inSyslog are options by which messageLine finds the line in a message.
var inSyslog = remote.Options{Syslog: remote.Syslog{Format: "rfc5424"}}

func messageLine(t testing.TB, message []byte) []byte {
	_, line, ok := bytes.Cut(message, []byte(" - - "))
	if !ok {
		t.Errorf("message %.100q has not the header that was wanted", message)
	}
	return append(line[:len(line):len(line)], '\n')
}

// syslogTCPEnd sends RFC 5424 with octet counting.
func syslogTCPEnd(t testing.TB) *end {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := listen(t, l)
	taken := func() (lines []byte) {
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, b := range p.conns {
			for data := b.Bytes(); len(data) > 0; {
				length, rest, _ := bytes.Cut(data, []byte(" "))
				n, err := strconv.Atoi(string(length))
				if err != nil || n > len(rest) {
					break // not all of it is there yet
				}
				lines = append(lines, messageLine(t, rest[:n])...)
				data = rest[n:]
			}
		}
		return lines
	}
	return remoteEnd(t, "syslog+tcp://"+l.Addr().String(), inSyslog, taken, func() uint64 { return uint64(bytes.Count(taken(), newline)) })
}

// messageEnd sends each line as a message in a datagram to a local socket. Each
// Write waits until the peer has read what was sent.
func messageEnd(scheme string, o remote.Options, line func(t testing.TB, message []byte) []byte) func(testing.TB) *end {
	return func(t testing.TB) *end {
		t.Helper()
		c, err := net.ListenPacket("unixgram", socketPath(t))
		if err != nil {
			t.Fatal(err)
		}
		p := new(peer)
		keep := p.newConn()
		var reading sync.WaitGroup
		reading.Go(func() {
			buf := make([]byte, 1<<18)
			for {
				n, _, err := c.ReadFrom(buf)
				if err != nil {
					return
				}
				keep.Write(line(t, buf[:n]))
			}
		})
		t.Cleanup(func() {
			c.Close()
			reading.Wait()
		})
		e := remoteEnd(t, scheme+"://"+c.LocalAddr().String(), o, p.bytes, p.count)
		e.Writer = &acknowledged{Writer: e.Writer, wait: e.reach}
		return e
	}
}

// entryLine returns the line that an entry of the journal was made of.
func entryLine(t testing.TB, entry []byte) []byte {
	_, line, ok := bytes.Cut(entry, []byte("\nSYSLOG_IDENTIFIER=combine\nMESSAGE="))
	if !ok {
		t.Errorf("entry %.100q", entry)
	}
	return line
}

var inJournal = remote.Options{Journald: remote.Journald{Identifier: "combine", Line: true}}

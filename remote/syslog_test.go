package remote_test

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"unicode/utf8"

	"github.com/rollway/rollway/line"
	"github.com/rollway/rollway/remote"
)

// unframe returns the messages on a stream, and what is left of one that is
// not whole.
func unframe(t testing.TB, data []byte, octets bool) (messages []string, rest []byte) {
	t.Helper()
	for len(data) > 0 {
		if !octets {
			message, after, ok := bytes.Cut(data, []byte("\n"))
			if !ok {
				return messages, data
			}
			messages, data = append(messages, string(message)), after
			continue
		}
		length, after, ok := bytes.Cut(data, []byte(" "))
		n, err := strconv.Atoi(string(length))
		if ok && (err != nil || n < 1 || length[0] == '0') {
			t.Fatalf("the length of a frame is %q", length)
		}
		if !ok || n > len(after) {
			return messages, data
		}
		messages, data = append(messages, string(after[:n])), after[n:]
	}
	return messages, nil
}

// payload returns the part of an RFC 5424 message, without structured data,
// that is the line.
func payload(t testing.TB, message string) string {
	t.Helper()
	_, line, ok := strings.Cut(message, " - - ")
	if !ok || !strings.HasPrefix(message, "<14>1 ") {
		t.Errorf("message %.200q has not the header that was wanted", message)
	}
	return line + "\n"
}

// A syslogPeer is a peer of any kind that takes syslog+SCHEME.
type syslogPeer struct {
	url  string
	each func() []string // the messages
}

// syslogPeers runs test over every scheme.
func syslogPeers(t *testing.T, test func(t *testing.T, open func(t *testing.T) syslogPeer, o remote.Options)) {
	streams(t, func(t *testing.T, scheme string, serverTLS *tls.Config, o remote.Options) {
		for _, framing := range []string{"octets", "newline"} {
			t.Run(framing, func(t *testing.T) {
				t.Parallel()
				o := o
				o.Syslog.Format, o.Syslog.Framing = "rfc5424", framing
				test(t, func(t *testing.T) syslogPeer {
					peer := startTCPPeer(t, anywhere(t, scheme), serverTLS, nil)
					return syslogPeer{
						"syslog+" + scheme + "://" + peer.Addr().String(),
						func() (all []string) {
							for _, data := range peer.each() {
								messages, _ := unframe(t, []byte(data), framing == "octets")
								all = append(all, messages...)
							}
							return all
						},
					}
				}, o)
			})
		}
	})
	for _, network := range []string{"udp", "unixgram"} {
		t.Run(network, func(t *testing.T) {
			t.Parallel()
			test(t, func(t *testing.T) syslogPeer {
				addr, scheme := "127.0.0.1:0", "syslog+udp://"
				if network == "unixgram" {
					if runtime.GOOS == "windows" {
						t.Skip("Windows has no local datagram sockets")
					}
					addr, scheme = socketPath(t), "syslog+unix://"
				}
				peer := startGramPeer(t, network, addr)
				return syslogPeer{scheme + peer.LocalAddr().String(), peer.each}
			}, remote.Options{Syslog: remote.Syslog{Format: "rfc5424"}})
		})
	}
}

// A message over the limit is lost by itself.
func TestSyslogTooLong(t *testing.T) {
	t.Parallel()
	syslogPeers(t, func(t *testing.T, start func(t *testing.T) syslogPeer, o remote.Options) {
		var told []error
		o.OnError = func(err error) { told = append(told, err) }
		o.Syslog.MaxMessage = 500
		peer := start(t)
		w := open(t, peer.url, o)
		long := strings.Repeat("x", 500) + "\n"
		write(t, w, long)
		write(t, w, long+numbered(0, 2)+long+numbered(2, 4)+long)
		wantLoss(t, "Close", w.Close(), 4, "Options.Syslog.MaxMessage")
		settled(t, w, 8, 4)
		if d := w.Stats().Dropped; d != (line.Drops{TooLarge: 4}) {
			t.Errorf("Dropped = %+v", d)
		}
		w.Told()
		if len(told) != 2 || !strings.Contains(told[0].Error(), "Options.Syslog.MaxMessage") {
			t.Errorf("OnError was told %v", told)
		}
		eventually(t, "the short lines are there", func() bool { return len(peer.each()) == 4 })
	})
}

// With Truncate the message over the limit is cut, at a character's border, says
// so, and the line is written.
func TestSyslogTruncate(t *testing.T) {
	t.Parallel()
	cutMark := regexp.MustCompile(`\[cut (\d+) bytes\]$`)
	syslogPeers(t, func(t *testing.T, start func(t *testing.T) syslogPeer, o remote.Options) {
		o.OnError = func(err error) { t.Errorf("OnError(%v)", err) }
		o.Syslog.MaxMessage, o.Syslog.Truncate = 500, true
		peer := start(t)
		w := open(t, peer.url, o)
		var wanted []string
		for i := range 30 {
			wanted = append(wanted, strings.Repeat("x", 380+i)+strings.Repeat("\u20ac", 10+i*i*i)+"\n", numbered(i, i+1))
		}
		write(t, w, strings.Join(wanted, ""))
		if err := w.Close(); err != nil {
			t.Errorf("Close = %v", err)
		}
		settled(t, w, len(wanted), len(wanted))
		eventually(t, "all messages are there", func() bool { return len(peer.each()) == len(wanted) })
		cut := uint64(0)
		for i, m := range peer.each() {
			got := strings.TrimSuffix(payload(t, m), "\n")
			want := strings.TrimSuffix(wanted[i], "\n")
			if got == want {
				continue
			}
			cut++
			mark := cutMark.FindStringSubmatch(got)
			if mark == nil || len(m) > 500 || len(m) < 495 || !utf8.ValidString(m) {
				t.Errorf("message of %d bytes: %q", len(m), m)
				continue
			}
			head := strings.TrimSuffix(got, mark[0])
			if n, _ := strconv.Atoi(mark[1]); len(head)+n != len(want) || !strings.HasPrefix(want, head) {
				t.Errorf("%d of %d bytes, %s said to be cut: %q", len(head), len(want), mark[1], m)
			}
		}
		if s := w.Stats(); s.Truncated != cut || cut < 20 {
			t.Errorf("%d messages are cut, Stats %+v", cut, s)
		}
	})
}

// A message that has no room for its header and the mark is lost.
func TestSyslogTruncateTooShort(t *testing.T) {
	t.Parallel()
	syslogPeers(t, func(t *testing.T, start func(t *testing.T) syslogPeer, o remote.Options) {
		o.Syslog.MaxMessage, o.Syslog.Truncate = 60, true
		o.Syslog.Hostname = strings.Repeat("h", 60)
		w := open(t, start(t).url, o)
		write(t, w, numbered(0, 3))
		settled(t, w, 3, 0)
		if s := w.Stats(); s.Dropped != (line.Drops{TooLarge: 3}) || s.Truncated != 0 {
			t.Errorf("Stats %+v", s)
		}
	})
}

// A Write that fails midway returns whole messages, and what comes after on the
// next connection begins with the first that was not.
func TestSyslogResetMidway(t *testing.T) {
	t.Parallel()
	for _, framing := range []string{"octets", "newline"} {
		t.Run(framing, func(t *testing.T) {
			var later atomic.Bool
			peer := startTCPPeer(t, "127.0.0.1:0", nil, func(c net.Conn, keep io.Writer) {
				if !later.Swap(true) {
					io.CopyN(keep, c, 1<<20)
					reset(c)
					return
				}
				io.Copy(keep, c)
			})
			w := open(t, "syslog+tcp://"+peer.Addr().String(), remote.Options{Syslog: remote.Syslog{Framing: framing}})
			all := wide(20_000)
			// The reset comes amid a piece, or between two, and then the Write
			// goes on with the next connection.
			n, err := w.Write([]byte(all))
			if (err == nil) != (n == len(all)) || n > 0 && all[n-1] != '\n' {
				t.Fatalf("Write = %d of %d, %v, want a line end", n, len(all), err)
			}
			done := strings.Count(all[:n], "\n")
			settled(t, w, done, done)
			write(t, w, all[n:])
			if err := w.Close(); err == nil || !strings.Contains(err.Error(), "connections broke") {
				t.Errorf("Close = %v, want that a connection broke", err)
			}
			settled(t, w, 20_000, 20_000)
			each := peer.each()
			if len(each) != 2 {
				t.Fatalf("%d connections", len(each))
			}
			messages, rest := unframe(t, []byte(each[1]), framing == "octets")
			if len(rest) > 0 || len(messages) == 0 || err != nil && len(messages) != 20_000-done {
				t.Errorf("the second connection carried %d messages and %d bytes; %d were left", len(messages), len(rest), 20_000-done)
			}
			for _, m := range messages {
				if payload(t, m) != wide(1) {
					t.Fatalf("the second connection carried %.100q", m)
				}
			}
		})
	}
}

// The daemon may come back with a socket of the other kind.
func TestSyslogFindsTheKindOfSocket(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no local datagram sockets")
	}
	path := socketPath(t)
	w := open(t, "syslog+unix://"+path, remote.Options{Syslog: remote.Syslog{Hostname: "h", AppName: "a", ProcID: "1"}})
	stream := startTCPPeer(t, path, nil, nil)
	write(t, w, numbered(0, 2))
	if err := w.Sync(); err != nil {
		t.Errorf("Sync = %v", err)
	}
	messages, _ := unframe(t, stream.bytes(), false)
	if len(messages) != 2 || !strings.HasPrefix(messages[0], "<14>") || !strings.Contains(messages[0], " a[1]: {") {
		t.Errorf("the stream carried %q", messages)
	}
	stream.stop()
	os.Remove(path)
	gram := startGramPeer(t, "unixgram", path)
	write(t, w, numbered(2, 4))
	eventually(t, "two datagrams are there", func() bool { return len(gram.each()) == 2 })
	gram.stop()
	os.Remove(path)
	if n, err := w.Write([]byte(numbered(4, 5))); n != 0 || !errors.Is(err, os.ErrNotExist) && err == nil {
		t.Errorf("Write to nobody = %d, %v", n, err)
	}
	settled(t, w, 4, 4)
}

func TestSyslogOptionErrors(t *testing.T) {
	for _, c := range []struct {
		url  string
		o    remote.Syslog
		want string
	}{
		{"syslog+tcp://h:1", remote.Syslog{Format: "rfc1"}, `Format is "rfc1": known are rfc5424, rfc3164, local`},
		{"syslog+tcp://h:1", remote.Syslog{Framing: "nul"}, `Framing is "nul"`},
		{"syslog+tcp://h:1", remote.Syslog{Facility: "loud"}, `local7`},
		{"syslog+tcp://h:1", remote.Syslog{Severity: "loud"}, `emerg`},
		{"syslog+tcp://h:1", remote.Syslog{Hostname: "a b"}, "Hostname"},
		{"syslog+tcp://h:1", remote.Syslog{AppName: "a\n"}, "AppName"},
		{"syslog+tcp://h:1", remote.Syslog{AppName: strings.Repeat("x", 49)}, "48 bytes"},
		{"syslog+tcp://h:1", remote.Syslog{ProcID: "é"}, "ProcID"},
		{"syslog+tcp://h:1", remote.Syslog{MsgID: strings.Repeat("x", 33)}, "MsgID"},
		{"syslog+tcp://h:1", remote.Syslog{StructuredData: "a=b"}, "StructuredData"},
		{"syslog+tcp://h:1", remote.Syslog{StructuredData: "a", Format: "rfc3164"}, "only rfc5424"},
		{"syslog+tcp://h:1", remote.Syslog{MaxMessage: -1}, "MaxMessage"},
		{"tcp://h:1", remote.Syslog{AppName: "a"}, "leave out Options.Syslog"},
		{"syslog+tcp://h", remote.Syslog{}, "no port"},
		{"syslog+udp://h:1/path", remote.Syslog{}, "more than host and port"},
		{"syslog+unix://host/x", remote.Syslog{}, "absolute path"},
	} {
		_, err := remote.Open(c.url, remote.Options{Syslog: c.o})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s, %+v: %v, want %q", c.url, c.o, err, c.want)
		}
	}
	open(t, "syslog+unix://", remote.Options{}) // /dev/log
}

package receivertest

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fluent/fluent-logger-golang/fluent"

	"github.com/rollway/rollway/collector/config"
	"github.com/rollway/rollway/collector/normalize"
	"github.com/rollway/rollway/collector/receiver"
	"github.com/rollway/rollway/collector/receiver/forward"
	"github.com/rollway/rollway/internal/testkit"
)

// forwardServer is a collector that takes the forward protocol behind a proxy that
// keeps what clients send.
type forwardServer struct {
	*Server
	host string
	port int

	mu   sync.Mutex
	sent bytes.Buffer // guarded by mu
}

func startForward(t *testing.T, change ...func(*config.Config)) *forwardServer {
	t.Helper()
	s := &forwardServer{Server: Run(t, func(cfg *config.Config) {
		cfg.ListenForward = "tcp://127.0.0.1:0"
		for _, f := range change {
			f(cfg)
		}
	})}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	s.host, s.port = "127.0.0.1", ln.Addr().(*net.TCPAddr).Port
	go s.relay(ln)
	return s
}

func (s *forwardServer) relay(ln net.Listener) {
	for {
		in, err := ln.Accept()
		if err != nil {
			return
		}
		out, err := net.Dial("tcp", s.ForwardAddrs()[0].String())
		if err != nil {
			in.Close()
			return
		}
		go func() {
			io.Copy(in, out)
			in.Close()
		}()
		go func() {
			io.Copy(out, io.TeeReader(in, s))
			out.(*net.TCPConn).CloseWrite()
		}()
	}
}

// Write keeps what is sent.
func (s *forwardServer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sent.Write(p)
}

// replayForward makes lines of what a client sent once.
func replayForward(t *testing.T, sent []byte) string {
	t.Helper()
	c := &receiver.Chunk{
		Data: bytes.Clone(sent), Received: time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC),
		Norm: normalize.New(normalize.Limits{MaxPast: -1, MaxFuture: -1}), Batch: new(normalize.Batch),
	}
	n, err := forward.Protocol{}.Open().Decode(c)
	if err != nil || n != len(sent) || c.Batch.RejectedTotal > 0 {
		t.Errorf("%d of %d bytes are taken: %v, %+v", n, len(sent), err, c.Batch.Rejected)
	}
	if wanted, given := bytes.Count(sent, []byte("\xa5chunk")), bytes.Count(c.Reply, []byte("\x81\xa3ack")); given != wanted {
		t.Errorf("%d messages of %d that ask for it are acknowledged: %q", given, wanted, c.Reply)
	}
	return string(c.Batch.Lines)
}

var times = regexp.MustCompile(`"time":"[^"]*"`)

// check compares what has come of a client with its golden files, except for the
// times; with -update it writes them.
func (s *forwardServer) check(t *testing.T, client string, n int) {
	t.Helper()
	lines := strings.Join(s.Await(t, n), "\n") + "\n"
	s.mu.Lock()
	sent := bytes.Clone(s.sent.Bytes())
	s.mu.Unlock()
	Stream(t, client, sent, replayForward)
	want, err := os.ReadFile(golden(client, ".lines"))
	if err != nil {
		t.Fatal(err)
	}
	masked := func(s string) string { // connections are not stored in an order
		lines := strings.Split(times.ReplaceAllString(s, `"time":"T"`), "\n")
		slices.Sort(lines)
		return strings.Join(lines, "\n")
	}
	if masked(lines) != masked(string(want)) {
		t.Errorf("stored\n%swant\n%s", lines, want)
	}
}

func TestForwardGoClient(t *testing.T) {
	for _, ack := range []bool{false, true} {
		t.Run(fmt.Sprint("ack=", ack), func(t *testing.T) {
			s := startForward(t)
			logger, err := fluent.New(fluent.Config{
				FluentHost: s.host, FluentPort: s.port, RequestAck: ack, SubSecondPrecision: ack, TagPrefix: "shop",
				WriteTimeout: time.Minute, ReadTimeout: time.Minute, MaxRetry: 1,
			})
			if err != nil {
				t.Fatal(err)
			}
			at := time.Date(2026, 5, 28, 12, 40, 0, 123456789, time.UTC)
			for i, text := range []string{"one", "two é"} {
				record := map[string]any{"message": text}
				if i == 0 {
					record = map[string]any{"level": "error"}
				}
				// With an acknowledgement it returns when the event is stored.
				if err := logger.PostWithTime("cart", at, record); err != nil {
					t.Fatal(err)
				}
				if stored := s.Stats().Receive.Stored; ack && stored != uint64(i+1) {
					t.Errorf("%d events are stored after %d acknowledgements", stored, i+1)
				}
			}
			if err := logger.Close(); err != nil {
				t.Error(err)
			}
			if ack {
				s.check(t, "forward/go-ack", 2)
				return
			}
			s.check(t, "forward/go", 2)
		})
	}
}

func TestForwardPythonClient(t *testing.T) {
	testkit.Nightly(t, testkit.Engines, "its clients come from a registry")
	s := startForward(t)
	Python(t, `
import logging
from fluent import sender, handler
s = sender.FluentSender("app", host="127.0.0.1", port=`+strconv.Itoa(s.port)+`, nanosecond_precision=True)
assert s.emit_with_time("follow", 1779972000.25, {"from": "userA", "n": 7, "ok": True, "list": [1, None, 2.5]})
assert s.emit("plain", {"message": "héllo", "level": "warning", "raw": b"\x00\xff", "latin": "café".encode("latin-1")})
assert s.emit_with_time("text", 1779972001.0, "a record that is text")
s.close()
h = handler.FluentHandler("app.log", host="127.0.0.1", port=`+strconv.Itoa(s.port)+`)
h.setFormatter(handler.FluentRecordFormatter({"level": "%(levelname)s", "logger": "%(name)s"}))
log = logging.getLogger("shop")
log.addHandler(h)
log.error("it failed")
h.close()
`, "fluent-logger==0.11.1")
	s.check(t, "forward/python", 4)
}

func TestForwardNodeClient(t *testing.T) {
	testkit.Nightly(t, testkit.Engines, "its clients come from a registry")
	for _, mode := range []string{"Message", "Forward", "PackedForward", "CompressedPackedForward"} {
		t.Run(mode, func(t *testing.T) {
			s := startForward(t)
			Node(t, `
const { FluentClient, EventTime } = require("@fluent-org/logger");
const client = new FluentClient("app", {
  socket: { host: "127.0.0.1", port: `+strconv.Itoa(s.port)+` },
  eventMode: "`+mode+`", ack: { ackTimeout: 60000 }, disconnect: { waitForPending: true },
});
const at = new EventTime(1779972000, 5);
Promise.all([
  client.emit("a", { message: "one", level: "info", n: 1.5 }, at),
  client.emit("a", { message: "two", nested: { list: [true, null] } }, at),
]).then(() => client.disconnect()).then(() => process.exit(0), (e) => { console.error(e); process.exit(1); });
`, "@fluent-org/logger@1.0.10")
			s.check(t, "forward/node-"+mode, 2) // the promises are kept by acknowledgements
		})
	}
}

// TestForwardFluentd has Fluentd send, or where it is not, what it once sent.
func TestForwardFluentd(t *testing.T) {
	for name, options := range map[string]string{
		"forward/fluentd":          "",
		"forward/fluentd-ack":      "require_ack_response true",
		"forward/fluentd-ack-gzip": "require_ack_response true\n  compress gzip",
	} {
		t.Run(name, func(t *testing.T) {
			s := startForward(t)
			match := fmt.Sprintf("  @type forward\n  %s\n  <server>\n    host 127.0.0.1\n    port %d\n  </server>", options, s.port)
			if Fluentd(t, match, func() { s.Await(t, AgentEvents) }) {
				s.check(t, name, AgentEvents)
				return
			}
			Stream(t, name, nil, replayForward)
		})
	}
}

// TestForwardFluentBit has Fluent Bit send, or where it is not, what it once sent.
func TestForwardFluentBit(t *testing.T) {
	for name, options := range map[string]string{
		"forward/fluent-bit":          "",
		"forward/fluent-bit-ack":      "    require_ack_response on",
		"forward/fluent-bit-ack-gzip": "    require_ack_response on\n    compress gzip",
		"forward/fluent-bit-seconds":  "    time_as_integer on",
	} {
		t.Run(name, func(t *testing.T) {
			s := startForward(t)
			output := fmt.Sprintf("    name forward\n    host 127.0.0.1\n    port %d\n%s", s.port, options)
			if FluentBit(t, output, func() { s.Await(t, AgentEvents) }) {
				s.check(t, name, AgentEvents)
				return
			}
			Stream(t, name, nil, replayForward)
		})
	}
}

// TestForwardNodeHandshake has a client show that it knows the shared key, and a user's
// password where one is asked for; others are told why they are not let in.
func TestForwardNodeHandshake(t *testing.T) {
	testkit.Nightly(t, testkit.Engines, "its clients come from a registry")
	dir := t.TempDir()
	key, users := filepath.Join(dir, "key"), filepath.Join(dir, "users")
	for file, text := range map[string]string{key: "correct horse\n", users: "ann:pass word\nbob:b:c\n"} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct{ name, users, security, refused string }{
		{"key", "", `sharedKey: "correct horse"`, ""},
		{"wrong key", "", `sharedKey: "correct horse "`, "Authentication failed: shared_key mismatch"},
		{"user", users, `sharedKey: "correct horse", username: "bob", password: "b:c"`, ""},
		{"wrong password", users, `sharedKey: "correct horse", username: "ann", password: "b"`, "Authentication failed: username/password mismatch"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := startForward(t, func(cfg *config.Config) {
				cfg.Forward.SharedKeyFile, cfg.Forward.UsersFile = key, tt.users
			})
			Node(t, `
const { FluentClient } = require("@fluent-org/logger");
const refused = "`+tt.refused+`";
const client = new FluentClient("app", {
  socket: { host: "127.0.0.1", port: `+strconv.Itoa(s.port)+` },
  security: { clientHostname: "client.example", `+tt.security+` },
  ack: { ackTimeout: 60000 }, disconnect: { waitForPending: refused === "" },
});
client.socketOn("error", (e) => {
  const ok = refused !== "" && e.message === refused;
  if (!ok) console.error(e);
  process.exit(ok ? 0 : 1);
});
client.emit("a", { message: "behind the handshake" }).then(() => client.disconnect()).then(() => process.exit(refused === "" ? 0 : 1), (e) => {
  if (refused === "") { console.error(e); process.exit(1); }
});
setTimeout(() => process.exit(2), 60000);
`, "@fluent-org/logger@1.0.10")
			if tt.refused != "" {
				if r := s.Stats().Receive; r.Received != 0 {
					t.Errorf("of a client that is refused %d events are received", r.Received)
				}
				return
			}
			if lines := s.Await(t, 1); len(lines) != 1 || !strings.Contains(lines[0], "behind the handshake") {
				t.Errorf("stored are %q", lines)
			}
		})
	}
}

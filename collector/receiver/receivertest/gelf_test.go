package receivertest

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/rollway/rollway/collector/config"
	"github.com/rollway/rollway/collector/normalize"
	"github.com/rollway/rollway/collector/receiver"
	"github.com/rollway/rollway/collector/receiver/gelf"
)

// startGELF runs a collector that takes GELF over UDP, TCP and TLS.
func startGELF(t *testing.T) *syslogServer {
	t.Helper()
	s := new(syslogServer)
	s.cert, s.key, s.roots = certificate(t)
	s.Server = Run(t, func(cfg *config.Config) {
		cfg.ListenGELF = "udp://127.0.0.1:0 tcp://127.0.0.1:0 tls://127.0.0.1:0"
		cfg.TLS.Cert, cfg.TLS.Key = s.cert, s.key
	})
	s.Reader = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: s.roots}, DisableKeepAlives: true}}
	return s
}

func gelfChunk() *receiver.Chunk {
	return &receiver.Chunk{Received: time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC), Norm: normalize.New(normalize.Limits{MaxPast: -1, MaxFuture: -1}), Batch: new(normalize.Batch)}
}

// replayDatagrams makes lines of datagrams, each behind the number of its octets.
func replayDatagrams(t *testing.T, sent []byte) string {
	t.Helper()
	p, _ := gelf.Protocol{}.OpenPackets()
	c := gelfChunk()
	for len(sent) > 0 {
		head, rest, _ := bytes.Cut(sent, []byte(" "))
		n, err := strconv.Atoi(string(head))
		if err != nil || n > len(rest) {
			t.Fatalf("%q is no datagram", sent)
		}
		c.Data, sent = bytes.Clone(rest[:n]), rest[n:]
		p.DecodePacket(c)
	}
	c.Data, c.End = nil, true
	p.DecodePacket(c)
	if c.Batch.RejectedTotal > 0 {
		t.Errorf("%+v", c.Batch.Rejected)
	}
	return string(c.Batch.Lines)
}

// replayStream makes lines of what came over a connection.
func replayStream(t *testing.T, sent []byte) string {
	t.Helper()
	c := gelfChunk()
	c.Data, c.End = bytes.Clone(sent), true
	if n, err := (gelf.Protocol{}).Open().Decode(c); err != nil || n < len(sent) || c.Batch.RejectedTotal > 0 {
		t.Errorf("%d of %d bytes, %v, %+v", n, len(sent), err, c.Batch.Rejected)
	}
	return string(c.Batch.Lines)
}

// gelfPython is compiled under a name of its own, which is in what is sent.
const gelfPython = `
exec(compile(r'''
import hashlib, logging
import %[1]s
log = logging.getLogger("shop")
log.setLevel(logging.DEBUG)
h = %[1]s.%[2]s
log.addHandler(h)
log.info("paid: é 💶", extra={"order": 7, "who": {"id": 1}})
try:
    1 / 0
except ZeroDivisionError:
    log.exception("it failed")
log.warning("".join(hashlib.sha256(b"%%d" %% i).hexdigest() for i in range(80)))
log.removeHandler(h)
h.close()
''', "client.py", "exec"))
`

// TestGELFPython has graypy and pygelf send, the third event in chunks over UDP.
func TestGELFPython(t *testing.T) {
	for _, c := range []struct{ client, network, library, handler string }{
		{"gelf/graypy-udp", "udp", "graypy", `GELFUDPHandler("127.0.0.1", %s)`},
		{"gelf/graypy-tcp", "tcp", "graypy", `GELFTCPHandler("127.0.0.1", %s)`},
		{"gelf/pygelf-udp", "udp", "pygelf", `GelfUdpHandler(host="127.0.0.1", port=%s, compress=True, include_extra_fields=True)`},
		{"gelf/pygelf-tcp", "tcp", "pygelf", `GelfTcpHandler(host="127.0.0.1", port=%s, include_extra_fields=True, _service="shop")`},
	} {
		t.Run(c.client, func(t *testing.T) {
			gelfClient(t, c.client, c.network, func(port string) {
				Python(t, fmt.Sprintf(gelfPython, c.library, fmt.Sprintf(c.handler, port)), map[string]string{"graypy": "graypy==2.1.0", "pygelf": "pygelf==0.4.3"}[c.library])
			})
		})
	}
}

// TestGELFNode has gelf-pro send, likewise.
func TestGELFNode(t *testing.T) {
	for _, network := range []string{"udp", "tcp"} {
		client := "gelf/gelf-pro-" + network
		t.Run(client, func(t *testing.T) {
			gelfClient(t, client, network, func(port string) {
				Node(t, `
const crypto = require('crypto')
const log = require('gelf-pro')
log.setConfig({adapterName: '`+network+`', adapterOptions: {host: '127.0.0.1', port: `+port+`}, fields: {service: 'shop'}})
const failure = new Error('no money')
failure.stack = 'Error: no money\\n    at pay (client.js:7:1)'
let long = ''
for (let i = 0; i < 80; i++) long += crypto.createHash('sha256').update(String(i)).digest('hex')
log.info('paid: é 💶', {order: 7, who: {id: 1}}, () =>
  log.error('it failed', failure, () =>
    log.warning(long, () => setTimeout(() => process.exit(0), 100))))
`, "gelf-pro@1.4.0")
			})
		})
	}
}

// gelfClient has a client send three events, and compares their lines with those of what
// it sent when it was recorded.
func gelfClient(t *testing.T, client, network string, send func(port string)) {
	s := startGELF(t)
	replay, to := replayStream, s.GELFAddrs()[1]
	if network == "udp" {
		replay, to = replayDatagrams, s.GELFAddrs()[0]
	}
	r := record(t, network, to.String())
	_, port, _ := net.SplitHostPort(r.addr)
	send(port)
	lines := s.Await(t, 3)
	Stream(t, client, r.bytes(), replay)
	sameLines(t, client, lines)
}

// TestGELFRecorded replays what clients send that are not here: go-gelf (Docker's driver)
// was recorded once; logback-gelf is what its documentation says that it sends.
func TestGELFRecorded(t *testing.T) {
	for client, replay := range map[string]func(*testing.T, []byte) string{
		"gelf/go-gelf-udp": replayDatagrams, "gelf/go-gelf-tcp": replayStream, "gelf/logback-gelf-tcp.published": replayStream,
	} {
		t.Run(client, func(t *testing.T) {
			sent, err := os.ReadFile(golden(client, ".request"))
			if err != nil {
				t.Fatal(err)
			}
			Stream(t, client, sent, replay)
		})
	}
}

// Over TLS a message is taken as over TCP.
func TestGELFOverTLS(t *testing.T) {
	s := startGELF(t)
	conn, err := tls.Dial("tcp", s.GELFAddrs()[2].String(), &tls.Config{RootCAs: s.roots})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Write([]byte("{\"short_message\":\"over TLS\",\"level\":3}\x00")); err != nil {
		t.Fatal(err)
	}
	if line := settled(s.Await(t, 1)[0]); line != `{"time":"T","level":"ERROR","msg":"over TLS"}` {
		t.Error(line)
	}
}

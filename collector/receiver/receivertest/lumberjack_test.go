package receivertest

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	lumber "github.com/elastic/go-lumber/client/v2"

	"github.com/rollway/rollway/collector/config"
)

func startLumberjack(t *testing.T) *syslogServer {
	t.Helper()
	s := new(syslogServer)
	s.cert, s.key, s.roots = certificate(t)
	s.Server = Run(t, func(cfg *config.Config) {
		cfg.ListenLumberjack = "tcp://127.0.0.1:0 tls://127.0.0.1:0"
		cfg.TLS.Cert, cfg.TLS.Key, cfg.TLS.ClientCA = s.cert, s.key, s.cert
	})
	pair, err := tls.LoadX509KeyPair(s.cert, s.key)
	if err != nil {
		t.Fatal(err)
	}
	s.Reader = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: s.roots, Certificates: []tls.Certificate{pair}}, DisableKeepAlives: true}}
	return s
}

// beats are events as Filebeat sends them.
func beats(from, n int) (list []any) {
	for i := range n {
		list = append(list, map[string]any{
			"@timestamp": "2026-05-28T12:40:00.123Z", "message": fmt.Sprintf("line %d é 💶", from+i), "host": map[string]any{"name": "web-1"},
			"log": map[string]any{"file": map[string]any{"path": "/var/log/app.log"}}, "agent": map[string]any{"type": "filebeat"},
		})
	}
	return list
}

func beatLine(i int) string {
	return fmt.Sprintf(`{"time":"2026-05-28T12:40:00.123000000Z","level":"INFO","msg":"line %d é 💶","attrs":{"agent":{"type":"filebeat"},"host":"web-1","log":{"file":{"path":"/var/log/app.log"}}}}`, i)
}

// Elastic's client sends windows one by one, over TCP and with a certificate over TLS: when
// one is acknowledged it is stored.
func TestLumberjackSync(t *testing.T) {
	s := startLumberjack(t)
	pair, err := tls.LoadX509KeyPair(s.cert, s.key)
	if err != nil {
		t.Fatal(err)
	}
	overTLS := func(network, address string) (net.Conn, error) {
		return tls.Dial(network, address, &tls.Config{RootCAs: s.roots, Certificates: []tls.Certificate{pair}})
	}
	sent := 0
	for _, tt := range []struct {
		address int
		dial    func(network, address string) (net.Conn, error)
		level   int
	}{{0, net.Dial, 0}, {0, net.Dial, 3}, {1, overTLS, 3}} {
		c, err := lumber.SyncDialWith(tt.dial, s.LumberjackAddrs()[tt.address].String(), lumber.CompressionLevel(tt.level), lumber.Timeout(time.Minute))
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range []int{1, 3, 3000} { // the last is more than one read
			if got, err := c.Send(beats(sent, n)); got != n || err != nil {
				t.Fatalf("level %d: %d of %d events are acknowledged, %v", tt.level, got, n, err)
			}
			if sent += n; s.Stats().Receive.Stored != uint64(sent) {
				t.Errorf("%d events are stored, %d are acknowledged", s.Stats().Receive.Stored, sent)
			}
		}
		c.Close()
	}
	for i, line := range s.Lines(t) {
		if want := beatLine(sent - 1000 + i); line != want {
			t.Fatalf("got  %s\nwant %s", line, want)
		}
	}
	if c, err := lumber.SyncDialWith(func(network, address string) (net.Conn, error) {
		return tls.Dial(network, address, &tls.Config{RootCAs: s.roots})
	}, s.LumberjackAddrs()[1].String(), lumber.Timeout(time.Minute)); err == nil {
		if n, err := c.Send(beats(0, 1)); err == nil {
			t.Errorf("%d events are taken of a client without a certificate", n)
		}
	}
}

// Elastic's asynchronous client has several windows under way.
func TestLumberjackAsync(t *testing.T) {
	s := startLumberjack(t)
	for _, level := range []int{0, 3} {
		c, err := lumber.AsyncDial(s.LumberjackAddrs()[0].String(), 10, lumber.CompressionLevel(level), lumber.Timeout(time.Minute))
		if err != nil {
			t.Fatal(err)
		}
		const windows, each = 30, 33
		before := s.Stats().Receive.Stored
		var acks sync.WaitGroup
		for i := range windows {
			acks.Add(1)
			err := c.Send(func(seq uint32, err error) {
				defer acks.Done()
				if seq != each || err != nil {
					t.Errorf("level %d: %d of window %d are acknowledged, %v", level, seq, i, err)
				}
			}, beats(i*each, each))
			if err != nil {
				t.Fatal(err)
			}
		}
		acks.Wait()
		c.Close()
		if stored := s.Stats().Receive.Stored - before; stored != windows*each {
			t.Errorf("level %d: %d events are stored", level, stored)
		}
		lines := s.Lines(t)
		lines = lines[max(0, len(lines)-windows*each):]
		want := make([]string, windows*each)
		for i := range want {
			want[i] = beatLine(i)
		}
		if !slices.Equal(lines, want) {
			t.Errorf("level %d:\n%s", level, strings.Join(lines, "\n"))
		}
	}
}

package loki_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/rollway/rollway/collector/receiver/receivertest"
	"github.com/rollway/rollway/internal/testkit"
	"github.com/rollway/rollway/remote"
)

// mask hides what differs from machine to machine.
var mask = receivertest.Mask{"pid", "hostname", "stack"}

func TestPino(t *testing.T) {
	testkit.Nightly(t, testkit.Engines, "its clients come from a registry")
	receivertest.Client(t, "pino-loki", mask, func(url string) {
		receivertest.Node(t, `
const pino = require('pino');
const transport = pino.transport({ target: 'pino-loki', options: { host: '`+url+`', batching: false, labels: { app: 'shop' } } });
const log = pino(transport);
transport.on('ready', () => {
  log.warn({ ms: 812, nested: { k: true } }, 'slow');
  // At its end the transport does not wait for what it is sending.
  const stored = setInterval(async () => {
    const answer = await fetch('`+url+`/metrics');
    if (/rollway_events_stored_total [1-9]/.test(await answer.text())) { clearInterval(stored); transport.end(); }
  }, 100);
});
`, "pino@10.4.0", "pino-loki@3.0.0")
	})
}

func TestWinston(t *testing.T) {
	testkit.Nightly(t, testkit.Engines, "its clients come from a registry")
	receivertest.Client(t, "winston-loki", mask, func(url string) {
		receivertest.Node(t, `
const winston = require('winston');
const LokiTransport = require('winston-loki');
const transport = new LokiTransport({ host: '`+url+`', labels: { app: 'shop' }, batching: true, interval: 1, onConnectionError: (e) => { console.error(e); process.exit(1); } });
const log = winston.createLogger({ transports: [transport] });
log.warn('slow', { ms: 812, labels: { region: 'eu' } });
log.error('failed');
setTimeout(() => transport.flush().then(() => process.exit(0)), 100);
`, "winston@3.19.0", "winston-loki@6.1.7")
	})
}

func TestPython(t *testing.T) {
	testkit.Nightly(t, testkit.Engines, "its clients come from a registry")
	receivertest.Client(t, "python-logging-loki", mask, func(url string) {
		receivertest.Python(t, `
import logging, logging_loki
log = logging.getLogger("checkout")
log.addHandler(logging_loki.LokiHandler(url="`+url+`/loki/api/v1/push", tags={"app": "shop"}, version="1"))
log.warning("slow", extra={"tags": {"ms": "812"}})
log.error("failed \"here\"\n")
`, "python-logging-loki==0.3.1")
	})
}

// TestReplay sends again what the clients sent.
func TestReplay(t *testing.T) { receivertest.Replay(t, mask) }

// TestRemote has this project's own writer for Loki send canonical lines, which
// come out as they went in but for the label of the service.
func TestRemote(t *testing.T) {
	s := receivertest.Run(t, nil)
	w, err := remote.Open("loki+"+s.URL, remote.Options{Timeout: time.Minute, Header: http.Header{"X-Scope-OrgID": {"shop"}}, Loki: remote.Loki{Labels: map[string]string{"app": "shop"}}})
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	at := time.Now().UTC().Truncate(time.Microsecond)
	for i, level := range strings.Fields("TRACE DEBUG DEBUG+2 INFO INFO+2 WARN ERROR ERROR+1 PANIC FATAL FATAL+2") {
		line, err := json.Marshal(map[string]any{"n": i, "text": "quoted \"and\"\nmore", "deep": []any{1, map[string]any{"k": nil}}})
		if err != nil {
			t.Fatal(err)
		}
		front := `{"time":"` + at.Add(time.Duration(i)*time.Microsecond).Format("2006-01-02T15:04:05.000000000Z") + `","level":"` + level + `","msg":"m"`
		want = append(want, front+`,"service":"shop","attrs":`+string(line)+`}`)
		if _, err := w.Write([]byte(front + `,"attrs":` + string(line) + "}\n")); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	got := map[string]bool{}
	for _, line := range s.Lines(t) {
		got[line] = true
	}
	for _, line := range want {
		if !got[line] {
			t.Errorf("missing %s\nin %q", line, s.Lines(t))
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d lines, want %d", len(got), len(want))
	}
}

// TestFluentBit has Fluent Bit send, or where it is not, what it once sent.
func TestFluentBit(t *testing.T) {
	const head = "    name loki\n    host HOST\n    port PORT\n"
	receivertest.Agents(t, mask, receivertest.FluentBit, map[string]string{
		"fluent-bit":          head,
		"fluent-bit-metadata": head + "    labels job=shop, $level\n    structured_metadata $n, host=web-1\n    structured_metadata_map_keys $nested\n    tenant_id one\n    compress gzip\n",
		"fluent-bit-line":     head + "    line_format key_value\n    remove_keys tags, nested\n",
	})
}

package main

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/rollway/rollway"
	"github.com/rollway/rollway/file"
	"github.com/rollway/rollway/internal/testkit"
	"github.com/rollway/rollway/line"
	"github.com/rollway/rollway/relay"
	"github.com/rollway/rollway/remote"
	"github.com/rollway/rollway/slab"
)

// promtool runs Prometheus' own checker.
func promtool(t *testing.T, stdin string, args ...string) {
	t.Helper()
	program := testkit.Program(t, "promtool") // of the Debian package prometheus
	cmd := exec.Command(program, args...)
	cmd.Stdin = strings.NewReader(stdin)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

func alertsFile(t *testing.T) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("..", "..", "..", "docs", "alerts.yml"))
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// Prometheus accepts the rules, and what the packages answer to a scrape.
func TestPromtoolChecks(t *testing.T) {
	promtool(t, "", "check", "rules", alertsFile(t))
	_, text := libraryMetrics(t)
	promtool(t, text, "check", "metrics")
}

// logStats is what a scrape asks for.
type logStats struct {
	slab.Stats
	file   file.Stats
	logger rollway.OutputStats
	remote remote.Stats
	relay  relay.Stats
}

// busy is what a Writer without trouble says after that many minutes.
func busy(minute int) *logStats {
	n := uint64(minute)
	return &logStats{
		Stats: slab.Stats{
			Ledger: line.Ledger{Accepted: 60_000 * n, Written: 60_000 * n},
			Bytes:  18e9 * n,
			Writes: 2400 * n, WriteTime: time.Duration(2400*n) * 10 * time.Millisecond, WriteMax: 200 * time.Millisecond,
			Memory: 134_217_728, Slabs: 100, SlabsFree: 50,
		},
		file:   file.Stats{Path: "/var/log/payment/payment.log"},
		logger: rollway.OutputStats{Name: "main", Ledger: line.Ledger{Accepted: 60_000 * n, Written: 60_000 * n}},
		remote: remote.Stats{Ledger: line.Ledger{Accepted: 60_000 * n, Written: 60_000 * n}},
		relay: relay.Stats{
			Active: 50, MaxConns: 100, Closed: map[relay.Reason]uint64{},
			Upstreams: []relay.UpstreamStats{{Upstream: "tcp://a:1", Address: "10.0.0.1:1"}},
		},
	}
}

// Each alert of docs/alerts.yml fires beyond the bound that
// docs/DEPLOYMENT.md gives, with the text that tells so, and not before it: by
// Prometheus' own engine, from the text that a Writer answers each minute.
func TestAlertsFire(t *testing.T) {
	const drops, mean, max, memory = "LogDrops", "LogWriteMeanHigh", "LogWriteMaxHigh", "LogMemoryHigh"
	const dropsMany, meanVery, maxVery, memoryVery = "LogDropsMany", "LogWriteMeanVeryHigh", "LogWriteMaxVeryHigh", "LogMemoryVeryHigh"
	dropped := func(share float64) func(*logStats, int) {
		return func(s *logStats, _ int) {
			s.Dropped.Full = uint64(share * float64(s.Accepted))
			s.Written -= s.Dropped.Full
		}
	}
	meanOf := func(d time.Duration) func(*logStats, int) {
		return func(s *logStats, _ int) { s.WriteTime = time.Duration(s.Writes) * d }
	}
	longest := func(d time.Duration) func(*logStats, int) {
		return func(s *logStats, minute int) {
			if minute >= 10 {
				s.WriteMax = d
			}
		}
	}
	free := func(n int) func(*logStats, int) { return func(s *logStats, _ int) { s.SlabsFree = n } }
	stalled := func(d time.Duration) func(*logStats, int) {
		return func(s *logStats, minute int) {
			if minute == testedMinute {
				s.Stalled = d
			}
		}
	}
	var tests []map[string]any
	for name, c := range map[string]struct {
		change func(s *logStats, minute int)
		fire   map[string]string // alert: what its summary says
	}{
		"busy":           {func(*logStats, int) {}, nil},
		"idle":           {func(s *logStats, _ int) { *s = *busy(0) }, nil},
		"drops 0.45 %":   {dropped(0.0045), nil},
		"drops 0.55 %":   {dropped(0.0055), map[string]string{drops: "0.55% of the lines are dropped"}},
		"drops 0.95 %":   {dropped(0.0095), map[string]string{drops: "0.95% of the lines are dropped"}},
		"drops 1.05 %":   {dropped(0.0105), map[string]string{drops: "1.05% of the lines are dropped", dropsMany: "1.05% of the lines are dropped"}},
		"mean 45 ms":     {meanOf(45 * time.Millisecond), nil},
		"mean 55 ms":     {meanOf(55 * time.Millisecond), map[string]string{mean: "a write takes 55ms in the mean"}},
		"mean 95 ms":     {meanOf(95 * time.Millisecond), map[string]string{mean: "a write takes 95ms in the mean"}},
		"mean 105 ms":    {meanOf(105 * time.Millisecond), map[string]string{mean: "a write takes 105ms in the mean", meanVery: "a write takes 105ms in the mean"}},
		"max 450 ms":     {longest(450 * time.Millisecond), nil},
		"max 550 ms":     {longest(550 * time.Millisecond), map[string]string{max: "a write took 550ms"}},
		"max 950 ms":     {longest(950 * time.Millisecond), map[string]string{max: "a write took 950ms"}},
		"max 1050 ms":    {longest(1050 * time.Millisecond), map[string]string{max: "a write took 1.05s", maxVery: "a write took 1.05s"}},
		"max long ago":   {func(s *logStats, _ int) { s.WriteMax = 2 * time.Second }, nil},
		"stalled":        {stalled(550 * time.Millisecond), map[string]string{max: "a write took 550ms"}},
		"stalled long":   {stalled(1050 * time.Millisecond), map[string]string{max: "a write took 1.05s", maxVery: "a write took 1.05s"}},
		"memory 79 %":    {free(21), nil},
		"memory 81 %":    {free(19), map[string]string{memory: "81% of the slabs are in use"}},
		"memory 94 %":    {free(6), map[string]string{memory: "94% of the slabs are in use"}},
		"memory 96 %":    {free(4), map[string]string{memory: "96% of the slabs are in use", memoryVery: "96% of the slabs are in use"}},
		"a disk is full": {func(s *logStats, _ int) { s.Failing = true }, map[string]string{"LogFailing": "writes fail or hang; a full disk, or a broken one"}},
		"copytruncate": {func(s *logStats, minute int) { s.file.Truncations = uint64(minute / 20) },
			map[string]string{"LogFileTruncated": "somebody cuts the file, as copytruncate does; lines may be lost"}},
		"a file fails": {func(s *logStats, _ int) { s.file.Failing = true }, map[string]string{"LogFileFailing": "the file cannot be written or synced"}},
		"an output drops": {func(s *logStats, minute int) { s.logger.Dropped.GaveUp = uint64(minute) },
			map[string]string{"LoggerDrops": "5 lines are dropped"}},
		"an output fails": {func(s *logStats, _ int) { s.logger.Failing = true }, map[string]string{"LoggerFailing": "the newest line was dropped"}},
		"a peer is away":  {func(s *logStats, _ int) { s.remote.Failing = true }, map[string]string{"RemoteFailing": "the peer is away or refuses"}},
		"a peer refuses": {func(s *logStats, minute int) { s.remote.Dropped.Refused = uint64(minute) },
			map[string]string{"RemoteDrops": "5 lines are lost"}},
		"a line waits on disk": {func(s *logStats, _ int) { s.remote.Spill.OldestAge = 901 * time.Second },
			map[string]string{"RemoteSpillOld": "lines have waited on disk for 15m 1s"}},
		"an upstream is down": {func(s *logStats, _ int) { s.relay.Upstreams[0].Down = true },
			map[string]string{"RelayUpstreamDown": "10.0.0.1:1 of tcp://a:1 is down"}},
		"no upstream": {func(s *logStats, minute int) { s.relay.Closed[relay.ReasonDial] = uint64(minute) },
			map[string]string{"RelayConnectionsFail": "5 clients reached no upstream"}},
		"the relay is 90 % full": {func(s *logStats, _ int) { s.relay.Active = 90 }, nil},
		"the relay is 91 % full": {func(s *logStats, _ int) { s.relay.Active = 91 },
			map[string]string{"RelayFull": "91% of the connections are in use"}},
	} {
		tests = append(tests, ruleTest(t, name, c.change, c.fire))
	}
	runRuleTests(t, tests)
}

// runRuleTests gives tests of the alerts to promtool.
func runRuleTests(t *testing.T, tests []map[string]any) {
	t.Helper()
	text, err := yaml.Marshal(map[string]any{"rule_files": []string{alertsFile(t)}, "evaluation_interval": "1m", "tests": tests})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "alerts_test.yml")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	promtool(t, "", "test", "rules", file)
}

// Each alert on a collector fires beyond its bound, and not below it.
func TestCollectorAlertsFire(t *testing.T) {
	const flat, rising = "0x30", "0+60x30"
	const turnedAway = "rollway_refused_total|receiver=/api/logs,reason=too_many_requests,token=w,network=10.0.0.0/24"
	steady := map[string]string{ // by metric; of a collector without trouble
		"rollway_ready":                                          "1x30",
		"rollway_journal_full_total":                             flat,
		"rollway_journal_write_errors_total":                     flat,
		"rollway_journal_sync_errors_total":                      flat,
		"rollway_journal_missed_lines_total":                     flat,
		"rollway_events_failed_total":                            flat,
		"rollway_events_received_total":                          "0+6000x30",
		`rollway_events_rejected_total|reason=syntax`:            "0+59x30",
		"rollway_dead_letters_dropped_events_total|reason=disk":  flat,
		"rollway_udp_datagrams_dropped_total":                    flat,
		"rollway_http_connections":                               "90x30",
		"rollway_http_connections_limit":                         "100x30",
		"rollway_panics_total":                                   flat,
		turnedAway:                                               "0+60x30",
		"rollway_sink_pending|sink=kafka":                        "890x30",
		"rollway_sink_delivered_total|sink=kafka":                rising,
		`rollway_sink_dropped_total|sink=kafka,reason=retention`: flat,
		`rollway_journal_findings|kind=damaged,state=open`:       flat,
		"rollway_data_disk_free_bytes":                           "1000-1x30",
		"rollway_data_disk_bytes":                                "1900x30",
		"rollway_ahead_batches_total":                            flat,
		"rollway_backup_sent_timestamp_seconds":                  "-120000x30", // the tests' time begins in 1970
		"rollway_tls_certificate_expires_timestamp_seconds":      "700000x30",
		"rollway_events_stored_total":                            "0+5941x30",
		"rollway_events_duplicate_total":                         flat,
	}
	var tests []map[string]any
	add := func(alert, metric, values, summary string, stored ...string) {
		var series []map[string]string
		for name, usual := range steady {
			switch {
			case name == metric:
				usual = values
			case name == "rollway_events_stored_total" && len(stored) > 0: // so that the ledger agrees
				usual = stored[0]
			}
			base, labels, _ := strings.Cut(name, "|")
			text := `instance="a:4318"`
			for _, l := range strings.FieldsFunc(labels, func(r rune) bool { return r == ',' }) {
				key, value, _ := strings.Cut(l, "=")
				text += "," + key + "=" + strconv.Quote(value)
			}
			series = append(series, map[string]string{"series": base + "{" + text + "}", "values": usual})
		}
		var checks []map[string]any
		for _, group := range readAlerts(t).Groups {
			if group.Name != "rollway-collector" {
				continue
			}
			for _, rule := range group.Rules {
				expected := []map[string]any{}
				if rule.Alert == alert {
					labels := map[string]string{"severity": rule.Labels.Severity, "instance": "a:4318"}
					maps.Copy(labels, ownLabels[alert])
					if strings.HasPrefix(alert, "Sink") {
						labels["sink"] = "kafka"
					}
					expected = append(expected, map[string]any{"exp_labels": labels, "exp_annotations": map[string]string{"summary": "a:4318" + summary, "runbook_url": rule.Annotations.Runbook}})
				}
				checks = append(checks, map[string]any{"eval_time": fmt.Sprintf("%dm", testedMinute), "alertname": rule.Alert, "exp_alerts": expected})
			}
		}
		tests = append(tests, map[string]any{"name": alert, "interval": "1m", "input_series": series, "alert_rule_test": checks})
	}
	add("", "", "", "")
	add("CollectorNotReady", "rollway_ready", "0x30", ": lines cannot be stored")
	add("CollectorFull", "rollway_journal_full_total", rising, ": 300 batches were refused because the journal or its disk is full")
	add("CollectorDiskErrors", "rollway_journal_write_errors_total", rising, ": 300 writes or syncs of the journal failed")
	add("CollectorDiskErrors", "rollway_journal_sync_errors_total", rising, ": 300 writes or syncs of the journal failed")
	add("CollectorLinesMissing", "rollway_journal_missed_lines_total", rising, ": readers of the journal missed 300 lines")
	add("CollectorEventsFail", "rollway_events_failed_total", rising, ": 300 events could not be stored", "0+5881x30")
	add("CollectorRejects", "rollway_events_rejected_total|reason=syntax", "0+66x30", ": 1.1% of the events are rejected", "0+5934x30")
	add("CollectorDeadLettersLost", "rollway_dead_letters_dropped_events_total|reason=disk", rising, ": 300 rejected events could not be kept")
	add("CollectorDatagramsDropped", "rollway_udp_datagrams_dropped_total", rising, ": the system dropped 300 datagrams")
	add("CollectorConnectionsFull", "rollway_http_connections", "91x30", ": 91% of the HTTP connections are in use")
	add("CollectorTurnsAway", turnedAway, "0+120x30", ": 2 refusals a second at /api/logs, too_many_requests")
	add("CollectorPanics", "rollway_panics_total", rising, ": 300 requests ended in a panic")
	add("SinkStuck", "rollway_sink_delivered_total|sink=kafka", "5x30", " sink kafka: 890 lines wait, and none was delivered in 15 minutes")
	add("SinkDrops", "rollway_sink_dropped_total|sink=kafka,reason=retention", rising, " sink kafka: 300 lines will not be delivered")
	add("SinkLate", "rollway_sink_pending|sink=kafka", "901x30", " sink kafka: what waits takes 15m 1s at the rate of the last 15 minutes")
	add("CollectorDiskFills", "rollway_data_disk_free_bytes", "940-1x30", ": 910B are free for the data folder, and at the rate of the last 6 hours none in a day")
	add("CollectorClockSkew", "rollway_ahead_batches_total", rising, ": 300 batches came with times more than a minute ahead of the collector's clock")
	add("CollectorBackupOld", "rollway_backup_sent_timestamp_seconds", "-129600x30", ": the last backup was sent 1d 12h 30m 0s ago")
	add("CollectorCertificateExpires", "rollway_tls_certificate_expires_timestamp_seconds", "600000x30", ": the certificate of tls.cert ends in 6d 22h 10m 0s; SIGHUP reads a new one")
	add("CollectorLedgerDiffers", "rollway_events_stored_total", "0+5940x30", ": 30 events have no outcome; see rollway reconcile")
	add("CollectorJournalFindings", `rollway_journal_findings|kind=damaged,state=open`, "1x30", ": damaged in the journal's folder; see rollway verify, then acknowledge it with -acknowledge")
	runRuleTests(t, tests)
}

// ownLabels are the labels of an alert that come from its metric.
var ownLabels = map[string]map[string]string{
	"LoggerDrops":          {"output": "main"},
	"LoggerFailing":        {"output": "main"},
	"RelayUpstreamDown":    {"upstream": "tcp://a:1", "address": "10.0.0.1:1"},
	"RelayConnectionsFail": {"reason": "dial"},
	"CollectorTurnsAway":   {"receiver": "/api/logs", "reason": "too_many_requests"},

	"CollectorJournalFindings": {"kind": "damaged", "state": "open"},
}

// testedMinute is when alerts are looked at.
const testedMinute = 30

// ruleTest is a test of promtool: a scrape each minute of a busy Writer with a
// change. Of all alerts those fire that are named.
func ruleTest(t *testing.T, name string, change func(*logStats, int), fire map[string]string) map[string]any {
	t.Helper()
	values := map[string][]string{}
	for minute := range testedMinute + 1 {
		s := busy(minute)
		change(s, minute)
		for sample, value := range scrape(t, s) {
			values[sample] = append(values[sample], value)
		}
	}
	var series []map[string]string
	for _, sample := range slices.Sorted(maps.Keys(values)) {
		series = append(series, map[string]string{"series": sample, "values": strings.Join(values[sample], " ")})
	}
	var alerts []map[string]any
	for _, group := range readAlerts(t).Groups {
		for _, rule := range group.Rules {
			expected := []map[string]any{}
			if summary, ok := fire[rule.Alert]; ok {
				labels, subject := map[string]string{"severity": rule.Labels.Severity, "log": "payment", "instance": "a:9400"}, " payment"
				maps.Copy(labels, ownLabels[rule.Alert])
				if strings.HasPrefix(rule.Alert, "Logger") {
					subject = " output main"
				} else if strings.HasPrefix(rule.Alert, "Relay") {
					subject = ""
				}
				expected = append(expected, map[string]any{
					"exp_labels":      labels,
					"exp_annotations": map[string]string{"summary": "a:9400" + subject + ": " + summary},
				})
			}
			alerts = append(alerts, map[string]any{"eval_time": fmt.Sprintf("%dm", testedMinute), "alertname": rule.Alert, "exp_alerts": expected})
		}
	}
	return map[string]any{"name": name, "interval": "1m", "input_series": series, "alert_rule_test": alerts}
}

// scrape returns the samples of s as Prometheus keeps them: with the address.
func scrape(t *testing.T, s *logStats) map[string]string {
	t.Helper()
	var b bytes.Buffer
	labels := []string{"log", "payment", "instance", "a:9400"}
	logger := rollway.Stats{Outputs: []rollway.OutputStats{s.logger}}
	if err := errors.Join(s.WriteMetrics(&b, labels...), s.file.WriteMetrics(&b, labels...), logger.WriteMetrics(&b, labels...),
		s.remote.WriteMetrics(&b, labels...), s.relay.WriteMetrics(&b, labels...)); err != nil {
		t.Fatal(err)
	}
	samples := map[string]string{}
	for line := range strings.Lines(b.String()) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		at := strings.LastIndexByte(line, ' ')
		value, err := strconv.ParseFloat(strings.TrimSpace(line[at+1:]), 64)
		if err != nil {
			t.Fatal(err)
		}
		samples[line[:at]] = strconv.FormatFloat(value, 'f', -1, 64)
	}
	return samples
}

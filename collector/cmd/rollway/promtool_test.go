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

	"github.com/rollway/rollway/file"
	"github.com/rollway/rollway/internal/testkit"
	"github.com/rollway/rollway/line"
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

// Prometheus takes the rules, and what a Writer answers to a scrape.
func TestPromtoolChecks(t *testing.T) {
	promtool(t, "", "check", "rules", alertsFile(t))
	_, text := metricsOfLog(t)
	promtool(t, text, "check", "metrics")
}

// logStats is what a scrape asks for.
type logStats struct {
	slab.Stats
	file file.Stats
}

// busy is what a Writer without trouble says after that many minutes.
func busy(minute int) *logStats {
	n := uint64(minute)
	return &logStats{
		slab.Stats{
			Ledger: line.Ledger{Accepted: 60_000 * n, Written: 60_000 * n},
			Bytes:  18e9 * n,
			Writes: 2400 * n, WriteTime: time.Duration(2400*n) * 10 * time.Millisecond, WriteMax: 200 * time.Millisecond,
			Memory: 134_217_728, Slabs: 100, SlabsFree: 50,
		},
		file.Stats{Path: "/var/log/payment/payment.log"},
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
	} {
		tests = append(tests, ruleTest(t, name, c.change, c.fire))
	}
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
				expected = append(expected, map[string]any{
					"exp_labels":      map[string]string{"severity": rule.Labels.Severity, "log": "payment", "instance": "a:9400"},
					"exp_annotations": map[string]string{"summary": "a:9400 payment: " + summary},
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
	if err := errors.Join(s.WriteMetrics(&b, labels...), s.file.WriteMetrics(&b, labels...)); err != nil {
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

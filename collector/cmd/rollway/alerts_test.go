package main

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/rollway/rollway"
	"github.com/rollway/rollway/file"
	"github.com/rollway/rollway/relay"
	"github.com/rollway/rollway/remote"
	"github.com/rollway/rollway/slab"
)

// alertRules is docs/alerts.yml: fields that it does not name are errors.
type alertRules struct {
	Groups []struct {
		Name  string
		Rules []struct {
			Alert, Expr string
			For         string
			Labels      struct{ Severity string }
			Annotations struct {
				Summary string
				Runbook string `yaml:"runbook_url"`
			}
		}
	}
}

func readAlerts(t *testing.T) (rules alertRules) {
	t.Helper()
	f, err := os.Open(filepath.Join("..", "..", "..", "docs", "alerts.yml"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	d := yaml.NewDecoder(f)
	d.KnownFields(true)
	if err := d.Decode(&rules); err != nil {
		t.Fatal(err)
	}
	return rules
}

// metricName matches the names of metrics of the library's packages.
const metricName = `rollway_(?:logger|slab|file|remote|relay)_\w+`

// libraryMetrics returns the names of all samples that the library's packages write,
// and the text.
func libraryMetrics(t *testing.T) (names map[string]bool, text string) {
	t.Helper()
	var b bytes.Buffer
	failed := time.Unix(1, 0)
	for _, s := range []interface {
		WriteMetrics(io.Writer, ...string) error
	}{
		rollway.Stats{Outputs: []rollway.OutputStats{{Name: "stderr", LastErrorTime: failed}}},
		slab.Stats{LastErrorTime: failed},
		file.Stats{LastErrorTime: failed},
		remote.Stats{LastErrorTime: failed},
		relay.Stats{Upstreams: []relay.UpstreamStats{{Upstream: "tcp://a:1", Address: "10.0.0.1:1"}}},
	} {
		if err := s.WriteMetrics(&b, "log", "payment"); err != nil {
			t.Fatal(err)
		}
	}
	names = map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^(`+metricName+`)[{ ]`).FindAllStringSubmatch(b.String(), -1) {
		names[m[1]] = true
	}
	return names, b.String()
}

// collectorMetrics returns the names of all metrics of a collector with a sink, TLS, tokens and a
// rule, to which something of each outcome was sent, and what it answers to a scrape.
func collectorMetrics(t *testing.T) (names map[string]bool, text string) {
	t.Helper()
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	writeCertificate(t, 1, path("cert.pem"), path("key.pem"))
	writeFile(t, path("tokens.yaml"), "- {name: a, secret: a-0123456789abcdef, may: [write, read, operate]}\n- {name: b, secret: b-0123456789abcdef, tenant: b}\n")
	writeFile(t, path("rollway.yaml"), fmt.Sprintf("kafka: {brokers: \"127.0.0.1:1\"}\ntls: {cert: %q, key: %q}\naccess: {tokens: %q}\nrules: [{name: probes, drop: {where: msg=probe}}]\n",
		path("cert.pem"), path("key.pem"), path("tokens.yaml")))
	d := serveDaemon(t, "-data", path("data"), "-config", path("rollway.yaml"))
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	defer client.CloseIdleConnections()
	ask := func(method, path, token, body string) (int, string) {
		t.Helper()
		req, err := http.NewRequest(method, d.addr+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+token+"-0123456789abcdef")
		return received(t)(client.Do(req))
	}
	ask("POST", "/api/logs", "a", "{\"msg\":\"x\"}\n{\"msg\":\"probe\"}\nno JSON {\n")
	ask("POST", "/api/logs", "b", `{"msg":"of a tenant"}`)
	ask("POST", "/api/logs", "unknown", `{"msg":"x"}`)
	ask("POST", "/api/1/envelope/", "a", "{}\n{\"type\":\"transaction\"}\n{}\n")
	status, text := ask("GET", "/metrics", "a", "")
	if status != http.StatusOK {
		t.Fatal(status, text)
	}
	names = map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^# TYPE (\w+) `).FindAllStringSubmatch(text, -1) {
		names[m[1]] = true
	}
	return names, text
}

// Each metric and label that an alert uses exists, each package has an alert, and the
// bounds are those that docs/DEPLOYMENT.md names.
func TestAlertRules(t *testing.T) {
	names, text := libraryMetrics(t)
	library := len(names)
	more, moreText := collectorMetrics(t)
	maps.Copy(names, more)
	text += moreText
	metric := regexp.MustCompile(`rollway_\w+`)
	covered := map[string]bool{} // packages, by the prefix of their metrics
	bounds := map[string]string{}
	for _, g := range readAlerts(t).Groups {
		for _, r := range g.Rules {
			found := metric.FindAllString(r.Expr, -1)
			if len(found) == 0 {
				t.Errorf("%s names no metric: %s", r.Alert, r.Expr)
			}
			for _, name := range found {
				covered[packageOf(name)] = true
				if !names[name] {
					t.Errorf("%s names %s, which does not exist", r.Alert, name)
				}
			}
			if strings.Count(r.Expr, "(") != strings.Count(r.Expr, ")") {
				t.Errorf("%s: %s", r.Alert, r.Expr)
			}
			if _, err := time.ParseDuration(r.For); err != nil && r.For != "" {
				t.Errorf("%s: for %v", r.Alert, err)
			}
			if !slices.Contains([]string{"warning", "critical"}, r.Labels.Severity) || r.Annotations.Summary == "" {
				t.Errorf("%s: severity %q, summary %q", r.Alert, r.Labels.Severity, r.Annotations.Summary)
			}
			for _, l := range regexp.MustCompile(`without \((\w+)\)`).FindAllStringSubmatch(r.Expr, -1) {
				if !strings.Contains(text, l[1]+`="`) {
					t.Errorf("%s uses the label %s, which no metric has", r.Alert, l[1])
				}
			}
			bound := r.Labels.Severity
			for _, m := range regexp.MustCompile(`> ([0-9.]+)`).FindAllStringSubmatch(r.Expr, -1) {
				if m[1] != "0" && !strings.HasSuffix(bound, " "+m[1]) {
					bound += " " + m[1]
				}
			}
			if bounds[r.Alert] != "" {
				t.Errorf("two alerts %s", r.Alert)
			}
			bounds[r.Alert] = bound
		}
	}
	for alert, want := range map[string]string{
		"LogDrops": "warning 0.005", "LogDropsMany": "critical 0.01",
		"LogWriteMeanHigh": "warning 0.05", "LogWriteMeanVeryHigh": "critical 0.1",
		"LogWriteMaxHigh": "warning 0.5", "LogWriteMaxVeryHigh": "critical 1",
		"LogMemoryHigh": "warning 0.8", "LogMemoryVeryHigh": "critical 0.95",
	} {
		if bounds[alert] != want {
			t.Errorf("%s is %q, want %q", alert, bounds[alert], want)
		}
	}
	if library < 80 || len(more) < 60 || len(covered) != 6 {
		t.Errorf("%d and %d metrics; %v have alerts, want 5 packages and the collector", library, len(more), covered)
	}
}

// packageOf returns the package of a metric, or "collector".
func packageOf(metric string) string {
	if regexp.MustCompile(metricName).MatchString(metric) {
		return strings.Split(metric, "_")[1]
	}
	return "collector"
}

// Each alert on a collector, and only those, names what to do: a heading of a page.
func TestRunbooks(t *testing.T) {
	for _, g := range readAlerts(t).Groups {
		for _, r := range g.Rules {
			page, anchor, _ := strings.Cut(strings.TrimPrefix(r.Annotations.Runbook, "https://github.com/rollway/rollway/blob/main/"), "#")
			if g.Name != "rollway-collector" {
				if page != "" {
					t.Errorf("%s names %s", r.Alert, page)
				}
				continue
			}
			text, err := os.ReadFile(filepath.Join("..", "..", "..", page))
			if err != nil {
				t.Errorf("%s: %v", r.Alert, err)
			}
			if !slices.ContainsFunc(strings.Split(string(text), "\n"), func(line string) bool {
				heading, is := strings.CutPrefix(line, "## ")
				return is && strings.ReplaceAll(strings.ToLower(heading), " ", "-") == anchor
			}) {
				t.Errorf("%s: %s has no heading #%s", r.Alert, page, anchor)
			}
			if strings.HasSuffix(page, "RUNBOOKS.md") && !strings.Contains(string(text), "`"+r.Alert+"`") {
				t.Errorf("%s says nothing of %s", page, r.Alert)
			}
		}
	}
}

// Each metric and label of the dashboard is there on a collector, and Prometheus can read each expression.
func TestDashboard(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "dashboard.json"))
	if err != nil {
		t.Fatal(err)
	}
	var board struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr, LegendFormat string }
		}
	}
	if err := json.Unmarshal(text, &board); err != nil {
		t.Fatal(err)
	}
	names, metrics := collectorMetrics(t)
	metric := regexp.MustCompile(`\b(?:rollway|process|go)_\w+`)
	label := regexp.MustCompile(`[{,](\w+)=|\{\{(\w+)\}\}`)
	by := regexp.MustCompile(`by \(([\w, ]+)\)`)
	var rules []map[string]string
	for _, p := range board.Panels {
		for _, target := range p.Targets {
			expr := strings.NewReplacer("$instance", ".*", "$__rate_interval", "5m").Replace(target.Expr)
			rules = append(rules, map[string]string{"record": fmt.Sprintf("panel:%d", len(rules)), "expr": expr})
			used := metric.FindAllString(expr, -1)
			for _, name := range used {
				if !names[name] && !names[strings.TrimSuffix(name, "_bucket")] {
					t.Errorf("%s: there is no %s", p.Title, name)
				}
			}
			var labels []string
			for _, m := range label.FindAllStringSubmatch(expr+target.LegendFormat, -1) {
				labels = append(labels, m[1]+m[2])
			}
			for _, m := range by.FindAllStringSubmatch(expr, -1) {
				labels = append(labels, strings.Split(m[1], ", ")...)
			}
			for _, l := range labels {
				if l != "instance" && !slices.ContainsFunc(used, func(name string) bool {
					return regexp.MustCompile(`(?m)^` + name + `\{[^}]*\b` + l + `="`).MatchString(metrics)
				}) {
					t.Errorf("%s: %q have no label %s", p.Title, used, l)
				}
			}
		}
	}
	if len(rules) < 20 {
		t.Errorf("%d expressions", len(rules))
	}
	file := filepath.Join(t.TempDir(), "rules.yml")
	all, err := yaml.Marshal(map[string]any{"groups": []any{map[string]any{"name": "dashboard", "rules": rules}}})
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, file, string(all))
	promtool(t, "", "check", "rules", file)
}

// What docs/DEPLOYMENT.md names of metrics and alerts is there.
func TestDeploymentNames(t *testing.T) {
	doc, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "DEPLOYMENT.md"))
	if err != nil {
		t.Fatal(err)
	}
	names, _ := libraryMetrics(t)
	for _, name := range regexp.MustCompile(metricName).FindAllString(string(doc), -1) {
		if !names[name] {
			t.Errorf("docs/DEPLOYMENT.md names %s, which no package writes", name)
		}
	}
	for _, g := range readAlerts(t).Groups {
		for _, r := range g.Rules {
			if !strings.Contains(string(doc), "`"+r.Alert+"`") {
				t.Errorf("docs/DEPLOYMENT.md says nothing of %s", r.Alert)
			}
		}
	}
}

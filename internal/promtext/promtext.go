// Package promtext writes metrics in the text format of Prometheus, which any
// scraper reads: https://prometheus.io/docs/instrumenting/exposition_formats/
package promtext

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rollway/rollway/line"
)

// Page is a page of metrics.
type Page struct {
	prefix string // of all names
	labels string // of every sample, each with a comma after it
	b      bytes.Buffer
}

var labelName = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]*$`)

// New begins a page. Each name gets the prefix, and each sample the labels, names
// and values by turns. The error names a label that cannot be one, or that is
// reserved because the page uses it for something else.
func New(prefix string, labels []string, reserved ...string) (*Page, error) {
	if len(labels)%2 != 0 {
		return nil, fmt.Errorf("label %q has no value", labels[len(labels)-1])
	}
	seen := map[string]bool{}
	for i := 0; i < len(labels); i += 2 {
		name := labels[i]
		switch {
		case !labelName.MatchString(name), strings.HasPrefix(name, "__"):
			return nil, fmt.Errorf("%q cannot be the name of a label", name)
		case name == "reason" || slices.Contains(reserved, name):
			return nil, fmt.Errorf("label %q has a meaning of its own here", name)
		case seen[name]:
			return nil, fmt.Errorf("label %q is there twice", name)
		}
		seen[name] = true
	}
	return &Page{prefix: prefix, labels: labelText(labels)}, nil
}

func labelText(labels []string) string {
	var b strings.Builder
	for i := 0; i < len(labels); i += 2 {
		b.WriteString(labels[i] + `="` + escapes.Replace(strings.ToValidUTF8(labels[i+1], "\uFFFD")) + `",`)
	}
	return b.String()
}

var escapes = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

// Family begins the samples of one name. kind is counter, gauge or summary.
func (p *Page) Family(name, kind, help string) {
	fmt.Fprintf(&p.b, "# HELP %s%s %s\n# TYPE %s%s %s\n", p.prefix, name, help, p.prefix, name, kind)
}

// Sample adds a sample to the family that was begun last.
func (p *Page) Sample(name string, value float64, labels ...string) {
	p.b.WriteString(p.prefix + name)
	if text := p.labels + labelText(labels); text != "" {
		p.b.WriteString("{" + strings.TrimSuffix(text, ",") + "}")
	}
	format := byte('f') // 1e+06 is allowed, and hard to read
	if size := math.Abs(value); size >= 1<<53 || size > 0 && size < 1e-9 {
		format = 'g'
	}
	p.b.WriteString(" " + strconv.FormatFloat(value, format, -1, 64) + "\n")
}

// Counter adds a family of one counter.
func (p *Page) Counter(name, help string, value uint64) {
	p.Family(name, "counter", help)
	p.Sample(name, float64(value))
}

// Gauge adds a family of one gauge.
func (p *Page) Gauge(name, help string, value float64) {
	p.Family(name, "gauge", help)
	p.Sample(name, value)
}

// Flag adds a family of one gauge that is 0 or 1.
func (p *Page) Flag(name, help string, value bool) {
	n := 0.0
	if value {
		n = 1
	}
	p.Gauge(name, help, n)
}

// Ledger adds what became of the lines that a writer was given.
func (p *Page) Ledger(l line.Ledger) {
	p.Counter("lines_accepted_total", "Lines taken, those dropped later included.", l.Accepted)
	p.Counter("lines_written_total", "Lines that the destination has taken.", l.Written)
	p.Family("lines_dropped_total", "counter", "Lines lost, by reason.")
	d := l.Dropped
	for _, r := range [...]struct {
		reason string
		n      uint64
	}{
		{"full", d.Full}, {"too_large", d.TooLarge}, {"gave_up", d.GaveUp}, {"refused", d.Refused},
		{"expired", d.Expired}, {"damaged", d.Damaged}, {"shutdown", d.Shutdown},
	} {
		p.Sample("lines_dropped_total", float64(r.n), "reason", r.reason)
	}
	p.Gauge("lines_pending", "Lines that are neither written nor dropped yet.", float64(l.Pending))
	p.Counter("lines_rejected_total", "Lines given after Close.", l.Rejected)
}

// Failure adds whether a destination fails and when it last did, zero for never.
func (p *Page) Failure(failing bool, last time.Time) {
	p.Flag("failing", "1 while the destination fails or hangs.", failing)
	if !last.IsZero() {
		p.Gauge("last_error_timestamp_seconds", "When the destination failed last.", float64(last.UnixMilli())/1e3)
	}
}

// WriteTo writes the page.
func (p *Page) WriteTo(w io.Writer) (int64, error) { return p.b.WriteTo(w) }

package promtext_test

import (
	"bytes"
	"errors"
	"io"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rollway/rollway/internal/promtext"
	"github.com/rollway/rollway/line"
)

// The grammar of https://prometheus.io/docs/instrumenting/exposition_formats/
var (
	promComment = regexp.MustCompile(`^# (HELP|TYPE) ([a-zA-Z_:][a-zA-Z0-9_:]*) (.+)$`)
	promSample  = regexp.MustCompile(`^([a-zA-Z_:][a-zA-Z0-9_:]*)(\{((?:[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\[\\"n])*",?)*)\})? (\S+)$`)
	promLabel   = regexp.MustCompile(`([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\[\\"n])*)"(,|$)`)
)

// parse reads what a page holds as a scraper does: samples by
// name and labels. Each family has a type and stands in one piece.
func parse(t *testing.T, text string) map[string]float64 {
	t.Helper()
	samples, types, family := map[string]float64{}, map[string]string{}, ""
	if !strings.HasSuffix(text, "\n") {
		t.Error("the text does not end in a line end")
	}
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if m := promComment.FindStringSubmatch(line); m != nil {
			if m[1] == "TYPE" {
				if types[m[2]] != "" {
					t.Errorf("a second type of %s", m[2])
				}
				if family = m[2]; m[3] != "counter" && m[3] != "gauge" && m[3] != "summary" {
					t.Errorf("type %q", line)
				}
				types[family] = m[3]
			}
			continue
		}
		m := promSample.FindStringSubmatch(line)
		if m == nil {
			t.Fatalf("not of the format: %q", line)
		}
		base := m[1]
		if types[family] == "summary" {
			base = strings.TrimSuffix(strings.TrimSuffix(base, "_sum"), "_count")
		}
		if base != family {
			t.Errorf("%q stands in the family %s", line, family)
		}
		if types[family] == "counter" && !strings.HasSuffix(base, "_total") {
			t.Errorf("counter %s", base)
		}
		names := map[string]bool{}
		for _, l := range promLabel.FindAllStringSubmatch(m[3], -1) {
			if names[l[1]] {
				t.Errorf("label %s is there twice: %q", l[1], line)
			}
			names[l[1]] = true
		}
		value, err := strconv.ParseFloat(m[4], 64)
		if err != nil || value < 0 {
			t.Errorf("%q: %v", line, err)
		}
		if _, ok := samples[m[1]+m[2]]; ok {
			t.Errorf("%q is there twice", line)
		}
		samples[m[1]+m[2]] = value
	}
	return samples
}

func TestPage(t *testing.T) {
	p, err := promtext.New("rollway_test_", []string{"log", "a\"b\\c\nd\xff", "host", "x"}, "level")
	if err != nil {
		t.Fatal(err)
	}
	p.Ledger(line.Ledger{Accepted: 1e6, Written: 5, Dropped: line.Drops{Full: 2, TooLarge: 1}, Pending: 3, Rejected: 4})
	p.Family("took_seconds", "summary", "Time.")
	p.Sample("took_seconds", 0.25, "quantile", "0.99")
	p.Sample("took_seconds_sum", 1e18)
	p.Sample("took_seconds_count", 7)
	p.Failure(true, time.Unix(1, 500e6))
	var b bytes.Buffer
	if _, err := p.WriteTo(&b); err != nil {
		t.Fatal(err)
	}
	samples := parse(t, b.String())
	own := `log="a\"b\\c\nd` + "\uFFFD" + `",host="x"`
	for name, want := range map[string]float64{
		"lines_accepted_total{" + own + "}":                   1e6,
		"lines_written_total{" + own + "}":                    5,
		"lines_dropped_total{" + own + `,reason="full"}`:      2,
		"lines_dropped_total{" + own + `,reason="too_large"}`: 1,
		"lines_dropped_total{" + own + `,reason="shutdown"}`:  0,
		"lines_pending{" + own + "}":                          3,
		"lines_rejected_total{" + own + "}":                   4,
		"took_seconds{" + own + `,quantile="0.99"}`:           0.25,
		"took_seconds_sum{" + own + "}":                       1e18,
		"took_seconds_count{" + own + "}":                     7,
		"failing{" + own + "}":                                1,
		"last_error_timestamp_seconds{" + own + "}":           1.5,
	} {
		if got, ok := samples["rollway_test_"+name]; !ok || got != want {
			t.Errorf("%s = %v, %v, want %v", name, got, ok, want)
		}
	}
	if !strings.Contains(b.String(), "} 1000000\n") {
		t.Errorf("a million is not written out:\n%s", b.String())
	}
}

func TestBareSamplesAndBadLabels(t *testing.T) {
	p, err := promtext.New("x_", nil)
	if err != nil {
		t.Fatal(err)
	}
	p.Flag("on", "It is.", true)
	p.Failure(false, time.Time{})
	var b bytes.Buffer
	p.WriteTo(&b)
	if samples := parse(t, b.String()); len(samples) != 2 || samples["x_on"] != 1 {
		t.Errorf("samples %v", samples)
	}
	for _, labels := range [][]string{{"odd"}, {"a-b", "1"}, {"__x", "1"}, {"reason", "1"}, {"shard", "1"}, {"", "1"}, {"a", "1", "a", "2"}} {
		if _, err := promtext.New("", labels, "shard"); err == nil {
			t.Errorf("labels %q", labels)
		}
	}
	p.Counter("again_total", "Again.", 1)
	r, w := io.Pipe()
	r.CloseWithError(errors.ErrUnsupported)
	if _, err := p.WriteTo(w); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("a Writer that fails: %v", err)
	}
}

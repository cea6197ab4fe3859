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

// parse reads a page as a scraper does: samples by name and labels. Each family has
// a type and is contiguous.
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
				if family = m[2]; m[3] != "counter" && m[3] != "gauge" && m[3] != "summary" && m[3] != "histogram" {
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
		switch types[family] {
		case "histogram":
			base = strings.TrimSuffix(base, "_bucket")
			fallthrough
		case "summary":
			base = strings.TrimSuffix(strings.TrimSuffix(base, "_sum"), "_count")
		}
		if base != family {
			t.Errorf("%q is in the family %s", line, family)
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

func TestWrite(t *testing.T) {
	var b bytes.Buffer
	var h promtext.Histogram
	for _, d := range []time.Duration{time.Millisecond, 3 * time.Millisecond, time.Minute} {
		h.Record(d)
	}
	err := promtext.Write(&b, "test", []string{"log", "a\"b\\c\nd\xff", "host", "x"},
		promtext.Ledger(line.Ledger{Accepted: 1e6, Written: 5, Dropped: line.Drops{Full: 2, TooLarge: 1}, Pending: 3, Rejected: 4}),
		promtext.Table{
			promtext.Summary("took_seconds", "Time.", 1e9*time.Second, 7),
			promtext.Durations("answer_seconds", "Time.", h.Snapshot(2*time.Millisecond, 10*time.Millisecond)),
			promtext.Gauge("huge", "A number that is not written out.", 1e18),
		},
		promtext.Each([]string{"b", "c"}, []string{"name"}, func(name string) ([]string, promtext.Table) {
			t := promtext.Table{
				promtext.Counters("parts_total", "Parts.", []string{"kind"}, promtext.Of(1, "x"), promtext.Of(2, "y")),
			}
			if name == "c" { // a metric that not every item has
				t = append(t, promtext.Seconds("age_seconds", "Age.", time.Second))
			}
			return []string{name}, t
		}),
		promtext.Failure(true, time.Unix(1, 500e6)))
	if err != nil {
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
		"took_seconds_sum{" + own + "}":                       1e9,
		"took_seconds_count{" + own + "}":                     7,
		"answer_seconds_bucket{" + own + `,le="0.002"}`:       1,
		"answer_seconds_bucket{" + own + `,le="0.01"}`:        2,
		"answer_seconds_bucket{" + own + `,le="+Inf"}`:        3,
		"answer_seconds_sum{" + own + "}":                     60.004,
		"answer_seconds_count{" + own + "}":                   3,
		"huge{" + own + "}":                                   1e18,
		"parts_total{" + own + `,name="b",kind="y"}`:          2,
		"parts_total{" + own + `,name="c",kind="x"}`:          1,
		"age_seconds{" + own + `,name="c"}`:                   1,
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
	var b bytes.Buffer
	if err := promtext.Write(&b, "x", nil, promtext.Table{promtext.Flag("on", "It is.", true)}, promtext.Failure(false, time.Time{})); err != nil {
		t.Fatal(err)
	}
	if samples := parse(t, b.String()); len(samples) != 2 || samples["rollway_x_on"] != 1 {
		t.Errorf("samples %v", samples)
	}
	table := promtext.Table{promtext.Gauges("x", "X.", []string{"shard", "reason"}, promtext.Of(1, "0", "full"))}
	for _, labels := range [][]string{{"odd"}, {"a-b", "1"}, {"__x", "1"}, {"reason", "1"}, {"shard", "1"}, {"", "1"}, {"a", "1", "a", "2"}} {
		if err := promtext.Write(io.Discard, "", labels, table); err == nil {
			t.Errorf("labels %q", labels)
		}
	}
	r, w := io.Pipe()
	r.CloseWithError(errors.ErrUnsupported)
	if err := promtext.Write(w, "", nil, table); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("a Writer that fails: %v", err)
	}
}

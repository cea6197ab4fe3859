package shard_test

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/rollway/rollway/rollwaytest"
	"github.com/rollway/rollway/shard"
)

// The grammar of https://prometheus.io/docs/instrumenting/exposition_formats/
var (
	promComment = regexp.MustCompile(`^# (HELP|TYPE) ([a-zA-Z_:][a-zA-Z0-9_:]*) (.+)$`)
	promSample  = regexp.MustCompile(`^([a-zA-Z_:][a-zA-Z0-9_:]*)(\{((?:[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\[\\"n])*",?)*)\})? (\S+)$`)
	promLabel   = regexp.MustCompile(`([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\[\\"n])*)"(,|$)`)
)

// parseProm reads what WritePrometheus has written as a scraper does: samples by
// name and labels. Each family has a type and stands in one piece.
func parseProm(t *testing.T, text string) map[string]float64 {
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

func TestWritePrometheus(t *testing.T) {
	path := filepath.Join(t.TempDir(), `lo"g\`+"\n")
	w := openFile(t, path, small)
	log(t, w, "one", "two", strings.Repeat("3", 1000))
	if err := w.LogBytes(make([]byte, 1<<20)); !errors.Is(err, shard.ErrTooLarge) {
		t.Error(err)
	}
	closeFile(t, w)
	s := w.Stats()
	var b bytes.Buffer
	if err := s.WritePrometheus(&b, "log", "a\"b\\c\nd\xff", "host", "x"); err != nil {
		t.Fatal(err)
	}
	samples := parseProm(t, b.String())
	own := `log="a\"b\\c\nd` + "\uFFFD" + `",host="x"`
	for name, want := range map[string]float64{
		"records_accepted_total{" + own + "}":                                   4,
		"records_written_total{" + own + "}":                                    3,
		"records_dropped_total{" + own + `,reason="too_large"}`:                 1,
		"records_dropped_total{" + own + `,reason="buffer_full"}`:               0,
		"shard_records_accepted_total{" + own + `,shard="0"}`:                   4,
		"shard_records_dropped_total{" + own + `,shard="0",reason="too_large"}`: 1,
		"memory_bytes{" + own + "}":                                             float64(s.Memory),
		"flush_duration_seconds_count{" + own + "}":                             float64(s.Flushes),
		"flush_duration_seconds{" + own + `,quantile="0.99"}`:                   s.FlushP99.Seconds(),
		"flush_duration_max_seconds{" + own + "}":                               s.FlushMax.Seconds(),
		"written_bytes_total{" + own + "}":                                      float64(s.Bytes),
		"failing{" + own + "}":                                                  0,
		"file_info{" + own + `,path="` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(path) + `",mode="Buffered"}`: 1,
	} {
		if got, ok := samples["rollway_shard_"+name]; !ok || got != want {
			t.Errorf("%s = %v, %v, want %v", name, got, ok, want)
		}
	}
	if len(samples) < 30 || t.Failed() {
		t.Logf("%s", b.String())
	}

	for _, labels := range [][]string{{"odd"}, {"a-b", "1"}, {"__x", "1"}, {"shard", "1"}, {"", "1"}, {"a", "1", "a", "2"}} {
		if err := s.WritePrometheus(&b, labels...); err == nil {
			t.Errorf("labels %q", labels)
		}
	}
	if err := s.WritePrometheus(failing{}); !errors.Is(err, errFailing) {
		t.Errorf("a Writer that fails: %v", err)
	}
}

// A Writer that New gave has no file, and no sample of one.
func TestWritePrometheusWithoutAFile(t *testing.T) {
	w, err := shard.New(new(rollwaytest.Destination), small)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	var b bytes.Buffer
	if err := w.Stats().WritePrometheus(&b); err != nil {
		t.Fatal(err)
	}
	for name := range parseProm(t, b.String()) {
		if strings.Contains(name, "_file_") || strings.Contains(name, "{}") {
			t.Error(name)
		}
	}
}

var errFailing = fmt.Errorf("no")

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, errFailing }

package shard

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// WritePrometheus writes s in the text format of Prometheus, which any scraper
// reads: answer it at /metrics. labels are names and values by turns, such as
// "log", "audit"; all samples get them. Counters are those of Stats and begin
// at 0 with the Writer; times are in seconds. The error names a label that is
// not allowed, or is w's.
func (s Stats) WritePrometheus(w io.Writer, labels ...string) error {
	p := &promText{}
	if err := p.setLabels(labels); err != nil {
		return err
	}
	s.writeLedger(p)
	s.writeFlushes(p)
	s.writeShards(p)
	if s.File.Path != "" {
		s.File.writeTo(p)
	}
	_, err := w.Write(p.b.Bytes())
	return err
}

func (s Stats) writeLedger(p *promText) {
	p.counter("records_accepted_total", "Records given before Close, dropped ones included.", s.Accepted)
	p.counter("records_written_total", "Records that the destination has taken.", s.Written)
	p.family("records_dropped_total", "counter", "Records lost, by reason.")
	s.Dropped.writeTo(p, "records_dropped_total")
	p.gauge("records_pending", "Records in buffers.", float64(s.Pending))
	p.counter("records_rejected_total", "Records given after Close.", s.Rejected)
	p.counter("written_bytes_total", "Bytes that the destination has taken.", s.Bytes)
	p.counter("write_errors_total", "Calls of the destination that failed.", s.Errors)
	p.counter("stalls_total", "Calls of the destination that lasted longer than StallAfter.", s.Stalls)
	p.gauge("stalled_seconds", "How long the call under way has lasted, if that is too long.", s.Stalled.Seconds())
	p.gauge("oldest_record_age_seconds", "Age of the oldest record that is not written.", s.OldestAge.Seconds())
	p.gauge("memory_bytes", "Memory of the buffers, which is fixed.", float64(s.Memory))
	p.gauge("buffers", "Buffers.", float64(s.Terms))
	p.gauge("buffers_free", "Buffers that are in no use.", float64(s.TermsFree))
	failing := 0.0
	if s.LastError != nil {
		failing = 1
	}
	p.gauge("failing", "1 while the latest call of the destination failed.", failing)
}

func (s Stats) writeFlushes(p *promText) {
	p.family("flush_duration_seconds", "summary", "Time of the calls of the destination's write.")
	p.sample("flush_duration_seconds", s.FlushP99.Seconds(), "quantile", "0.99")
	p.sample("flush_duration_seconds_sum", (s.FlushMean * time.Duration(s.Flushes)).Seconds())
	p.sample("flush_duration_seconds_count", float64(s.Flushes))
	p.gauge("flush_duration_mean_seconds", "Mean of these times since the Writer began.", s.FlushMean.Seconds())
	p.gauge("flush_duration_max_seconds", "Longest of these times since the Writer began.", s.FlushMax.Seconds())
}

func (s Stats) writeShards(p *promText) {
	p.family("shard_records_accepted_total", "counter", "Records given, by shard.")
	for i, shard := range s.Shards {
		p.sample("shard_records_accepted_total", float64(shard.Accepted), "shard", strconv.Itoa(i))
	}
	p.family("shard_records_dropped_total", "counter", "Records lost, by shard and reason.")
	for i, shard := range s.Shards {
		shard.Dropped.writeTo(p, "shard_records_dropped_total", "shard", strconv.Itoa(i))
	}
}

func (d Drops) writeTo(p *promText, name string, labels ...string) {
	for _, r := range [...]struct {
		reason string
		n      uint64
	}{{"buffer_full", d.BufferFull}, {"too_large", d.TooLarge}, {"gave_up", d.GaveUp}, {"shutdown", d.Shutdown}} {
		p.sample(name, float64(r.n), append(labels, "reason", r.reason)...)
	}
}

func (f FileStats) writeTo(p *promText) {
	p.counter("file_rotations_total", "Files that were full and renamed.", f.Rotations)
	p.counter("file_removed_total", "Old files removed.", f.Removed)
	p.counter("file_recycled_total", "Old files written over.", f.Recycled)
	p.counter("file_sealed_total", "Files that were left because they failed.", f.Sealed)
	p.counter("file_failovers_total", "Moves to the failover folder.", f.Failovers)
	p.counter("file_reopens_total", "Times the path was opened anew.", f.Reopens)
	p.counter("file_truncations_total", "Times the file was found shorter than it was left.", f.Truncations)
	p.counter("file_syncs_total", "Calls of fsync.", f.Syncs)
	p.counter("file_sync_errors_total", "Calls of fsync that failed.", f.SyncErrors)
	p.family("file_info", "gauge", "The file in use and how it is written; always 1.")
	p.sample("file_info", 1, "path", f.Path, "mode", f.Mode.String())
}

// promPrefix begins the name of every metric.
const promPrefix = "rollway_shard_"

// promText builds the text format: https://prometheus.io/docs/instrumenting/exposition_formats/
type promText struct {
	b      bytes.Buffer
	labels string // of every sample, with a comma behind each
}

var labelName = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]*$`)

func (p *promText) setLabels(labels []string) error {
	if len(labels)%2 != 0 {
		return fmt.Errorf("shard: label %q has no value", labels[len(labels)-1])
	}
	seen := map[string]bool{}
	for i := 0; i < len(labels); i += 2 {
		name := labels[i]
		switch {
		case !labelName.MatchString(name), strings.HasPrefix(name, "__"):
			return fmt.Errorf("shard: %q cannot be the name of a label", name)
		case name == "reason", name == "shard", name == "quantile", name == "path", name == "mode":
			return fmt.Errorf("shard: label %q has a meaning of its own here", name)
		case seen[name]:
			return fmt.Errorf("shard: label %q is there twice", name)
		}
		seen[name] = true
	}
	p.labels = labelText(labels)
	return nil
}

func labelText(labels []string) string {
	var b strings.Builder
	for i := 0; i < len(labels); i += 2 {
		b.WriteString(labels[i] + `="` + labelEscapes.Replace(strings.ToValidUTF8(labels[i+1], "\uFFFD")) + `",`)
	}
	return b.String()
}

var labelEscapes = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

func (p *promText) family(name, kind, help string) {
	fmt.Fprintf(&p.b, "# HELP %s%s %s\n# TYPE %s%s %s\n", promPrefix, name, help, promPrefix, name, kind)
}

func (p *promText) sample(name string, value float64, labels ...string) {
	p.b.WriteString(promPrefix + name)
	if text := p.labels + labelText(labels); text != "" {
		p.b.WriteString("{" + strings.TrimSuffix(text, ",") + "}")
	}
	format := byte('g')
	if value == math.Trunc(value) && math.Abs(value) < 1<<53 {
		format = 'f' // 1e+06 is allowed, and hard to read
	}
	p.b.WriteString(" " + strconv.FormatFloat(value, format, -1, 64) + "\n")
}

func (p *promText) counter(name, help string, value uint64) {
	p.family(name, "counter", help)
	p.sample(name, float64(value))
}

func (p *promText) gauge(name, help string, value float64) {
	p.family(name, "gauge", help)
	p.sample(name, value)
}

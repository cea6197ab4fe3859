package direct

import (
	"fmt"
	"slices"
	"time"

	"github.com/rollway/rollway/bench/internal/measure"
)

// This experiment is the headline's server at its rate with other numbers of
// handlers, shards and bytes of buffers: what its requests take, and not what
// its writes do. The buffers are two sets, as published.

// NoLogging is the design whose server makes its records and logs nothing.
const NoLogging = "no logging"

// The published pairs of threads and shards, and sizes of buffers.
var (
	threadsAndShards = []struct{ threads, shards int }{{50, 4}, {50, 8}, {100, 4}, {100, 8}, {100, 16}, {200, 8}, {200, 16}}
	grpcBuffers      = []int{8, 128, 512} // MiB, beside the 64 of the others
)

// A served is a run of the server in place of a load.
type served struct{ settings HeadlineSettings }

func shardMode(threads, shards int) string { return fmt.Sprintf("%dT / %dS", threads, shards) }

func bufferMode(mb int) string { return fmt.Sprintf("%d MB", mb) }

// requests lists the servers. Each number of threads has one without logging, and
// the published design is there with the shards that it recommends.
func (s Settings) requests() []Subject {
	h := DefaultHeadline()
	h.Sets, h.Segment, h.Flush, h.Each = 2, 0, 10*time.Second, 2*time.Second
	if s.Short {
		h.Period, h.Each = 5*time.Millisecond, 100*time.Millisecond
	}
	subject := func(mode string, d Design, threads, shards, bytes int) Subject {
		h.Threads, h.Shards, h.Buffer = threads, shards, bytes
		return Subject{Case: CaseGRPC, Mode: mode, Design: d, served: &served{h}}
	}
	off := Design{Name: NoLogging}
	var subjects []Subject
	for i, c := range threadsAndShards {
		if s.Short && i > 0 {
			break
		}
		mode, bytes := shardMode(c.threads, c.shards), s.bytes(64<<20)
		if i == 0 || c.threads != threadsAndShards[i-1].threads {
			subjects = append(subjects, subject(threadMode(c.threads), off, c.threads, c.shards, bytes))
		}
		subjects = append(subjects, subject(mode, design(OwnDrop), c.threads, c.shards, bytes))
		if isRecommended(c.threads, c.shards) {
			subjects = append(subjects, subject(mode, design(Published), c.threads, c.shards, bytes))
		}
	}
	for _, mb := range grpcBuffers {
		if s.Short && mb > 8 {
			break
		}
		subjects = append(subjects, subject(bufferMode(mb), design(OwnDrop), headlineThreads, 8, mb<<20))
	}
	return subjects
}

func threadMode(threads int) string { return fmt.Sprintf("%dT", threads) }

// isRecommended is the published rule of 12.5 threads a shard.
func isRecommended(threads, shards int) bool { return threads*2 == shards*25 }

// sample runs the server with d once. Given, accepted and refused are requests,
// those that warm the server up included; without logging all are accepted.
func (v *served) sample(d Design, dir string) (measure.Sample, error) {
	s := v.settings
	s.Dir = dir
	k := kind{logging: d.Name != NoLogging}
	if k.logging && !d.Own {
		k.design = d.Name
	}
	r, err := s.run(k, s.Each)
	if err != nil {
		return measure.Sample{}, err
	}
	given := s.warm() + r.Requests
	if r.Failed > 0 {
		return measure.Sample{}, fmt.Errorf("%d of %d requests failed", r.Failed, given)
	}
	accepted := given
	if k.logging {
		accepted = r.Server.Accepted
	}
	extra := map[string]float64{
		"given": float64(given), "accepted": float64(accepted), "refused": float64(r.Server.Dropped), "lost": float64(r.Verified.Lost),
		"grpc_p50": float64(r.GRPC.P50), "grpc_p75": float64(r.GRPC.P75), "grpc_p95": float64(r.GRPC.P95), "grpc_p99": float64(r.GRPC.P99), "grpc_max": float64(r.GRPC.Max),
		"call_p99": float64(r.Server.Call.P99), "write_mean": float64(r.Server.Mean), "write_p99": float64(r.Server.Write.P99), "write_max": float64(r.Server.Write.Max),
		"flushes": float64(r.Server.Flushes), "memory": float64(r.Server.Memory.Buffers), "cores": r.Server.CPU.Total, "seconds": r.Seconds,
	}
	ns := r.Seconds * 1e9 / float64(r.Requests)
	return measure.Sample{Library: d.Name, Ops: r.Requests, NsPerOp: ns, CallerNs: ns, CPUNsPerOp: r.Server.CPU.Total * ns, OthersPct: r.Others, Extra: extra}, nil
}

// grpcTables show medians of the rounds. What logging costs is the median over
// the rounds of p99 with it ÷ p99 of the same number of threads without.
func grpcTables(g *grid) (string, error) {
	said := map[string]string{shardMode(50, 4): "0.85 ms", shardMode(100, 8): "0.87 ms", shardMode(200, 16): "~0.90 ms (est)"}
	head := []string{"published: p99", "no logging: p50", "p99", "written anew: p99", "lost, refused", "ours: p50", "p95", "p99", "max", "p99 on ÷ off", "refused", "LogBytes p99", "write p99"}
	t := measure.NewTable(append([]string{"threads / shards, 64 MB"}, head...)...)
	for _, c := range threadsAndShards {
		mode := shardMode(c.threads, c.shards)
		if !slices.Contains(g.modes, mode) {
			continue // a short run has one of them
		}
		off, err := g.at(NoLogging, threadMode(c.threads))
		if err != nil {
			return "", err
		}
		row := []string{mode, orDash(said[mode]), millis(off.Extra["grpc_p50"]), millis(off.Extra["grpc_p99"])}
		if isRecommended(c.threads, c.shards) {
			s, err := g.at(Published, mode)
			if err != nil {
				return "", err
			}
			row = append(row, millis(s.Extra["grpc_p99"]), g.dropped(Published, mode))
		} else {
			row = append(row, "–", "–")
		}
		more, err := g.requestCells(mode, threadMode(c.threads))
		if err != nil {
			return "", err
		}
		t.Row(append(row, more...)...)
	}
	byBuffer := measure.NewTable(append([]string{"buffers, 100 threads, 8 shards"}, head[5:]...)...)
	for _, mb := range slices.Sorted(slices.Values(append([]int{64}, grpcBuffers...))) {
		mode := bufferMode(mb)
		if mb == 64 {
			mode = shardMode(headlineThreads, 8)
		}
		if !slices.Contains(g.modes, mode) {
			continue
		}
		more, err := g.requestCells(mode, threadMode(headlineThreads))
		if err != nil {
			return "", err
		}
		byBuffer.Row(append([]string{bufferMode(mb)}, more...)...)
	}
	return "\n" + t.String() + "\n" + byBuffer.String(), nil
}

// requestCells is what ours does to requests, against those without logging.
func (g *grid) requestCells(mode, off string) ([]string, error) {
	s, err := g.at(OwnDrop, mode)
	if err != nil {
		return nil, err
	}
	ratio := "–"
	if slices.Contains(g.modes, off) {
		ratio = measure.Number(medianOf(g.ratios(OwnDrop, mode, NoLogging, off, "grpc_p99")))
	}
	x := s.Extra
	return []string{
		millis(x["grpc_p50"]), millis(x["grpc_p95"]), millis(x["grpc_p99"]), millis(x["grpc_max"]), ratio,
		g.dropped(OwnDrop, mode), millis(x["call_p99"]), millis(x["write_p99"]),
	}, nil
}

// ratios is a figure of one design ÷ that of another, round by round.
func (g *grid) ratios(design, mode, other, otherMode, figure string) (ratios []float64) {
	for _, a := range g.samples {
		for _, b := range g.samples {
			if a.Round == b.Round && a.Library == design && a.Mode == mode && b.Library == other && b.Mode == otherMode && b.Extra[figure] > 0 {
				ratios = append(ratios, a.Extra[figure]/b.Extra[figure])
			}
		}
	}
	return ratios
}

func orDash(s string) string {
	if s == "" {
		return "–"
	}
	return s
}

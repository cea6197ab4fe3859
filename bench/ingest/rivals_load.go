package ingest

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"
)

const (
	// maxHeld is the p99 up to which a server holds a load that it answers.
	maxHeld = time.Second
	// minRate is the least share of a load that a server is tried with.
	minRate = 16
	// RivalShare is by how much runs beside the rivals are shorter than the others,
	// SaturationShare the same for runs at saturation.
	RivalShare, SaturationShare = 3, 10
)

// holds reports whether the server answered all it was sent, and in time.
func (run Run) holds() bool { return run.Sent.Errors == 0 && run.Sent.Latency.P99 <= maxHeld }

// programs finds the program of each server; own is ours. left says which could
// not be had, and why, as w is told.
func (s Settings) programs(w io.Writer, own string, servers []string) (programs map[string]string, left []string) {
	programs = map[string]string{}
	for _, name := range servers {
		rival, is := rivalOf(name)
		if !is {
			programs[name] = own
			continue
		}
		path, err := rival.path(s.Fetch)
		if err != nil {
			fmt.Fprintf(w, "LEFT OUT: %s: %v\n", name, err)
			left = append(left, fmt.Sprintf("%s: %v", name, err))
			continue
		}
		programs[name] = path
	}
	return programs, left
}

// MeasureRivals puts ours and the rivals under every load by OTLP, and tells w.
// One that does not hold a load is measured again with half of it, and so on.
// left says which of them could not be had, and why.
func MeasureRivals(w io.Writer, s Settings) (runs []Run, left []string, err error) {
	tmp, own, err := s.build()
	if err != nil {
		return nil, nil, err
	}
	defer os.RemoveAll(tmp)
	programs, left := s.programs(w, own, Rivals())
	for _, l := range Loads() {
		for _, name := range Rivals() {
			if programs[name] == "" {
				continue
			}
			for share := 1; share <= minRate; share *= 2 {
				run, err := measureRun(name, programs[name], filepath.Join(tmp, fmt.Sprint("data-", len(runs))), 0, load{
					Protocol: pathOTLP, Rate: l.Rate / share, Events: l.Events, Duration: s.Duration, Warm: s.warm(), Conns: s.Conns, Grace: 10 * time.Second})
				if err != nil {
					return nil, nil, fmt.Errorf("%s, %d requests/s of %s: %w", name, l.Rate/share, sizeCase(l.Events), err)
				}
				run.tell(w)
				runs = append(runs, run)
				if run.holds() {
					break
				}
			}
		}
	}
	return runs, left, nil
}

// PerCore is how many requests are acknowledged for a second of a processor.
func (run Run) PerCore() float64 {
	return float64(run.Sent.Acknowledged) / max(run.CPUSeconds, 1e-9)
}

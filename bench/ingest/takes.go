package ingest

import (
	"time"

	"github.com/rollway/rollway/bench/internal/measure"
)

// RivalShare is by how much runs beside the rivals are shorter than the others.
const RivalShare = 3

// SaturationShare is the same for runs at saturation.
const SaturationShare = 10

// betweenRuns is about what it takes to build, to start, and to look up.
const betweenRuns = 5 * time.Second

// benchmarkTakes is how long the article's benchmark takes.
const benchmarkTakes = 25 * time.Second

// Takes is about how long the parts take, if every server holds its load.
func Takes(s Settings, plan measure.Plan, parts map[Part]bool) (all time.Duration) {
	servers := len(s.Servers)
	if servers == 0 {
		servers = len(Servers())
	}
	loads := time.Duration(len(Loads()))
	if parts[PartRequests] {
		all += time.Duration(plan.Rounds)*plan.Time*time.Duration(len(Subjects(""))) + benchmarkTakes
	}
	if parts[PartServers] {
		all += loads * time.Duration(servers) * (s.Duration + betweenRuns)
	}
	if parts[PartRivals] {
		all += loads * time.Duration(len(Rivals())) * (s.Duration/RivalShare + betweenRuns)
	}
	if parts[PartSaturation] {
		runs := SaturationRounds * len(saturatedServers()) * len(saturatedReceivers())
		all += time.Duration(runs) * (s.Duration/SaturationShare + time.Second)
	}
	return all
}

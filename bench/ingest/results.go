package ingest

import (
	"fmt"
	"strings"

	"github.com/rollway/rollway/bench/internal/measure"
)

// Results are the raw results: samples of requests, runs of the article's
// servers and ours, and runs of ours and the rivals'.
type Results struct {
	measure.Results
	Runs    []Run    `json:"runs"`
	Rivals  []Run    `json:"rivals"`
	LeftOut []string `json:"left_out,omitempty"` // rivals that could not be had

	Saturated []Saturation `json:"saturated"`

	// Origins says of each part of the results where it is from, if they were
	// not all measured at once.
	Origins map[Part]Origin `json:"origins,omitempty"`
}

// A Part of the results can be measured without the others.
type Part string

// The parts.
const (
	PartRequests Part = "requests"
	PartServers  Part = "servers"
	PartRivals   Part = "rivals"

	PartSaturation Part = "saturation"
)

// Parts lists them all, in the order in which they are measured.
func Parts() []Part { return []Part{PartRequests, PartServers, PartRivals, PartSaturation} }

// ParseParts returns the parts that text names, separated by commas; without
// text, all.
func ParseParts(text string) (map[Part]bool, error) {
	parts := map[Part]bool{}
	for _, p := range Parts() {
		parts[p] = text == ""
	}
	if text == "" {
		return parts, nil
	}
	for name := range strings.SplitSeq(text, ",") {
		p := Part(strings.TrimSpace(name))
		if _, known := parts[p]; !known {
			return nil, fmt.Errorf("there is no part %q; there are %v", name, Parts())
		}
		parts[p] = true
	}
	return parts, nil
}

// An Origin is where a part is from.
type Origin struct {
	Command string `json:"command"`
	Date    string `json:"date"`
	Commit  string `json:"commit"`
}

func (r *Results) origin() Origin { return Origin{r.Command, r.Date, r.Commit} }

// Keep takes the parts of before that r has not measured itself.
func (r *Results) Keep(before *Results, measured map[Part]bool) {
	r.Origins = map[Part]Origin{}
	for _, part := range Parts() {
		r.Origins[part] = r.origin()
		if measured[part] {
			continue
		}
		r.Origins[part] = before.origin()
		if o, ok := before.Origins[part]; ok {
			r.Origins[part] = o
		}
		switch part {
		case PartRequests:
			r.Samples, r.Rounds = before.Samples, before.Rounds
		case PartServers:
			r.Runs = before.Runs
		case PartRivals:
			r.Rivals, r.LeftOut = before.Rivals, before.LeftOut
		case PartSaturation:
			r.Saturated = before.Saturated
		}
	}
}

// Load reads results.
func Load(path string) (*Results, error) { return measure.Load[Results](path, Kind) }

// Package ingest measures taking log events in over HTTP: the two pipelines of
// "How sync.Pool Helped Me Stabilize p99 Latency in a High-Throughput Log
// Processing Pipeline" (2026), written anew from its text, beside package
// receiver in front of a journal on disk, and other collectors beside ours.
//
// Requests consist of the article's own event, with a number as trace_id, so that
// each event can be found again.
package ingest

import "github.com/rollway/rollway/bench/internal/measure"

// Kind is the name of these results.
const Kind = "ingest"

// Results are the raw results: samples of requests, and runs of servers under load.
type Results struct {
	measure.Results
	Runs    []Run    `json:"runs"`
	LeftOut []string `json:"left_out,omitempty"` // rivals that could not be installed
}

// Subjects of the measurements.
const (
	Naive    = "article, first version"
	Pooled   = "article, with sync.Pool"
	Buffered = "rollway, buffered"
	Synced   = "rollway, synced"

	overTLS = ", TLS"
)

// Package ingest measures taking log events in over HTTP: the two pipelines of
// "How sync.Pool Helped Me Stabilize p99 Latency in a High-Throughput Log
// Processing Pipeline" (2026), written anew from its text, beside package
// receive in front of a journal on disk, and other collectors beside ours.
//
// Requests consist of the article's own event, with a number as trace_id, so that
// each event can be found again.
package ingest

// Kind is the name of these results.
const Kind = "ingest"

// Subjects of the measurements.
const (
	Naive    = "article, first version"
	Pooled   = "article, with sync.Pool"
	Buffered = "rollway, buffered"
	Synced   = "rollway, synced"

	BufferedTLS = Buffered + overTLS
	SyncedTLS   = Synced + overTLS

	overTLS = ", TLS"
)

package framed

import (
	"fmt"
	"strings"
	"time"
)

// Finding is one thing out of the ordinary in a segment.
type Finding struct {
	Kind      FindingKind
	Pos       int64  // where it begins in the file, bytes
	Bytes     int64  // concerned
	Records   uint64 // that are lost by it, or too long
	Estimated bool   // Records may be wrong: what says so is damaged itself
	Detail    string
}

// FindingKind says what a Finding is about.
type FindingKind string

// The kinds of findings.
const (
	TornTail FindingKind = "torn tail"         // the last batch is not complete: its writer was killed, or is at work
	Damaged  FindingKind = "damaged"           // something sound follows, or should
	TooLong  FindingKind = "record too long"   // sound, and longer than Options.MaxRecord: not delivered
	OldHead  FindingKind = "header not usable" // lost or older than the batches; what it says is taken from them
)

// maxFindings is how many findings are kept; the others are counted.
const maxFindings = 100

// String returns the finding as a sentence.
func (f Finding) String() string {
	var b strings.Builder
	b.WriteString(string(f.Kind))
	if f.Bytes > 0 {
		fmt.Fprintf(&b, ", %d bytes", f.Bytes)
	}
	fmt.Fprintf(&b, " at byte %d", f.Pos)
	switch {
	case f.Records > 0 && f.Estimated:
		fmt.Fprintf(&b, ", about %d records lost", f.Records)
	case f.Kind == TooLong:
	case f.Records == 1:
		b.WriteString(", 1 record lost")
	case f.Records > 0:
		fmt.Fprintf(&b, ", %d records lost", f.Records)
	}
	if f.Detail != "" {
		b.WriteString(", " + f.Detail)
	}
	return b.String()
}

// Summary is what a Reader has seen so far.
type Summary struct {
	Header
	Batches     int       // whose header is sound
	Records     uint64    // that are sound, those too long to be delivered included
	RecordBytes int64     // of them, without framing
	Lost        uint64    // that were in the segment by what is sound; exact unless a Finding is estimated
	End         int64     // offset behind the last batch, bytes; what follows is of earlier uses
	Complete    bool      // the writer said that nothing follows
	First, Last time.Time // when the first and the last batch were sealed
	Findings    int       // also those that Findings does not list
	Damage      int       // findings other than a torn tail
}

// find notes f.
func (r *Reader) find(f Finding) {
	r.sum.Findings++
	if f.Kind != TooLong {
		r.sum.Lost += f.Records
	}
	if f.Kind != TornTail {
		r.sum.Damage++
	}
	if len(r.findings) < maxFindings {
		r.findings = append(r.findings, f)
	}
}

// Findings returns what was out of the ordinary so far, the first hundred of
// it. What ends the segment is known when Next has returned io.EOF.
func (r *Reader) Findings() []Finding { return r.findings }

// Summary returns what was read so far.
func (r *Reader) Summary() Summary { return r.sum }

package normalize

import (
	"math"
	"time"
)

// Reasons for which an event is rejected: a closed set, fit for the label of
// a metric.
const (
	ReasonSyntax        = "syntax"          // not JSON
	ReasonNotObject     = "not_object"      // JSON, but not an object
	ReasonBinary        = "binary"          // bytes that are no text where a message should be
	ReasonTooLarge      = "too_large"       // over Limits.MaxEventBytes
	ReasonTooDeep       = "too_deep"        // over Limits.MaxDepth
	ReasonTooManyFields = "too_many_fields" // over Limits.MaxFields
	ReasonKeyTooLong    = "key_too_long"    // over Limits.MaxKeyBytes
	ReasonValueTooLong  = "value_too_long"  // over Limits.MaxValueBytes
	ReasonTooManyEvents = "too_many_events" // over Limits.MaxEvents
	ReasonUnsupported   = "unsupported"     // of a kind that is not kept as a line
	ReasonTorn          = "torn"            // a part is missing: receivers alone say so
)

// reason is the index of a Reason constant.
type reason uint8

const (
	ok reason = iota
	syntax
	notObject
	binary
	tooLarge
	tooDeep
	tooManyFields
	keyTooLong
	valueTooLong
	tooManyEvents
	unsupported
	torn
	numReasons
)

var reasonNames = [numReasons]string{
	"", ReasonSyntax, ReasonNotObject, ReasonBinary, ReasonTooLarge,
	ReasonTooDeep, ReasonTooManyFields, ReasonKeyTooLong, ReasonValueTooLong,
	ReasonTooManyEvents,
	ReasonUnsupported, ReasonTorn,
}

// Reasons returns every reason for which an event is rejected.
func Reasons() []string { return append([]string(nil), reasonNames[1:]...) }

// A Batch receives the canonical lines of one or more bodies or lines, and
// the account of what could not become one. The zero value is an empty batch.
// It is for one goroutine at a time and owns all its memory; it never points
// into the input.
//
// Every event of the input is one of Records, RejectedTotal, DroppedTotal or IgnoredTotal. A
// body or line that cannot be split into events, because it is not JSON or
// over Limits.MaxEvents, counts as one event.
type Batch struct {
	Lines   []byte // the last canonical lines, each ended by '\n'; those before are in Chunks
	Records int    // number of lines

	// Earliest and latest time of a line, in nanoseconds since 1970, meaningful
	// if Records > 0. A time that an int64 cannot hold counts as the nearest
	// one that it can.
	MinTime, MaxTime int64

	// Rejected describes the first Limits.MaxRejections rejected events, in
	// the order of the input.
	Rejected []Rejection
	// RejectedTotal is the number of all rejected events.
	RejectedTotal int

	// Dropped tells by rule, DroppedTotal in all, of events that an Enricher has
	// left out: they are neither lines nor rejected.
	Dropped      []Drop
	DroppedTotal int

	// Ignored tells by kind, IgnoredTotal in all, of what a receiver acknowledges and does
	// not keep, as it is no log. It is neither a line nor rejected.
	Ignored      []Drop
	IgnoredTotal int

	byReason [numReasons]int
	dropLog  []uint16 // of each event dropped since the last mark, the index in Dropped

	deadLetters   []DeadLetter
	deadText      []byte
	deadLimit     int
	withhold      bool // dead letters have no text
	hasDeadLetter bool // the event rejected last has the last dead letter

	chunks []Chunk
	sealed int                         // bytes of lines in chunks
	taken  int                         // bytes that chunks take up
	raw    int                         // of them, those of chunks that are not packed
	marked struct{ chunks, lines int } // where the last mark is

	expected int  // bytes of lines; 0: unknown
	room     Room // who is asked beyond free; nil: nobody
	free     int  // bytes that may be taken up without asking
	start    int  // free, before anything was asked for
	scratch  int  // bytes that were asked for the Normalizer
	overflow bool // room has refused
}

// A Rejection says which event was not accepted, and why.
type Rejection struct {
	Index  int    // number of the event since the batch was reset, from 0
	Line   int    // line of the body, from 1; 0 if not known
	Offset int64  // bytes from the start of the body (of the line, from Line) to the fault or, failing that, to the event
	Reason string // one of the Reason constants
	Detail string // for a human: what, and what was expected
}

// keptDeadLetters is how many dead letters a batch keeps memory for.
const keptDeadLetters = 1024

// Reset empties the batch and keeps its memory for reuse.
func (b *Batch) Reset() {
	if len(b.chunks) > 0 {
		if c := &b.chunks[0]; !c.Packed && cap(c.Bytes) <= chunkBytes && cap(c.Bytes) > cap(b.Lines) {
			b.Lines = c.Bytes
		}
	}
	clear(b.Rejected)
	clear(b.deadLetters)
	clear(b.chunks)
	if cap(b.deadText) > keepScratch {
		b.deadText = nil
	}
	if cap(b.deadLetters) > keptDeadLetters {
		b.deadLetters = nil
	}
	*b = Batch{
		Lines: b.Lines[:0], chunks: b.chunks[:0], Rejected: b.Rejected[:0], Dropped: b.Dropped[:0], Ignored: b.Ignored[:0],
		dropLog: b.dropLog[:0], withhold: b.withhold,
		deadLetters: b.deadLetters[:0], deadText: b.deadText[:0], deadLimit: b.deadLimit,
	}
}

// Memory returns all bytes that b owns; see Normalizer.Memory.
func (b *Batch) Memory() [2][]byte { return [2][]byte{b.Lines, b.deadText} }

// Discard takes the events that were accepted out of the batch again, because
// what they came with is rejected as a whole. Unless it was empty or has
// rejected events already, that counts as one of ReasonSyntax.
func (b *Batch) Discard(empty bool) {
	b.cut(0, 0)
	b.Records = 0
	b.Dropped, b.DroppedTotal, b.dropLog = b.Dropped[:0], 0, b.dropLog[:0]
	b.Ignored, b.IgnoredTotal = b.Ignored[:0], 0
	if b.RejectedTotal == 0 && !empty {
		b.RejectedTotal = 1
		b.byReason[syntax]++
	}
}

// RejectedFor returns how many events were rejected for one of the Reason
// constants.
func (b *Batch) RejectedFor(name string) int {
	for r := ok + 1; r < numReasons; r++ {
		if reasonNames[r] == name {
			return b.byReason[r]
		}
	}
	return 0
}

// Events is the number of events seen since Reset.
func (b *Batch) Events() int { return b.Records + b.RejectedTotal + b.DroppedTotal + b.IgnoredTotal }

// Ignore counts something that is no log, and no event to be kept. There are few kinds.
func (b *Batch) Ignore(kind string) {
	b.IgnoredTotal++
	b.Ignored, _ = count(b.Ignored, kind)
}

func (b *Batch) addTime(sec int64, nsec int) {
	ns := clampUnixNano(sec, nsec)
	if b.Records == 0 {
		b.MinTime, b.MaxTime = ns, ns
		return
	}
	b.MinTime = min(b.MinTime, ns)
	b.MaxTime = max(b.MaxTime, ns)
}

// clampUnixNano turns a time into nanoseconds since 1970, or the nearest that
// an int64 holds: years 1677 to 2262.
func clampUnixNano(sec int64, nsec int) int64 {
	const last = math.MaxInt64 / int64(time.Second)
	switch {
	case sec >= last:
		return math.MaxInt64
	case sec < -last:
		return math.MinInt64
	}
	return sec*int64(time.Second) + int64(nsec)
}

// mark is a point that a batch can be taken back to, until the next one.
type mark struct {
	records, rejected, rejectedTotal int
	deadLetters, deadText, deadCount int
	minTime, maxTime                 int64
	byReason                         [numReasons]int
}

func (b *Batch) mark() mark {
	b.dropLog = b.dropLog[:0]
	b.marked.chunks, b.marked.lines = len(b.chunks), len(b.Lines)
	count, list := 0, b.DeadLetters()
	if n := len(list); n > 0 {
		count = list[n-1].Count
	}
	return mark{b.Records, len(b.Rejected), b.RejectedTotal, len(list), len(b.deadText), count, b.MinTime, b.MaxTime, b.byReason}
}

func (b *Batch) rollback(m *mark) {
	if b.overflow { // nothing is left, and what comes is counted
		return
	}
	b.cut(b.marked.chunks, b.marked.lines)
	b.Records = m.records
	b.Rejected, b.RejectedTotal = b.Rejected[:m.rejected], m.rejectedTotal
	b.deadLetters, b.deadText = b.deadLetters[:m.deadLetters], b.deadText[:m.deadText]
	if m.deadLetters > 0 {
		b.deadLetters[m.deadLetters-1].Count = m.deadCount
	}
	b.undrop()
	b.MinTime, b.MaxTime, b.byReason = m.minTime, m.maxTime, m.byReason
}

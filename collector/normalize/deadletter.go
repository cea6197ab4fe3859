package normalize

import (
	"bytes"
	"slices"
)

// A DeadLetter is what is kept of a rejected event, so that it is not lost, or of several
// in a row that are alike.
type DeadLetter struct {
	Reason string // one of the Reason constants
	Detail string // that of the first one's Rejection; "" beyond Limits.MaxRejections
	Count  int    // events that it is of
	Cut    bool   // the event was longer than what is kept of it

	Withheld bool // neither detail nor event is kept, as they may hold what nobody is to see

	Whole      bool // the event is a whole request, in which no events could be found
	HasContext bool // there is a Context, which may be empty
	ContextCut bool // there was one that is not kept, as it was too large

	start, end, contextEnd int
}

// KeepDeadLetters has the batch keep the text of rejected events: limit bytes in all,
// and one event for each deadLetterBytes of them. 0 keeps none. Reset does not change
// the limit.
func (b *Batch) KeepDeadLetters(limit int) { b.deadLimit = limit }

// WithholdText has dead letters say that there was an event, without its text. Reset
// does not change that.
func (b *Batch) WithholdText(withhold bool) { b.withhold = withhold }

// Withholds reports what WithholdText was last called with.
func (b *Batch) Withholds() bool { return b.withhold }

// DeadLetters returns the rejected events that were kept, which may be fewer than
// RejectedTotal. They are valid until Reset.
func (b *Batch) DeadLetters() []DeadLetter {
	b.mergeLast()
	return b.deadLetters
}

// CloneRejected returns a batch of its own memory that has the dead letters of b and the
// number of rejected events, and nothing else.
func (b *Batch) CloneRejected() *Batch {
	return &Batch{RejectedTotal: b.RejectedTotal, deadLetters: slices.Clone(b.DeadLetters()), deadText: bytes.Clone(b.deadText)}
}

// Text returns the event of a dead letter as it was sent, as far as it was kept. It is
// valid until Reset.
func (b *Batch) Text(l *DeadLetter) []byte { return b.deadText[l.start:l.end] }

// Context returns what the event of a dead letter shared with others, or came in. Its
// receiver needs that to read the event again, and has a form of its own for it. It is
// valid until Reset.
func (b *Batch) Context(l *DeadLetter) []byte { return b.deadText[l.end:l.contextEnd] }

// MaxContext is how much context can be kept with an event, in bytes.
const MaxContext = 16 << 10

// addContext keeps what write appends with the dead letter that was added last, if
// there is one and room for size bytes, about as many as write appends.
func (b *Batch) addContext(size int, write func(dst []byte) []byte) {
	if !b.hasDeadLetter || b.withhold {
		return
	}
	l := &b.deadLetters[len(b.deadLetters)-1]
	if l.ContextCut = size > MaxContext || size > b.deadLimit-len(b.deadText); l.ContextCut || !b.textFits(size) {
		return
	}
	b.deadText = write(b.deadText)
	l.HasContext, l.contextEnd = true, len(b.deadText)
}

// AddBody keeps raw, a body in which no events could be found.
func (b *Batch) AddBody(reason, detail string, raw []byte) {
	if b.AddDeadLetter(reason, detail, raw); b.hasDeadLetter {
		b.deadLetters[len(b.deadLetters)-1].Whole = true
	}
}

// A limit allows one dead letter for each deadLetterBytes, and at least fewDeadLetters:
// each takes up more than a short text does, here and in the file.
const (
	deadLetterBytes = 128
	fewDeadLetters  = 64
)

// AddDeadLetter keeps raw, an event that was rejected.
func (b *Batch) AddDeadLetter(reason, detail string, raw []byte) {
	b.mergeLast()
	room := b.deadLimit - len(b.deadText)
	most := max(b.deadLimit/deadLetterBytes, fewDeadLetters)
	if b.hasDeadLetter = room > 0 && len(raw) > 0 && len(b.deadLetters) < most; !b.hasDeadLetter || !b.lettersFit(min(len(raw), room)) {
		return
	}
	start := len(b.deadText)
	l := DeadLetter{Reason: reason, Count: 1, Withheld: b.withhold}
	if !b.withhold {
		b.deadText = append(b.deadText, raw[:min(len(raw), room)]...)
		l.Detail, l.Cut = detail, len(raw) > room
	}
	l.start, l.end, l.contextEnd = start, len(b.deadText), len(b.deadText)
	b.deadLetters = append(b.deadLetters, l)
}

// mergeLast adds the last dead letter, whose context is known, to the one before if they
// are alike.
func (b *Batch) mergeLast() {
	n := len(b.deadLetters)
	if n < 2 {
		return
	}
	last, before := &b.deadLetters[n-1], &b.deadLetters[n-2]
	if !last.Alike(before) || !bytes.Equal(b.Text(last), b.Text(before)) || !bytes.Equal(b.Context(last), b.Context(before)) {
		return
	}
	before.Count += last.Count
	b.deadText, b.deadLetters = b.deadText[:last.start], b.deadLetters[:n-1]
	b.hasDeadLetter = false
}

// Alike reports whether l and o differ in their texts, details and counts only.
func (l *DeadLetter) Alike(o *DeadLetter) bool {
	return l.Reason == o.Reason && l.Cut == o.Cut && l.Withheld == o.Withheld && l.Whole == o.Whole && l.HasContext == o.HasContext && l.ContextCut == o.ContextCut
}

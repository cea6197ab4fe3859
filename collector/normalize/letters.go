package normalize

// A Letter is what is kept of a rejected event, so that it is not lost: a dead
// letter.
type Letter struct {
	Reason string // one of the Reason constants
	Detail string // as of its Rejection; "" beyond Limits.MaxRejections
	Cut    bool   // the event was longer than what is kept of it

	Withheld bool // neither detail nor event is kept, as they may hold what nobody is to see

	start, end int
}

// KeepLetters has the batch keep the text of rejected events, limit bytes in
// all; 0 keeps none. Reset leaves the limit as it is.
func (b *Batch) KeepLetters(limit int) { b.letterLimit = limit }

// WithholdText has letters say that there was an event, and not keep its text.
// Reset leaves that as it is.
func (b *Batch) WithholdText(withhold bool) { b.withhold = withhold }

// Withholds reports what WithholdText was called with last.
func (b *Batch) Withholds() bool { return b.withhold }

// Letters returns the rejected events that were kept, which may be fewer than
// RejectedTotal. It is valid until Reset.
func (b *Batch) Letters() []Letter { return b.letters }

// Text returns the event of a letter as it was sent, as far as it was kept. It
// is valid until Reset.
func (b *Batch) Text(l *Letter) []byte { return b.letterText[l.start:l.end] }

// withheldBytes is what a letter without text counts for, of the limit.
const withheldBytes = 128

// AddLetter keeps raw, an event that was rejected, or a body that events could
// not be found in.
func (b *Batch) AddLetter(reason, detail string, raw []byte) {
	room := b.letterLimit - len(b.letterText)
	if room <= 0 || len(raw) == 0 {
		return
	}
	start := len(b.letterText)
	if b.withhold {
		if len(b.letters) >= b.letterLimit/withheldBytes {
			return
		}
		b.letters = append(b.letters, Letter{Reason: reason, Withheld: true, start: start, end: start})
		return
	}
	b.letterText = append(b.letterText, raw[:min(len(raw), room)]...)
	b.letters = append(b.letters, Letter{Reason: reason, Detail: detail, Cut: len(raw) > room, start: start, end: len(b.letterText)})
}

package normalize

// A Letter is what is kept of a rejected event, so that it is not lost: a dead
// letter.
type Letter struct {
	Reason string // one of the Reason constants
	Detail string // as of its Rejection; "" beyond Limits.MaxRejections
	Cut    bool   // the event was longer than what is kept of it

	Withheld bool // neither detail nor event is kept, as they may hold what nobody is to see

	Whole      bool // the event is a whole request, in which events could not be found
	HasContext bool // there is a Context, which may be empty
	ContextCut bool // there was one that is not kept, as it was too large

	start, end, contextEnd int
}

// KeepLetters has the batch keep the text of rejected events, limit bytes in
// all and one for each letterBytes of them; 0 keeps none. Reset leaves the limit as it is.
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

// Context returns what the event of a letter shared with others, or came in, as
// far as its receiver needs that to read it again; in a form of the receiver's own. It is
// valid until Reset.
func (b *Batch) Context(l *Letter) []byte { return b.letterText[l.end:l.contextEnd] }

// MaxContext is how much context an event may have to be kept with it, in bytes.
const MaxContext = 16 << 10

// addContext keeps what write appends with the letter that was added last, if
// that was kept and there is room for size bytes, about as many as write appends.
func (b *Batch) addContext(size int, write func(dst []byte) []byte) {
	if !b.lettered || b.withhold {
		return
	}
	l := &b.letters[len(b.letters)-1]
	if l.ContextCut = size > MaxContext || size > b.letterLimit-len(b.letterText); l.ContextCut {
		return
	}
	b.letterText = write(b.letterText)
	l.HasContext, l.contextEnd = true, len(b.letterText)
}

// AddBody keeps raw, a body that events could not be found in.
func (b *Batch) AddBody(reason, detail string, raw []byte) {
	if b.AddLetter(reason, detail, raw); b.lettered {
		b.letters[len(b.letters)-1].Whole = true
	}
}

// letterBytes is what there is a letter for, of the limit, and fewLetters how many
// there may be however small that is: each takes up more than a short text does, here
// and where it is kept.
const (
	letterBytes = 128
	fewLetters  = 64
)

// AddLetter keeps raw, an event that was rejected.
func (b *Batch) AddLetter(reason, detail string, raw []byte) {
	room := b.letterLimit - len(b.letterText)
	most := max(b.letterLimit/letterBytes, fewLetters)
	if b.lettered = room > 0 && len(raw) > 0 && len(b.letters) < most; !b.lettered {
		return
	}
	start := len(b.letterText)
	if b.withhold {
		b.letters = append(b.letters, Letter{Reason: reason, Withheld: true, start: start, end: start, contextEnd: start})
		b.fit()
		return
	}
	b.letterText = append(b.letterText, raw[:min(len(raw), room)]...)
	end := len(b.letterText)
	b.letters = append(b.letters, Letter{Reason: reason, Detail: detail, Cut: len(raw) > room, start: start, end: end, contextEnd: end})
	b.fit()
}

package remote

import (
	"cmp"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/rollway/rollway/line"
)

// A loss is what the next Sync or Close has to tell of lost lines. Its size
// does not grow with them.
type loss struct {
	told  uint64 // Dropped.Total() when the latest was told
	first string // why the first line since then was lost
}

func (l *loss) note(reason string) {
	if l.first == "" {
		l.first = reason
	}
}

// takeLoss returns what was lost since its last call, nil if that is nothing.
func (w *Writer) takeLoss() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	total := w.stats.Dropped.Total()
	n := total - w.loss.told
	if n == 0 {
		return nil // a reason that is known already is that of lines not settled yet
	}
	// A Sync may have told the reason while the line was not counted yet.
	first := cmp.Or(w.loss.first, w.stats.LastRefusal)
	err := fmt.Errorf("%w: %d, the first: %s", line.ErrLost, n, first)
	w.loss = loss{told: total}
	return err
}

// maxRefusal is how many bytes of the text of a refusal are kept.
const maxRefusal = 1 << 10

// quoteRefusal returns text as it is kept. What is secret is taken out first:
// half of it would not be found any more.
func (w *Writer) quoteRefusal(text string) string {
	if text = w.redact(text); len(text) > maxRefusal {
		text = strings.ToValidUTF8(text[:maxRefusal], "") + "…"
	}
	return text
}

// noteRefusal notes that the peer has refused a whole request, whose lines may
// be taken in smaller ones.
func (w *Writer) noteRefusal(e *statusError) {
	text, now := w.quoteRefusal(e.Error()), time.Now()
	w.count(func(s *Stats) { s.LastRefusal, s.LastRefusalTime = text, now })
}

// refuses reports whether the answer says that the request is not wanted as it
// is, and not that the peer is busy or broken.
func (e *statusError) refuses() bool {
	switch e.code {
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		return false
	}
	return e.code >= 300 && e.code < 500
}

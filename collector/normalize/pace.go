package normalize

// Between two calls of what Pause is given there are at most so many events, or one event
// and so many bytes of lines, of rejected events and of long values.
const (
	pauseEvents = 128
	pauseBytes  = 32 << 10
)

// Pause has n call pause now and then while it works on many events, so that others can
// work, too. It is called between events.
func (n *Normalizer) Pause(pause func()) { n.pause = pause }

// pace is called for each event.
func (n *Normalizer) pace(dst *Batch) {
	if n.events++; n.events < pauseEvents && n.work+uint(len(dst.Lines)-n.lines) < pauseBytes {
		return
	}
	n.events, n.lines, n.work = 0, len(dst.Lines), 0
	if n.pause != nil {
		n.pause()
	}
}

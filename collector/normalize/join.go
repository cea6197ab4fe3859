package normalize

import (
	"bytes"

	"github.com/rollway/rollway/collector/textlog"
)

// Lines goes over the events of a text that a program has written line by line: a line, and
// those after it that only continue it, see textlog.Joiner. Blank lines are left out, except
// within an event. An event of several lines has at most textlog.MaxJoined of them and
// MostJoined bytes; the line after that begins another one.
//
//	for l := b.Lines(text); l.Next(); {
//		… l.Event …
//	}
type Lines struct {
	Event []byte // without its line end; a part of the text, or valid until the next one

	joined []byte // the event, if it is no part of the text
	rest   []byte
	joiner textlog.Joiner
	most   int  // bytes of an event of several lines; 0: there are none
	told   bool // the joiner was told of the line that rest begins with
}

const mostJoined = 256 << 10

// Lines returns the events of a text, before the first.
func (b *Builder) Lines(text []byte) Lines { return b.n.textLines(text) }

func (n *Normalizer) textLines(text []byte) Lines { return Lines{rest: text, most: n.MostJoined()} }

// MostJoined is how many bytes the joined lines of an event may have; 0: lines are not
// joined. In the canonical line a byte takes up to six.
func (n *Normalizer) MostJoined() int {
	if n.limits.Text.Apart {
		return 0
	}
	return min(mostJoined, n.limits.MaxValueBytes/8, n.limits.MaxEventBytes/8)
}

// Next goes to the next event.
func (l *Lines) Next() bool {
	var start []byte
	end := 0 // of the event, in start
	l.joined = l.joined[:0]
	for count := 0; len(l.rest) > 0; {
		line := l.rest
		next := len(line)
		if i := bytes.IndexByte(line, '\n'); i >= 0 {
			line, next = line[:i], i+1
		}
		line = bytes.TrimSuffix(line, []byte("\r"))
		if len(bytes.TrimSpace(line)) == 0 {
			l.joiner.Blank()
			l.rest = l.rest[next:]
			continue
		}
		if start == nil {
			if !l.told && l.most > 0 {
				l.joiner.Next(line)
			}
			start, l.told = l.rest, false
		} else {
			l.told = true
			more := l.joiner.Next(line)
			if more && (count == textlog.MaxJoined || len(start)-len(l.rest)+len(line) > l.most) {
				if more = false; !l.joiner.Plain() {
					l.joiner, l.told = textlog.Joiner{}, false
				}
			}
			if !more {
				break
			}
		}
		if l.told && !l.joiner.Plain() {
			if len(l.joined) == 0 {
				l.joined = append(l.joined, start[:end]...)
			}
			l.joined = l.joiner.Append(l.joined, line)
		}
		end = len(start) - len(l.rest) + len(line)
		l.rest = l.rest[next:]
		if count++; l.most == 0 {
			break
		}
	}
	if l.Event = start[:end]; len(l.joined) > 0 {
		l.Event = l.joined
	}
	return end > 0
}

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
	Event []byte // without its line end; a part of the text

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
		} else if l.told = true; !l.joiner.Next(line) || count == textlog.MaxJoined || len(start)-len(l.rest)+len(line) > l.most {
			break
		}
		end = len(start) - len(l.rest) + len(line)
		l.rest = l.rest[next:]
		if count++; l.most == 0 {
			break
		}
	}
	l.Event = start[:end]
	return end > 0
}

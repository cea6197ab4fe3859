package receiver

import (
	"bytes"
	"fmt"

	"github.com/rollway/rollway/collector/normalize"
	"github.com/rollway/rollway/collector/receiver/wire"
)

// NDJSON is the StreamProtocol of JSON values, one or several per line. A line longer than
// MaxLine bytes is skipped and counted as too_large. The last line needs no line end if it
// is whole; otherwise it counts as torn.
type NDJSON struct{ MaxLine int }

// Name implements StreamProtocol.
func (NDJSON) Name() string { return "lines of JSON" }

// MaxFrame is one more than the longest line, which shows that it is too long.
func (NDJSON) MaxFrame(maxEvent, _ int) int { return maxEvent + 1 }

// Open implements StreamProtocol.
func (p NDJSON) Open() Session {
	return &lines{max: p.MaxLine, joined: Joined{Joiner: textLines, Add: addLine}}
}

// textLines joins records that an agent has made of lines of text.
var textLines = wire.Joiner{Names: wire.Names("log", "message"), Plain: true}

func addLine(c *Chunk, line []byte) {
	c.Norm.Line(c.Batch, line, c.Received) // the error is in the batch
}

type lines struct {
	max      int  // bytes of a line
	skipping bool // inside a line that is too long
	joined   Joined
	joins    bool // those of the chunk may be lines of text
}

// Decode takes the whole lines, and at the end one that has no end if it shows
// that nothing is missing. The last may wait for what belongs to it.
func (l *lines) Decode(c *Chunk) (int, error) {
	l.joined.Begin(c)
	n := l.whole(c)
	if tail := bytes.TrimSpace(c.Data[n:]); c.End && (len(tail) == 0 || isWhole(tail)) {
		l.add(c, tail, 0)
		n = len(c.Data)
	}
	if left := l.joined.Hold(c); left > 0 {
		n = len(c.Data) - left
	}
	return n, nil
}

func (l *lines) whole(c *Chunk) int {
	data := c.Data
	if l.skipping {
		i := bytes.IndexByte(data, '\n')
		if i < 0 {
			return len(c.Data)
		}
		l.skipping = false
		data = data[i+1:]
	}
	l.joins = l.joined.Suits(data)
	for {
		i := bytes.IndexByte(data, '\n')
		if i < 0 {
			break
		}
		if c.Full(0) {
			return len(c.Data) - len(data)
		}
		if i > l.max {
			l.tooLong(c, data[:i])
		} else {
			l.add(c, data[:i], len(data))
		}
		data = data[i+1:]
	}
	if len(data) > l.max {
		l.tooLong(c, data)
		l.skipping = true
		return len(c.Data)
	}
	return len(c.Data) - len(data)
}

func (l *lines) tooLong(c *Chunk, line []byte) {
	l.joined.Flush(c)
	c.RejectRaw(normalize.ReasonTooLarge, fmt.Sprintf("a line is longer than %d bytes", l.max), line)
}

// add adds a line, which begins left bytes before the end of the chunk.
func (l *lines) add(c *Chunk, line []byte, left int) {
	if l.joins {
		l.joined.Take(c, line, left)
	} else {
		addLine(c, line)
	}
}

// isWhole reports whether the last line, without its end, is whole. Only an object or an
// array shows that nothing is missing.
func isWhole(line []byte) bool {
	if line[0] != '{' && line[0] != '[' {
		return false
	}
	for _, err := range wire.Each(line) {
		if err != nil {
			return false
		}
	}
	return true
}

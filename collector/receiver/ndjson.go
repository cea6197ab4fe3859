package receiver

import (
	"bytes"
	"fmt"

	"github.com/rollway/rollway/collector/normalize"
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
func (p NDJSON) Open() Session { return &lines{max: p.MaxLine} }

type lines struct {
	max      int  // bytes of a line
	skipping bool // inside a line that is too long
}

// Decode takes the whole lines, and at the end one that has no end if it shows
// that nothing is missing.
func (l *lines) Decode(c *Chunk) (int, error) {
	if c.End {
		return l.last(c), nil
	}
	data := c.Data
	if l.skipping {
		i := bytes.IndexByte(data, '\n')
		if i < 0 {
			return len(c.Data), nil
		}
		l.skipping = false
		data = data[i+1:]
	}
	for {
		i := bytes.IndexByte(data, '\n')
		if i < 0 {
			break
		}
		if c.Full(0) {
			return len(c.Data) - len(data), nil
		}
		if i > l.max {
			l.tooLong(c, data[:i])
		} else {
			c.Norm.Line(c.Batch, data[:i], c.Received) // the error is in the batch
		}
		data = data[i+1:]
	}
	if len(data) > l.max {
		l.tooLong(c, data)
		l.skipping = true
		return len(c.Data), nil
	}
	return len(c.Data) - len(data), nil
}

func (l *lines) tooLong(c *Chunk, line []byte) {
	c.RejectRaw(normalize.ReasonTooLarge, fmt.Sprintf("a line is longer than %d bytes", l.max), line)
}

// last takes a last line without its end if it is whole. Only an object or an
// array shows that nothing is missing.
func (l *lines) last(c *Chunk) int {
	tail := bytes.TrimSpace(c.Data)
	if l.skipping || len(tail) == 0 {
		return len(c.Data)
	}
	if tail[0] != '{' && tail[0] != '[' {
		return 0
	}
	if c.Norm.Line(c.Batch, tail, c.Received) != nil {
		c.Batch.Reset()
		return 0
	}
	return len(c.Data)
}

package reliability

import (
	"bytes"
	"encoding/json"
	"os"

	"github.com/rollway/rollway/bench/internal/lines"
)

// states of a line, as the board has them.
type states interface{ get(producer, line int) byte }

// What became of a line. The states are bytes in a mapped file, so they
// survive the process that sets them.
const (
	untried = byte(iota)
	calling // inside of Write
	acked
	refused
)

// audit holds the file against the board.
func (t *Try) audit(content []byte, b states, producers, linesEach int) {
	parse := lines.Parser(lineBytes)
	found := make([][]int, producers)
	for p := range found {
		found[p] = make([]int, linesEach)
	}
	last := make([]int, producers)
	for line := range bytes.Lines(content) {
		p, i, ok := parse(line)
		switch {
		case ok && p < producers && i < linesEach && b.get(p, i) != untried:
			if found[p][i]++; found[p][i] == 1 && i < last[p] {
				t.Reordered++
			}
			last[p] = max(last[p], i)
		case isNotice(line):
		case isTrap(line): // whole after all
			t.Found++
		default:
			t.Torn++
		}
	}
	for p := range found {
		for i, n := range found[p] {
			state := b.get(p, i)
			switch state {
			case acked:
				t.Acked++
			case refused:
				t.Refused++
			case calling:
				t.Open++
			}
			if n == 0 && state == acked {
				t.Silent++ // until somebody tells more
			}
			if n > 0 {
				t.Found++
				t.Duplicated += n - 1
				if state == refused {
					t.Unasked++
				}
			}
		}
	}
}

// settle sorts what is lost by what the writer has said about it.
func (t *Try) settle(counted uint64, told bool) {
	t.Counted = int(min(counted, uint64(t.Silent)))
	t.Silent -= t.Counted
	if told {
		t.Told, t.Silent = t.Silent, 0
	}
}

// isNotice reports whether the line is what our writers put into the stream
// themselves, such as that lines were dropped.
func isNotice(line []byte) bool {
	return json.Valid(line) && bytes.Contains(line, []byte(`"msg":"rollway: `))
}

// The line whose copy is to stand still has three pages, and a producer that
// no other line has.
const trapProducer = 98

var trapPage = os.Getpagesize()

// isTrap reports whether the line is the one whose copy was to stand still.
func isTrap(line []byte) bool {
	head := lines.Append(nil, 14, trapProducer, 0)[:12]
	if !bytes.HasPrefix(line, head) || line[len(line)-1] != '\n' || len(line) != 3*trapPage {
		return false
	}
	return bytes.Count(line, []byte{'x'}) == len(line)-len(head)-2
}

package reliability

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"

	"github.com/rollway/rollway/bench/internal/lines"
)

// states of a line, as on the board.
type states interface{ get(producer, line int) byte }

// What became of a line. The states are bytes in a mapped file, so they
// survive the process that sets them.
const (
	untried = byte(iota)
	calling // inside of Write
	acked
	refused
)

// audit compares the log at path, and the files that it was before, with the
// board. With padded, direct I/O has filled blocks with white space.
func (t *Try) audit(path string, padded bool, b states, producers, linesEach int) error {
	parse := lines.Parser(lineBytes)
	a := lines.NewAudit(producers, func(line []byte) (producer, number int, ok bool) {
		producer, number, ok = parse(line)
		return producer, number, ok && producer < producers && number < linesEach && b.get(producer, number) != untried
	})
	a.Padded = padded
	a.Skip = func(line []byte) bool {
		if isTrap(line) { // whole after all
			t.Found++
			return true
		}
		return isNotice(line)
	}
	names, err := series(path)
	for _, name := range names {
		f, e := os.Open(name)
		if e == nil {
			e = errors.Join(a.Read(f), f.Close())
		}
		err = errors.Join(err, e)
	}
	t.Torn, t.Duplicated, t.Reordered = a.Torn, a.Repeated, a.Reordered
	t.Found += a.Found
	for p := range producers {
		for i := range linesEach {
			found := a.Has(p, i)
			switch b.get(p, i) {
			case acked:
				t.Acked++
				if !found {
					t.Silent++ // until somebody tells more
				}
			case refused:
				t.Refused++
				if found {
					t.Unasked++
				}
			case calling:
				t.Open++
			}
		}
	}
	return err
}

// settle sorts the lost lines by what the writer has said about them.
func (t *Try) settle(counted uint64, told bool) {
	t.Counted = int(min(counted, uint64(t.Silent)))
	t.Silent -= t.Counted
	if told {
		t.Told, t.Silent = t.Silent, 0
	}
}

// series returns the files of the log at path from old to new: the rotated ones,
// and path itself.
func series(path string) ([]string, error) {
	names, err := filepath.Glob(path + "-*")
	slices.Sort(names)
	return append(names, path), err
}

// isNotice reports whether the line is one that our writers add to the stream
// themselves, such as the notice that lines were dropped.
func isNotice(line []byte) bool {
	return json.Valid(line) && bytes.Contains(line, []byte(`"msg":"rollway: `))
}

// The line whose copy is to stop has three pages, and a producer that no other
// line has.
const trapProducer = 98

var trapPage = os.Getpagesize()

// isTrap reports whether the line is the one whose copy was to stop.
func isTrap(line []byte) bool {
	head := lines.Append(nil, 14, trapProducer, 0)[:12]
	if !bytes.HasPrefix(line, head) || line[len(line)-1] != '\n' || len(line) != 3*trapPage {
		return false
	}
	return bytes.Count(line, []byte{'x'}) == len(line)-len(head)-2
}

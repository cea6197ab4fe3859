package textlog

import (
	"bytes"
	"testing"
	"time"

	"github.com/rollway/rollway/internal/jsonline"
	"github.com/rollway/rollway/internal/levels"
	"github.com/rollway/rollway/internal/testkit"
)

// FuzzParse checks what is true of any text: it is not changed, its time is one that a line
// can have, its level is near one with a name, what follows maxHead does not count, and
// the parts of a request are in it.
func FuzzParse(f *testing.F) {
	for _, form := range forms(f) {
		f.Add([]byte(form.line))
	}
	zone, err := time.LoadLocation("America/New_York")
	if err != nil {
		f.Skip(err)
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		before := bytes.Clone(line)
		for _, in := range []*time.Location{time.UTC, zone} {
			h, found := Parse(line, received, in)
			if !bytes.Equal(line, before) {
				t.Fatalf("%q became %q", before, line)
			}
			if found != (h.HasTime || h.HasLevel) || !found && h != (Head{}) {
				t.Fatalf("%t and %+v", found, h)
			}
			if h.HasTime && (h.Sec < 0 || h.Sec > jsonline.LastSecond || h.Nsec < 0 || h.Nsec > 999_999_999) {
				t.Fatalf("%+v", h)
			}
			if h.HasLevel && (h.Level < levels.Trace-9 || h.Level > levels.Fatal+9) {
				t.Fatalf("%+v", h)
			}
			if h.Request > 0 {
				r := ParseRequest(line, h.Request)
				if len(r[firstNumber]) != 3 || line[h.Request] != '"' {
					t.Fatalf("%q", r)
				}
				for _, part := range r {
					if !bytes.Contains(line, part) {
						t.Fatalf("%q is not in the line", part)
					}
				}
			} else if more, _ := Parse(append(line[:len(line):len(line)], "\nand so on"...), received, in); len(line) > maxHead && more != h {
				t.Fatalf("%+v, with more after it %+v", h, more)
			}
		}
	})
}

func TestNoAllocation(t *testing.T) {
	var lines [][]byte
	for _, form := range forms(t) {
		lines = append(lines, []byte(form.line))
	}
	if n := testkit.Mallocs(func() {
		for _, line := range lines {
			if h, _ := Parse(line, received, time.UTC); h.Request > 0 {
				ParseRequest(line, h.Request)
			}
		}
	}); n > 0 {
		t.Errorf("%d allocations for %d lines", n, len(lines))
	}
}

package lines

import (
	"bytes"
	"testing"
)

func TestParserReadsWhatAppendMakes(t *testing.T) {
	parse := Parser(64)
	line := Append(nil, 64, 7, 123456789)
	if p, s, ok := parse(line); p != 7 || s != 123456789 || !ok || len(line) != 64 {
		t.Fatalf("%q is %d, %d, %v", line, p, s, ok)
	}
	Renumber(line, 42)
	if p, s, ok := parse(line); p != 7 || s != 42 || !ok {
		t.Fatalf("%q is %d, %d, %v", line, p, s, ok)
	}
	for i := range line {
		bad := bytes.Clone(line)
		bad[i] = '!'
		if _, _, ok := parse(bad); ok {
			t.Errorf("taken: %q", bad)
		}
	}
	for _, bad := range [][]byte{nil, line[:63], line[1:], append(bytes.Clone(line), 'x')} {
		if _, _, ok := parse(bad); ok {
			t.Errorf("taken: %q", bad)
		}
	}
}

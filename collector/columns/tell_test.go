package columns

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"
)

// told has lines. A test looks at what Text and Value get of them.
func told() map[string]string {
	r := rand.New(rand.NewPCG(1, 2))
	return map[string]string{
		"app":           string(appLines(r, 2000)),
		"few":           string(appLines(r, minRows-1)),
		"no objects":    strings.Repeat("plain text\n\n{}\n[1]\n{\"a\":1}}\n{\"a\"\n", 10),
		"same in a row": strings.Repeat(`{"time":"2026-05-28T12:40:00.123456789Z","a":"x","b":{"c":1}}`+"\n"+`{"a":"x","d":2}`+"\n", 20),
		"no line end":   strings.Repeat("{\"a\":1}\n", 30) + "{\"a\":2}",
	}
}

// TestTells: Text gets any three bytes in a row of a line and few others, Value each value except times.
func TestTells(t *testing.T) {
	for name, lines := range told() {
		e := encoder(t)
		texts, values := map[string]bool{}, map[string]bool{}
		e.Text = func(part []byte) {
			for i := 3; i <= len(part); i++ {
				texts[string(part[i-3:i])] = true
			}
		}
		e.Value = func(value []byte) { values[string(value)] = true }
		e.Append(nil, []byte(lines))
		want, wantValues := map[string]bool{}, map[string]bool{}
		for line := range strings.Lines(lines) {
			for i := 3; i <= len(line); i++ {
				want[line[i-3:i]] = true
			}
			var s splitter
			s.split([]byte(line), 0, len(line))
			paths, ok := appendPaths(nil, s.shape, len(line))
			for i, v := range s.values {
				if ok && paths[i] != "time\x00" {
					wantValues[line[v.start:v.end]] = true
				}
			}
		}
		for text := range want {
			if !texts[text] {
				t.Errorf("%s: Text did not get %q", name, text)
			}
		}
		if len(texts) > len(want)*21/20+20 {
			t.Errorf("%s: Text got %d different three bytes, the lines have %d", name, len(texts), len(want))
		}
		for value := range wantValues {
			if !values[value] {
				t.Errorf("%s: Value did not get %q", name, value)
			}
		}
		for value := range values {
			if !wantValues[value] {
				t.Errorf("%s: Value got %q", name, value)
			}
		}
	}
}

// agree fails if a line is known otherwise than a splitter splits it. It returns how many are known.
func agree(t *testing.T, lines []byte) (known int) {
	t.Helper()
	e := encoder(t)
	e.Append(nil, lines)
	for start := 0; start < len(lines); {
		end := len(lines)
		if n := bytes.IndexByte(lines[start:], '\n'); n >= 0 {
			end = start + n + 1
		}
		if values, shape := e.known.find(nil, lines[:end], start); shape >= 0 {
			var s splitter
			s.split(lines, start, end)
			known++
			if !bytes.Equal(s.shape, e.shapes.At(shape)) || len(values) != len(s.values) {
				t.Fatalf("%q is known as %q, and split into %q", lines[start:end], e.shapes.At(shape), s.shape)
			}
			for i, v := range values {
				if v != s.values[i] {
					t.Fatalf("%q: value %d is %v, split %v", lines[start:end], i, v, s.values[i])
				}
			}
		}
		start = end
	}
	return known
}

// TestKnown: lines of shapes that came before are found as a splitter splits them.
func TestKnown(t *testing.T) {
	lines := appLines(rand.New(rand.NewPCG(1, 2)), 2000)
	if n := agree(t, lines); n != 2000 {
		t.Errorf("%d of 2000 lines are known", n)
	}
	agree(t, []byte(`{"a":1,"b":2}
{"a":{"b":1}}
{"a":{},"b":[1]}
{"a":{"b":1},"c":2}
{"a":1}
{"a":"x,\"y","b":"}"}
{"a":
{"a":1,"b":
`))
	var many strings.Builder
	for i := range 3 * maxOthers {
		many.WriteString(strings.Repeat(`{"k`+strings.Repeat("x", i)+`":1}`+"\n", 2))
	}
	if n := agree(t, []byte(many.String())); n != 2*maxOthers {
		t.Errorf("%d lines are known where %d differ, want %d", n, 3*maxOthers, 2*maxOthers)
	}
}

func FuzzKnown(f *testing.F) {
	f.Add([]byte("{\"a\":1,\"b\":{\"c\":2}}\n{\"a\":{\"c\":2}}\n{\"a\":{},\"b\":{\"c\":\"x\"}}\n"))
	f.Add(appLines(rand.New(rand.NewPCG(5, 6)), 20))
	f.Fuzz(func(t *testing.T, lines []byte) { agree(t, lines) })
}

package normalize_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/rollway/rollway/collector/normalize"
	"github.com/rollway/rollway/collector/normalize/vectors"
)

var arrived = time.Unix(1_780_000_000, 0)

// roads are the forms of bodies that a value can come in, each with an event
// before and one after it, which are stored whatever the value is where
// alone says so.
var roads = []struct {
	name        string
	before      string
	behind      string
	neighbours  int
	alone, line bool // a fault is the event's alone; the value must be in one line
}{
	{name: "object", before: `{"k":`, behind: `}`},
	{name: "array", before: `[{"a":1},{"k":`, behind: `},{"b":2}]`, neighbours: 2},
	{name: "NDJSON", before: `{"a":1}` + "\n" + `{"k":`, behind: "}\n" + `{"b":2}`, neighbours: 2, alone: true, line: true},
	{name: "first line of NDJSON", before: `{"k":`, behind: "}\n" + `{"b":2}`, neighbours: 1, alone: true, line: true},
	{name: "attribute", before: `{"msg":"m","attrs":{"k":`, behind: `}}`},
	{name: "array of arrays", before: `[{"k":[1,`, behind: `]}]`},
}

// Each vector is accepted or rejected as the table says, on every road, and what
// is accepted comes out as it went in.
func TestVectors(t *testing.T) {
	values := vectors.Values()
	for _, road := range roads {
		n, b := normalize.New(normalize.Limits{MaxFuture: -1, MaxPast: -1}), new(normalize.Batch)
		tried := 0
		for i := range values {
			v := &values[i]
			if road.line && !v.OneLine() || strings.HasPrefix(road.name, "array of") && strings.TrimSpace(v.Text) == "" {
				continue
			}
			tried++
			b.Reset()
			body := []byte(road.before + v.Text + road.behind)
			err := n.Body(b, body, arrived)
			want, rejected, whole := road.neighbours, 0, false
			switch {
			case v.Accept:
				want++
			case road.alone || v.Choice != "" && v.Group != vectors.TooDeepToRead: // the others are not concerned
				rejected = 1
			default:
				want, rejected, whole = 0, 1, true
			}
			if whole && !v.OneLine() && b.RejectedTotal > 1 { // taken for NDJSON, as its first line is broken within itself
				rejected, whole = strings.Count(string(body), "\n")+1, false
			}
			if b.Records != want || b.RejectedTotal != rejected || (err != nil) != whole {
				t.Errorf("%s, %s: %d stored, %d rejected, error %v; want %d and %d", road.name, v.Name(), b.Records, b.RejectedTotal, err, want, rejected)
				continue
			}
			if !v.Accept {
				checkReason(t, road.name, v, b)
				continue
			}
			if !strings.HasPrefix(road.name, "array of") {
				checkValue(t, road.name, v, b)
			}
		}
		if tried < 700 {
			t.Errorf("%s: %d vectors were tried", road.name, tried)
		}
	}
}

// checkReason checks what a vector is rejected for.
func checkReason(t *testing.T, road string, v *vectors.Vector, b *normalize.Batch) {
	t.Helper()
	want := []string{normalize.ReasonSyntax}
	switch {
	case strings.HasPrefix(v.Group, "depth"): // over 10,000 levels nobody looks whether they are closed
		want = []string{normalize.ReasonTooDeep, normalize.ReasonSyntax}
		if v.Choice != "" {
			want = want[:1]
		}
	case !v.OneLine():
		return // which may be several events
	case v.Group == "size" && v.Choice != "":
		want = []string{normalize.ReasonTooLarge}
	}
	for _, reason := range want {
		if b.RejectedFor(reason) == 1 {
			return
		}
	}
	t.Errorf("%s, %s is rejected as %s (%s), want %v", road, v.Name(), b.Rejected[0].Reason, b.Rejected[0].Detail, want)
}

// checkValue finds an accepted value again.
func checkValue(t *testing.T, road string, v *vectors.Vector, b *normalize.Batch) {
	t.Helper()
	var want bytes.Buffer
	if err := json.Compact(&want, []byte(v.Mended())); err != nil {
		t.Fatal(v.Name(), err)
	}
	for line := range bytes.Lines(b.Lines) {
		if !json.Valid(line) || !utf8.Valid(line) {
			t.Errorf("%s, %s: the line %q is not JSON", road, v.Name(), line)
		}
		var got struct {
			Attrs struct{ K json.RawMessage }
		}
		if json.Unmarshal(line, &got) == nil && got.Attrs.K != nil {
			if !bytes.Equal(got.Attrs.K, want.Bytes()) {
				t.Errorf("%s, %s has become %s", road, v.Name(), got.Attrs.K)
			}
			return
		}
	}
	t.Errorf("%s, %s is not in %s", road, v.Name(), b.Lines)
}

// A vector that is a body by itself is accepted only if it is values in a row,
// which encoding/json can tell.
func TestVectorsAsBodies(t *testing.T) {
	n, b := normalize.New(normalize.Limits{}), new(normalize.Batch)
	values := vectors.Values()
	for i := range values {
		v := &values[i]
		if v.Choice != "" || !v.OneLine() || strings.HasPrefix(v.Text, "\ufeff") {
			continue
		}
		b.Reset()
		err := n.Body(b, []byte(v.Text), arrived)
		if events, valid := count(v.Text); valid {
			if err != nil || b.Records+b.RejectedTotal != events || b.RejectedFor(normalize.ReasonNotObject) != b.RejectedTotal {
				t.Errorf("%s: %d stored, %d rejected, error %v; want %d events", v.Name(), b.Records, b.RejectedTotal, err, events)
			}
		} else if err == nil || b.Records != 0 || b.RejectedTotal != 1 {
			t.Errorf("%s: %d stored, %d rejected, error %v; want one that is rejected", v.Name(), b.Records, b.RejectedTotal, err)
		}
	}
}

// count counts the events of a body of values in a row.
func count(body string) (events int, valid bool) {
	dec := json.NewDecoder(strings.NewReader(body))
	for dec.More() {
		var v json.RawMessage
		if dec.Decode(&v) != nil {
			return 0, false
		}
		events++
		if v[0] == '[' {
			var elements []json.RawMessage
			if json.Unmarshal(v, &elements) != nil {
				return 0, false
			}
			events += len(elements) - 1
		}
	}
	_, err := dec.Token()
	return events, err != nil && err.Error() == "EOF"
}

// Whole bodies: what is decided here is that several values may follow one
// another, that the body may begin with a byte order mark, and that only lines
// are rejected by themselves.
func TestBodies(t *testing.T) {
	const bom = "\ufeff"
	utf16 := func(s string, big bool) string {
		var out []byte
		for _, c := range []byte(s) {
			if big {
				out = append(out, 0, c)
			} else {
				out = append(out, c, 0)
			}
		}
		return string(out)
	}
	for _, tt := range []struct {
		body             string
		stored, rejected int
		why              string // where encoding/json would read it otherwise
	}{
		{"{}", 1, 0, ""}, {" {} ", 1, 0, ""}, {"\r\n{}\r\n", 1, 0, ""}, {"[]", 0, 0, ""}, {"[{}]", 1, 0, ""}, {"[{},{}]", 2, 0, ""}, {"[ {} , {} ]", 2, 0, ""},
		{"{}{}", 2, 0, ""}, {"{} {}", 2, 0, ""}, {"{}\n{}", 2, 0, ""}, {"{}\r{}", 2, 0, ""}, {"{}\r\n\r\n{}\r\n", 2, 0, ""}, {"[{}][{}]", 2, 0, ""}, {"[{}]\n{}\n[{},{}]", 4, 0, ""},
		{"{\n\"a\":1\n}", 1, 0, ""}, {"[\n{\n\"a\":1\n}\n]", 1, 0, ""}, {"{\n\"a\":1\n}\n{\n\"b\":1\n}", 2, 0, ""}, {"{\n\"a\":\n{\"b\":1}\n}", 1, 0, ""},
		{"1", 0, 1, ""}, {"\"a\"", 0, 1, ""}, {"null", 0, 1, ""}, {"true", 0, 1, ""}, {"-0", 0, 1, ""}, {"[1]", 0, 1, ""}, {"[[]]", 0, 1, ""}, {"[[{}]]", 0, 1, ""}, {"[1,{},null,{}]", 2, 2, ""}, {"1 2 {}", 1, 2, ""},
		{"{},{}", 0, 1, ""}, {"{},", 0, 1, ""}, {",{}", 0, 1, ""}, {"[{},]", 0, 1, ""}, {"[{}", 0, 1, ""}, {"[{}]]", 0, 1, ""}, {"{}}", 0, 1, ""}, {"{}x", 0, 1, ""}, {"[{}]x", 0, 1, ""}, {"{}\x00", 0, 1, ""}, {"\x00{}", 0, 1, ""}, {"a=b&c=d", 0, 1, ""}, {"<a/>", 0, 1, ""}, {"{\"a\":1", 0, 1, ""},
		{"[{\"a\":1},\n{\"b\":2},\n{\"c\":}]", 0, 1, ""}, {"[{},\n{}", 0, 1, ""}, {"{\n\"a\":1\n", 0, 1, ""}, {"{\n\"a\":1,\n}", 0, 1, ""},
		{bom + "{}", 1, 0, "a byte order mark in front is passed over, as RFC 8259 section 8.1 allows"},
		{bom + "[{}]", 1, 0, "likewise"}, {bom + "{}\n{}", 2, 0, "likewise"}, {bom + "\r\n{}", 1, 0, "likewise"},
		{bom + bom + "{}", 0, 1, ""}, {"{}" + bom, 0, 1, ""}, {"{}\n" + bom + "{}", 1, 1, "a line is rejected alone"}, {"\xef\xbb{}", 0, 1, ""}, {"\xef{}", 0, 1, ""}, {" " + bom + "{}", 0, 1, ""},
		{"{\"a\":1}\n{\"b\":}\n{\"c\":3}", 2, 1, "a line is rejected alone"}, {"{}\n}\n{}", 2, 1, "likewise"}, {"{}\nnull\n{}", 2, 1, ""}, {"{}\n{},\n{}", 2, 1, "likewise"}, {"{}\n\xff\n{}", 2, 1, "likewise"}, {"{\"a\":\"\xff\"}\n{}", 2, 0, "a byte that is not UTF-8 becomes U+FFFD"}, {"x\n{}\n", 1, 1, "likewise"}, {"{\"a\n{}\n", 1, 1, "likewise"}, {"{}\n[{},\n{}", 2, 1, "likewise"},
		{utf16("{}", false), 0, 1, ""}, {utf16("{}", true), 0, 1, ""}, {"\xff\xfe" + utf16(`{"a":1}`, false), 0, 1, ""}, {"\xfe\xff" + utf16(`{"a":1}`, true), 0, 1, ""}, {"\x00\x00\xfe\xff\x00\x00\x00{\x00\x00\x00}", 0, 1, ""}, {"{\x00\x00\x00}\x00\x00\x00", 0, 1, ""},
	} {
		n, b := normalize.New(normalize.Limits{}), new(normalize.Batch)
		err := n.Body(b, []byte(tt.body), arrived)
		if b.Records != tt.stored || b.RejectedTotal != tt.rejected {
			t.Errorf("%q: %d stored, %d rejected, error %v; want %d and %d", tt.body, b.Records, b.RejectedTotal, err, tt.stored, tt.rejected)
		}
		if tt.why != "" {
			continue
		}
		if events, valid := count(tt.body); valid && events != tt.stored+tt.rejected || !valid && tt.stored > 0 {
			t.Errorf("%q: encoding/json reads %d events, %v", tt.body, events, valid)
		}
	}
	for _, body := range []string{"", " ", "\n", "\r\n\t ", bom, bom + "\n"} {
		if err := normalize.New(normalize.Limits{}).Body(new(normalize.Batch), []byte(body), arrived); err != normalize.ErrEmpty {
			t.Errorf("%q: %v", body, err)
		}
	}
}

// Each value is in its place whatever slot it was sent for.
func TestVectorsInSlots(t *testing.T) {
	values := vectors.Values()
	n, b := normalize.New(normalize.Limits{}), new(normalize.Batch)
	for i := range values {
		v := &values[i]
		for _, slot := range []string{"time", "level", "msg", "service", "logger", "source", "trace_id", "span_id", "error", "attrs", "metadata"} {
			if !v.OneLine() || len(v.Text) > 1000 && v.Accept {
				continue
			}
			b.Reset()
			n.Body(b, fmt.Appendf(nil, `{"%s":%s}`, slot, v.Text), arrived) // counted in b
			if accepted := b.Records == 1; accepted != v.Accept || b.Records+b.RejectedTotal != 1 {
				t.Errorf("%s as %s: %d stored, %d rejected", v.Name(), slot, b.Records, b.RejectedTotal)
			}
			if b.Records == 1 && (!json.Valid(b.Lines) || !utf8.Valid(b.Lines)) {
				t.Errorf("%s as %s: %s", v.Name(), slot, b.Lines)
			}
		}
	}
}

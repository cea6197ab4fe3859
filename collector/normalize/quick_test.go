package normalize

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/rollway/rollway/collector/normalize/vectors"
)

// values are JSON values and what is nearly one.
func values() []string {
	all := append([]string(nil), seeds...)
	vectors := vectors.Values()
	for i := range vectors {
		if text := vectors[i].Text; len(text) < 1<<13 {
			all = append(all, text, `{"k":`+text+`}`, `[{"a":1,"metadata":{"k":`+text+`}},{"b":2}]`, "{\"a\":1}\n{\"k\":"+text+"}\n{\"b\":2}")
		}
	}
	return all
}

// verdict is what package jsontext says of body, read token by token as one line: how
// many events it has and how many of them are objects, and where it stops.
func verdict(body []byte) (events, objects int, failed error) {
	dec := jsontext.NewDecoder(bytes.NewBuffer(body), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	for {
		depth, inObject := dec.StackDepth(), false
		if depth > 0 {
			kind, _ := dec.StackIndex(1)
			inObject = kind == jsontext.KindBeginObject
		}
		token, err := dec.ReadToken()
		if err != nil {
			if err == io.EOF && depth == 0 {
				return events, objects, nil
			}
			return 0, 0, err
		}
		kind := token.Kind()
		if ends := kind == jsontext.KindEndObject || kind == jsontext.KindEndArray; ends || depth > 1 || inObject || depth == 0 && kind == jsontext.KindBeginArray {
			continue
		}
		if events++; kind == jsontext.KindBeginObject {
			objects++
		}
	}
}

// sameVerdict fails unless a line is accepted or rejected as package jsontext does.
func sameVerdict(t *testing.T, line []byte) {
	t.Helper()
	n, b := New(Limits{}), new(Batch)
	err := n.Line(b, line, received)
	events, objects, failed := verdict(line)
	switch {
	case (err != nil) != (failed != nil):
		t.Fatalf("%.300q: %v, by the decoder %v", line, err, failed)
	case err != nil:
		sameFault(t, line, err)
	case b.Events() != events || b.RejectedFor(ReasonNotObject) != events-objects:
		t.Fatalf("%.300q: %d events, %d no objects; by the decoder %d and %d", line, b.Events(), b.RejectedFor(ReasonNotObject), events, events-objects)
	}
}

// sameFault fails unless an error says where the line stops being JSON, and why, as package
// jsontext does.
func sameFault(t *testing.T, line []byte, got error) {
	t.Helper()
	dec := jsontext.NewDecoder(bytes.NewBuffer(line), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	var err error
	for err == nil {
		_, err = dec.ReadValue()
	}
	at, why := len(bytes.TrimRight(line, " \r\n\t")), "the text ends inside a value"
	var bad *jsontext.SyntacticError
	if errors.As(err, &bad) && !errors.Is(err, io.ErrUnexpectedEOF) {
		at, why = int(bad.ByteOffset), bad.Err.Error()
	}
	if why == "exceeded max depth" {
		why = "objects and arrays are nested more than 10,000 deep"
	}
	var se *SyntaxError
	const escape = "invalid escape sequence " // which the decoder quotes in two ways
	if !errors.As(got, &se) || int(se.Offset) != at || se.Problem != why && !(strings.HasPrefix(se.Problem, escape) && strings.HasPrefix(why, escape)) {
		t.Fatalf("%.300q: %v, by the decoder %q at offset %d", line, got, why, at)
	}
}

func TestVerdicts(t *testing.T) {
	for _, body := range values() {
		sameVerdict(t, []byte(body))
	}
	for _, depth := range []int{maxNested - 1, maxNested, maxNested + 1} {
		nested := strings.Repeat("[", depth) + strings.Repeat("]", depth)
		sameVerdict(t, []byte(nested))
		sameVerdict(t, []byte(`[{"a":`+nested[2:len(nested)-2]+`}]`))
		sameVerdict(t, []byte(`[{"metadata":{"a":`+nested[3:len(nested)-3]+`}}]`))
	}
	// Every byte that a body may be cut at, or may have in another's place.
	body := []byte(`[{"msg":"a\u00e9\\é","ts":-1.5E+3,"x":[ true,{"y":null},[]] , "metadata" :{"z":{ },"z":0}}, {} ]`)
	for i := range body {
		sameVerdict(t, body[:i])
		changed := bytes.Clone(body)
		for _, c := range []byte("\"\\{}[]:, \n\x00\x1fA0-.eEtn\x7f\x80\xff") {
			changed[i] = c
			sameVerdict(t, changed)
		}
	}
}

func FuzzQuick(f *testing.F) {
	for _, s := range seeds {
		f.Add([]byte(s))
	}
	f.Fuzz(sameVerdict)
}

// TestBuilderAttrs: what goes straight to attrs is as what is copied there.
func TestBuilderAttrs(t *testing.T) {
	n, batch := New(Limits{MaxDepth: 5}), new(Batch)
	b := n.Build(batch, received)
	b.Begin()
	for _, name := range []string{"a", "a", "q\"\n", "q\"\n", "bad\xff", "bad\uFFFD"} {
		b.Attr([]byte(name))
		b.Int(1)
	}
	b.Attr([]byte("o"))
	b.BeginObject()
	b.Name([]byte("x"))
	b.JSON([]byte(`{ "y" : [ 1 , "  " ] }`))
	b.Name([]byte("z"))
	b.JSON([]byte(`2`))
	b.EndObject()
	b.Slot(Message)
	b.String([]byte("first"))
	b.Slot(Message)
	b.String([]byte("second"))
	b.Field([]byte("p"))
	b.JSON([]byte("[ ]"))
	if !b.End() {
		t.Fatal(batch.Rejected)
	}
	_, got, _ := strings.Cut(string(batch.Lines), `,"msg":`)
	want := `"first","attrs":{"a":1,"a_2":1,"q\"\n":1,"q\"\n_2":1,"bad�":1,"bad�_2":1,"o":{"x":{"y":[1,"  "]},"z":2},"msg":"second","p":[]}}` + "\n"
	if got != want {
		t.Errorf("got  %swant %s", got, want)
	}
	// One level more than there may be, in each way; and an event left in a value.
	for i, value := range []func(){
		func() { b.JSON([]byte(`[[[[]]]]`)) },
		func() { b.BeginArray(); b.JSON([]byte(`[[[]]]`)); b.EndArray() },
		func() { b.BeginArray(); b.BeginArray(); b.BeginArray(); b.BeginArray() },
	} {
		b.Begin()
		b.Attr([]byte("k"))
		value()
		if !b.Failed() {
			t.Errorf("%d: not too deep", i)
		}
	}
	b.Done()
	b = n.Build(batch, received)
	b.Begin()
	b.Attr([]byte("k"))
	b.JSON([]byte(`[[[]]]`))
	if !b.End() || !strings.HasSuffix(string(batch.Lines), `,"attrs":{"k":[[[]]]}}`+"\n") {
		t.Errorf("%s%v", batch.Lines, batch.Rejected)
	}
	b.Done()
}

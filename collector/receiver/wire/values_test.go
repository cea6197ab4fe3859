package wire

import (
	"bytes"
	"encoding/json"
	"io"
	"testing"

	"github.com/rollway/rollway/internal/jsonwalk"
)

func TestValues(t *testing.T) {
	for _, tt := range []struct{ text, want, fault string }{
		{` {"a":[1]} `, `{"a":[1]}`, ""},
		{"", "", "there is no value"},
		{" \n", "", "there is no value"},
		{"1 2", "", "there is something after the value"},
		{`{"a":`, "", "the text ends inside a value"},
		{`{"a" 1}`, "", "not valid JSON at offset 5: invalid character '1' after object name (expecting ':')"},
	} {
		value, err := Value([]byte(tt.text))
		if string(value) != tt.want || (err == nil) != (tt.fault == "") || err != nil && err.Error() != tt.fault {
			t.Errorf("%q: %q, %v", tt.text, value, err)
		}
	}
	v := ValuesOf([]byte(`{}{} [1]` + "\n"))
	for _, want := range []string{"{}", "{}", "[1]"} {
		if value, err := v.Next(); err != nil || string(value) != want {
			t.Errorf("%q, %v", value, err)
		}
	}
	if _, err := v.Next(); err != io.EOF {
		t.Error(err)
	}
}

func TestEach(t *testing.T) {
	for text, want := range map[string]string{
		"":                         "",
		" {} 1 \n\"x\"":            `{};1;"x";`,
		`[{}, [2] ,3][]{"a":[1]}4`: `{};[2];3;{"a":[1]};4;`,
		`{}[1,`:                    `{};the text ends inside a value of [1,`,
		`{} x{}`:                   `{};not valid JSON at offset 1: invalid character 'x' at start of value of x{}`,
	} {
		got := ""
		for value, err := range Each([]byte(text)) {
			if err != nil {
				got += err.Error() + " of " + string(value)
			} else {
				got += string(value) + ";"
			}
		}
		if got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
	for range Each([]byte("[1,2]3")) {
		break
	}
}

func TestGet(t *testing.T) {
	object := []byte(`{"a":1,"\u0062":"x","é":[]}`)
	for name, want := range map[string]string{"a": "1", "b": `"x"`, "c": ""} {
		if got := Get(object, name); string(got) != want {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// FuzzWalk rebuilds values from what a walk finds.
func FuzzWalk(f *testing.F) {
	for _, s := range []string{`{"a" : [1, {"b":"\"}"} , []] , "":null}`, `[ ]`, `"x"`, `-1e5`, `{"a":true}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		value, err := Value(text)
		if err != nil {
			return
		}
		var got, want bytes.Buffer
		rebuild(&got, value)
		if err := json.Compact(&want, value); err != nil {
			t.Fatal(err)
		}
		if got.String() != want.String() {
			t.Fatalf("got %s, want %s", got.Bytes(), want.Bytes())
		}
	})
}

func rebuild(out *bytes.Buffer, value []byte) {
	switch value[0] {
	case '{':
		w := Members(value)
		rebuildObject(out, &w)
	case '[':
		out.WriteByte('[')
		w := Elements(value)
		for n := 0; w.Next(); n++ {
			if n > 0 {
				out.WriteByte(',')
			}
			rebuild(out, w.RawValue())
		}
		out.WriteByte(']')
	default:
		out.Write(value)
	}
}

func rebuildObject(out *bytes.Buffer, w *jsonwalk.Walk) {
	out.WriteByte('{')
	for n := 0; w.NextName(); n++ {
		if n > 0 {
			out.WriteByte(',')
		}
		out.Write(w.RawName())
		out.WriteByte(':')
		if w.Kind() == '{' {
			inner := w.Inside()
			rebuildObject(out, &inner)
			w.Leave(&inner)
			continue
		}
		w.SkipValue()
		rebuild(out, w.RawValue())
	}
	out.WriteByte('}')
}

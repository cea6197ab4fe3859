package jsonwalk

import (
	"bytes"
	"encoding/json"
	"io"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// texts are seeds for all fuzz tests, and tests by themselves.
var texts = []string{
	``, ` `, `{}`, `[]`, ` { } `, `{"a":1}`, ` { "a" : [ 1 , 2.5e-3, -0, {"b":null}, [] ] , "c" : "d" } `,
	`{"a":1,}`, `{,"a":1}`, `{"a" 1}`, `{"a":1 "b":2}`, `[1,]`, `[,1]`, `[1 2]`, `{"a"}`, `{"a":}`, `{1:2}`, `[1}`, `{"a":1]`,
	`true`, `false`, `null`, `tru`, `nul`, `01`, `-`, `1.`, `.5`, `1e`, `1e+`, `1E-5`, `-0.0e10`, `+1`,
	`"`, `"a`, `"\`, `"\"`, `"\u12`, `"\u123g"`, `"\q"`, "\"\n\"", "\"\x1f\"", `"\"\\\/\b\f\n\r\t"`, `"\u00e9\uD83D\uDE00"`,
	`"\ud83d"`, `"\ude00\ud83d"`, `"\ud83d\u0041"`, `"\ud83d\"`, "\"\xff\"", `"12345678\"2345678"`, `"1234567\\"`,
	`{"time":"2026-05-28T12:40:00.000000000Z","level":"INFO","msg":"a \"quoted\" word","attrs":{"a":{"b":[1,{"c":"}]"}]},"n":-1.5}}`,
	strings.Repeat("[", 8) + strings.Repeat("]", 8), `{"a":{"a":{"a":{"a":{"a":{"a":{"a":{}}}}}}}}`,
}

func seed(f *testing.F) {
	for _, text := range texts {
		f.Add([]byte(text))
	}
}

// FuzzValid compares Valid, and a checked walk, with encoding/json.
func FuzzValid(f *testing.F) {
	seed(f)
	f.Fuzz(func(t *testing.T, text []byte) {
		const maxDepth = 20
		want := json.Valid(text) && depth(text) <= maxDepth
		if got := Valid(text, maxDepth); got != want {
			t.Fatalf("Valid(%q) = %t", text, got)
		}
		if want {
			checkNotes(t, text)
		}
		if start := SkipSpace(text, 0); start < len(text) && (text[start] == '{' || text[start] == '[') {
			c := Checker{MaxDepth: maxDepth - 1}
			w := c.Members(text, start)
			if text[start] == '[' {
				w = c.Elements(text, start)
			}
			for w.Next() {
			}
			if end := w.End(); want != (end >= 0 && SkipSpace(text, end) == len(text)) {
				t.Fatalf("a walk through %q ends at %d", text, end)
			}
		}
	})
}

// depth is how deep the brackets outside of strings are nested.
func depth(text []byte) (deepest int) {
	level, inString := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case !inString && (c == '{' || c == '['):
			level++
			deepest = max(deepest, level)
		case !inString && (c == '}' || c == ']'):
			level--
		}
	}
	return deepest
}

// checkNotes compares what a Checker notes of valid text with encoding/json.
func checkNotes(t *testing.T, text []byte) {
	c := Checker{MaxDepth: 100}
	start := SkipSpace(text, 0)
	end := c.Value(text, start)
	var compact bytes.Buffer
	if err := json.Compact(&compact, text); err != nil {
		t.Fatal(err)
	}
	if c.Depth != depth(text) || c.Spaced != (compact.Len() < end-start) {
		t.Fatalf("%q: %+v", text, c)
	}
}

// FuzzWalk goes through any text without a panic, and through valid text as a
// decoder does.
func FuzzWalk(f *testing.F) {
	seed(f)
	f.Fuzz(func(t *testing.T, text []byte) {
		if end := SkipValue(text, 0); end > len(text) {
			t.Fatalf("%q ends at %d", text, end)
		}
		for _, w := range []Walk{Members(text, 0), Elements(text, 0)} {
			for w.Next() {
				if w.Value.Start < 0 || w.Value.End > len(text) || w.Value.Len() <= 0 || w.Name.End > len(text) {
					t.Fatalf("%q: %+v", text, w)
				}
			}
		}
		if !json.Valid(text) || !utf8.Valid(text) {
			return
		}
		start := SkipSpace(text, 0)
		want := values(t, text)
		got, end := walked(text, start)
		if SkipSpace(text, end) != len(text) || end != SkipValue(text, start) {
			t.Fatalf("%q ends at %d and %d", text, end, SkipValue(text, start))
		}
		a, _ := json.Marshal(want)
		b, _ := json.Marshal(got)
		if !bytes.Equal(a, b) {
			t.Fatalf("%q is read as %s, want %s", text, b, a)
		}
	})
}

// walked returns the value at text[i] as nested lists of names and of scalars as
// they are written.
func walked(text []byte, i int) (value any, end int) {
	var w Walk
	list := []any{}
	switch text[i] {
	case '{':
		w = Members(text, i)
	case '[':
		w = Elements(text, i)
	default:
		end = SkipValue(text, i)
		return scalar(text[i:end]), end
	}
	for w.Next() {
		if w.members {
			list = append(list, scalar(w.Name.Of(text)))
		}
		inner, _ := walked(text, w.Value.Start)
		list = append(list, inner)
	}
	return list, w.End()
}

func scalar(raw []byte) any {
	if raw[0] == '"' {
		text, _ := Text(raw, nil)
		return string(text)
	}
	return string(raw)
}

// values is walked by encoding/json.
func values(t *testing.T, text []byte) any {
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	stack := [][]any{{}}
	for {
		token, err := dec.Token()
		if err == io.EOF {
			return stack[0][0]
		}
		if err != nil {
			t.Fatal(err)
		}
		top := len(stack) - 1
		switch v := token.(type) {
		case json.Delim:
			if v == '{' || v == '[' {
				stack = append(stack, []any{})
				continue
			}
			done := stack[top]
			stack = stack[:top]
			stack[top-1] = append(stack[top-1], done)
		case nil:
			stack[top] = append(stack[top], "null")
		case bool:
			stack[top] = append(stack[top], map[bool]string{true: "true", false: "false"}[v])
		case json.Number:
			stack[top] = append(stack[top], string(v))
		case string:
			stack[top] = append(stack[top], v)
		}
	}
}

// FuzzText compares the text of strings with that of encoding/json, and the ways to
// it with each other.
func FuzzText(f *testing.F) {
	seed(f)
	f.Fuzz(func(t *testing.T, text []byte) {
		inner := bytes.ReplaceAll(text, []byte(`"`), []byte(`\"`))
		raw := slices.Concat([]byte(`"`), inner, []byte(`"`))
		got, _ := Text(raw, make([]byte, 0, 8))
		if checked, end, _ := AppendChecked(nil, raw, 0); (end == len(raw)) != json.Valid(raw) || end == len(raw) && !bytes.Equal(checked, got) {
			t.Fatalf("%q is %q, by AppendChecked %q, to %d", raw, got, checked, end)
		}
		if plain := bytes.IndexByte(got, '\\') < 0; json.Valid(raw) && plain && !Equal(raw, string(got)) || Equal(raw, string(got)+"x") || Equal(raw, "x"+string(got)) {
			t.Fatalf("%q is not told to be %q", raw, got)
		}
		var want string
		if utf8.Valid(raw) && json.Unmarshal(raw, &want) == nil && want != string(got) {
			t.Fatalf("%q is %q, want %q", raw, got, want)
		}
	})
}

// TestCheckString: a quote, an escape or a control byte at each place of a word, whatever
// is around it.
func TestCheckString(t *testing.T) {
	plain := []byte("ab\x7fcd é☃!#[] \u2028xyz,0123456789")
	for stop, length := range map[string]int{`"`: 1, `\n"`: 3, `\x"`: -1, "\x00": -1, "\x1f": -1, "\n": -1, "": -1} {
		for at := range len(plain) + 1 {
			for from := 0; from <= at; from++ {
				text := slices.Concat([]byte{'"'}, plain[from:at], []byte(stop), plain[at:])
				want := -1
				if length > 0 {
					want = 1 + at - from + length
				}
				if stop == `\n"` {
					text = slices.Concat([]byte{'"'}, plain[from:at], []byte(`\n`), plain[at:], []byte(`"`))
					want = len(text)
				}
				if got := CheckString(text, 0); got != want {
					t.Fatalf("%q: %d, want %d", text, got, want)
				}
			}
		}
	}
}

// TestSkipString at every place of a word, after every number of backslashes.
func TestSkipString(t *testing.T) {
	for length := range 20 {
		for slashes := range 6 {
			for at := range length + 1 {
				text := strings.Repeat("é", 10)[:length-length%2] + strings.Repeat("x", length%2)
				inner := text[:at] + strings.Repeat(`\\`, slashes) + `\"` + text[at:]
				line := []byte(`{"k":"` + inner + `","z":1}`)
				if got, escaped := SkipString(line, 5); got != 5+1+len(inner)+1 || !escaped {
					t.Fatalf("%s: %d, %t", line, got, escaped)
				}
			}
		}
	}
}

func TestNoAllocation(t *testing.T) {
	line := []byte(texts[len(texts)-3])
	buf := make([]byte, 0, 64)
	sum := 0
	if n := testing.AllocsPerRun(100, func() {
		if !Valid(line, 10) {
			t.Error("not valid")
		}
		c := Checker{MaxDepth: 10}
		for _, w := range [2]Walk{Members(line, 0), c.Members(line, 0)} {
			for w.Next() {
				var text []byte
				if line[w.Value.Start] == '"' {
					text, buf = Text(w.Value.Of(line), buf)
					sum += len(text)
				}
				if Equal(w.Name.Of(line), "msg") {
					sum++
				}
			}
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// All ways to write a number become one, which is the same number.
func TestDecimalAppendTo(t *testing.T) {
	for in, want := range map[string]string{
		"0": "0", "-0.000": "0", "0e9": "0", "1": "1", "1.0": "1", "10e-1": "1", "-0.50": "-0.5", "1e3": "1000", "100": "100", "0.1e-2": "0.001",
		"1e20": "100000000000000000000", "1e21": "1e+21", "123e20": "1.23e+22", "0.000001": "0.000001", "0.0000001": "1e-7", "-12.5e-9": "-1.25e-8",
		"9007199254740993": "9007199254740993", "1e400": "1e+400", "12345678901234567890.50": "12345678901234567890.5",
	} {
		d, ok := ParseDecimal([]byte(in))
		got := string(d.AppendTo(nil))
		if again, valid := ParseDecimal([]byte(got)); !ok || got != want || !valid || again.Compare(d) != 0 {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
}

package rollway

import (
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"unicode/utf8"
)

type rawMarshaler string

func (m rawMarshaler) MarshalJSON() ([]byte, error) { return []byte(m), nil }

// rawCases are JSON texts and what a line has of them.
var rawCases = []struct{ raw, want string }{
	{`{"a":1}`, `{"a":1}`},
	{" [ 1 , \n\"a b\" ] \r\n", `[1,"a b"]`},
	{`"é😀\n\u00e9"`, `"é😀\n\u00e9"`},
	{"\"a\xffb\xc3\"", "\"a\uFFFDb\uFFFD\""},
	{"{\"\xff\":\"\xed\xa0\x80\"}", "{\"\uFFFD\":\"\uFFFD\uFFFD\uFFFD\"}"},
	{`"\ud83d\ude00"`, `"\ud83d\ude00"`},
	{`"\ud83d"`, `"\ufffd"`},
	{`"\ud83d\ud83d\ude00x\uDE00"`, `"\ufffd\ud83d\ude00x\ufffd"`},
	{`"\ud83d\u0041\\ud83d"`, `"\ufffd\u0041\\ud83d"`},
	{`[1e400,-1E+999,1e-999,1.5e3,12345678901234567890]`, `["1e400","-1E+999",1e-999,1.5e3,12345678901234567890]`},
	{strings.Repeat("9", 400), `"` + strings.Repeat("9", 400) + `"`},
	{strings.Repeat("[", maxRawDepth) + strings.Repeat("]", maxRawDepth), strings.Repeat("[", maxRawDepth) + strings.Repeat("]", maxRawDepth)},
	{strings.Repeat("[", maxRawDepth+1) + strings.Repeat("]", maxRawDepth+1), `"!ERROR: JSON too deep"`},
	{`true`, `true`}, {`null`, `null`}, {`-0.0`, `-0.0`},
}

func TestRawJSON(t *testing.T) {
	l, b := newTestLogger(t, JSON{Layout: "attrs:"})
	for _, c := range rawCases {
		raw := json.RawMessage(c.raw)
		l.Info(t.Context(), "m", slog.Any("v", raw), slog.Any("p", &raw), slog.Any("m", rawMarshaler(c.raw)))
		want := `{"v":` + c.want + `,"p":` + c.want + `,"m":` + c.want + "}\n"
		if got := b.String(); got != want {
			t.Errorf("%q:\n got %swant %s", c.raw, got, want)
		}
		var tree any
		if err := json.Unmarshal(b.Bytes(), &tree); err != nil {
			t.Errorf("%q: %v", c.raw, err)
		}
		b.Reset()
	}
	for _, bad := range []string{"", "{", "{}{}", "nul", "'a'", "1,2", `{"a":1}}`, "\"\n\"", "NaN", "\ufeff{}"} {
		raw := json.RawMessage(bad)
		l.Info(t.Context(), "m", slog.Any("v", raw))
		if got := b.String(); !strings.HasPrefix(got, `{"v":"!ERROR: not JSON, `) {
			t.Errorf("%q: %s", bad, got)
		}
		b.Reset()
	}
	l.Info(t.Context(), "m", slog.Any("v", json.RawMessage(nil)), slog.Any("p", (*json.RawMessage)(nil)))
	if got, want := b.String(), `{"v":null,"p":null}`+"\n"; got != want {
		t.Errorf("got %swant %s", got, want)
	}
}

func TestJSONBytes(t *testing.T) {
	for format, want := range map[BytesFormat]string{
		BytesAuto:   `{"b":"aP8=","p":"aP8=","e":"","n":null}`,
		BytesBase64: `{"b":"aP8=","p":"aP8=","e":"","n":null}`,
		BytesHex:    `{"b":"68ff","p":"68ff","e":"","n":null}`,
		BytesText:   `{"b":"h` + "\uFFFD" + `","p":"h` + "\uFFFD" + `","e":"","n":null}`,
	} {
		l, b := newTestLogger(t, JSON{Bytes: format, Layout: "attrs:"})
		l.Info(t.Context(), "m", slog.Any("b", []byte("h\xff")), slog.Any("p", &[]byte{'h', 0xff}), slog.Any("e", []byte{}), slog.Any("n", []byte(nil)))
		if got := b.String(); got != want+"\n" {
			t.Errorf("%d: got %swant %s", format, got, want)
		}
	}
}

type rawMembers struct{ raw, bytes []byte }

func (m *rawMembers) AppendLog(o *Object) {
	o.Raw("raw", m.raw)
	o.Bytes("bytes", m.bytes)
	o.Raw("bad", m.bytes)
}

func TestRawMembers(t *testing.T) {
	l, b := newTestLogger(t, JSON{Layout: "attrs:", Bytes: BytesText})
	l.Info(t.Context(), "m", slog.Any("o", &rawMembers{[]byte(" [1, 2]"), []byte("x")}))
	if got, want := b.String(), `{"o":{"raw":[1,2],"bytes":"x","bad":"!ERROR: not JSON, 1 bytes"}}`+"\n"; got != want {
		t.Errorf("got %swant %s", got, want)
	}
}

// FuzzRawJSON: what encoding/json takes comes out as the same value, on one
// line, and again as itself; all else is said to be no JSON.
func FuzzRawJSON(f *testing.F) {
	for _, c := range rawCases {
		f.Add([]byte(c.raw))
	}
	f.Add([]byte(`{"a":[{}," \\",{"b":null}]}`))
	f.Add([]byte("{"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		got := appendRawJSON([]byte("x"), raw)[1:]
		if !json.Valid(got) || !utf8.Valid(got) || strings.ContainsAny(string(got), "\n\r\t") {
			t.Fatalf("%q became %q", raw, got)
		}
		if again := appendRawJSON(nil, got); string(again) != string(got) {
			t.Fatalf("%q became %q and that %q", raw, got, again)
		}
		var theirs, ours any
		if err := json.Unmarshal(got, &ours); err != nil {
			t.Fatalf("%q became %q: %v", raw, got, err)
		}
		if json.Unmarshal(raw, &theirs) != nil {
			return // no JSON, or a number that is no float64
		}
		if s, ok := ours.(string); ok && strings.HasPrefix(s, "!ERROR") {
			return
		}
		a, _ := json.Marshal(theirs)
		b, _ := json.Marshal(ours)
		if string(a) != string(b) && raw != nil {
			t.Fatalf("%q is %s, but became %q, which is %s", raw, a, got, b)
		}
	})
}

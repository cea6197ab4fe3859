package rollway

import (
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
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
	{strings.Repeat("[", 200) + strings.Repeat("]", 200), strings.Repeat("[", 200) + strings.Repeat("]", 200)},
	{strings.Repeat("[", 201) + strings.Repeat("]", 201), `"!ERROR: JSON too deep"`},
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
	o.Add(slog.Any("bytes", &m.bytes))
	o.Raw("bad", m.bytes)
}

func TestRawMembers(t *testing.T) {
	l, b := newTestLogger(t, JSON{Layout: "attrs:", Bytes: BytesText})
	l.Info(t.Context(), "m", slog.Any("o", &rawMembers{[]byte(" [1, 2]"), []byte("x")}))
	if got, want := b.String(), `{"o":{"raw":[1,2],"bytes":"x","bad":"!ERROR: not JSON, 1 bytes"}}`+"\n"; got != want {
		t.Errorf("got %swant %s", got, want)
	}
}

package remote

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"math"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"
)

func TestRecord(t *testing.T) {
	at := time.Date(2026, 5, 28, 12, 40, 0, 123456789, time.UTC)
	for _, c := range []struct {
		line  string
		time  time.Time
		level slog.Level
		has   bool
		msg   string
	}{
		{`{"time":"2026-05-28T12:40:00.123456789Z","level":"ERROR","msg":"failed"}`, at, slog.LevelError, true, "failed"},
		{` { "msg" : "a" , "level" : "warn" , "time" : "2026-05-28T14:40:00.123456789+02:00" } `, at, slog.LevelWarn, true, "a"},
		{`{"ts":1779972000.5,"level":"dpanic","message":"zap"}`, at.Truncate(time.Second).Add(time.Second / 2), 9, true, "zap"},
		{`{"ts":1779972000,"severity":"NOTICE","msg":"s"}`, at.Truncate(time.Second), 2, true, "s"},
		{`{"ts":1779972000123,"level":"warning"}`, at.Truncate(time.Millisecond), 4, true, ""},
		{`{"ts":1779972000123456}`, at.Truncate(time.Microsecond), 0, false, ""},
		{`{"timestamp":1779972000123456789,"level":"INFO+1"}`, at, 1, true, ""},
		{`{"@timestamp":"2026-05-28T12:40:00.123456789Z","level":30}`, at, 0, false, ""},
		{`{"time":"yesterday","ts":1779972000123456789,"level":"LOUD","lvl":"trace","msg":1,"message":"m"}`, at, -8, true, "m"},
		{`{"time":"0001-01-01T00:00:00Z","msg":"no time"}`, time.Time{}, 0, false, "no time"},
		{`{"time":"9999-01-01T00:00:00Z"}`, time.Time{}, 0, false, ""},
		{`{"time":-5}`, time.Time{}, 0, false, ""},
		{`{"time":1e300}`, time.Time{}, 0, false, ""},
	} {
		var r record
		r.read([]byte(c.line), true)
		if !r.object || !r.time.Equal(c.time) || r.level != c.level || r.hasLevel != c.has || string(r.msg) != c.msg {
			t.Errorf("%s: %+v", c.line, r)
		}
		if r.stamped != strings.Contains(c.line, "@") {
			t.Errorf("%s: stamped = %v", c.line, r.stamped)
		}
	}
}

func TestRecordFields(t *testing.T) {
	var r record
	r.read([]byte(`{"level":"INFO","msg":"m","service":"pay","msg":"second","attrs":{"a":1,"b":{"c":[1,{}]}},"error":null}`), true)
	var got []string
	for _, f := range r.fields {
		s := string(f.key) + "=" + string(f.value)
		if f.attr {
			s = "attrs." + s
		}
		got = append(got, s)
	}
	if want := `service="pay" msg="second" attrs.a=1 attrs.b={"c":[1,{}]} error=null`; strings.Join(got, " ") != want {
		t.Errorf("fields %q, want %q", got, want)
	}
}

func TestRecordAllocatesNothing(t *testing.T) {
	line := []byte(`{"time":"2026-05-28T12:40:00.123456789Z","level":"ERROR","msg":"failed","attrs":{"a":1,"b":"two"}}`)
	r := new(record)
	r.read(line, true)
	if n := testing.AllocsPerRun(100, func() { r.read(line, true) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

// FuzzRecord compares with encoding/json: the same texts are objects, and what
// was read of them is what they hold.
func FuzzRecord(f *testing.F) {
	for _, s := range []string{
		``, `{}`, `{`, `[]`, `"x"`, `plain text`, `{"a":1}x`, `{"a":1} `, `{"a":01}`, `{"a":-}`, `{"a":1.}`, `{"a":1e}`, `{"a":.5}`,
		`{"a":"\u12"}`, `{"a":"\x"}`, "{\"a\":\"\x01\"}", "{\"a\":\"\xff\"}", `{"a":[1,2,]}`, `{"a":tru}`, `{"a"}`, `{,}`, `{"a":1,}`,
		`{"time":"2026-05-28T12:40:00.123456789Z","level":"ERROR","msg":"fai\"led\u00e9\ud83d\ude00","attrs":{"k":[{"x":null}]}}`,
		`{"ts":1779972000.123,"level":"warning","message":"m"}`, `{"ts":-9223372036854775808}`, `{"ts":9223372036854775807}`, `{"ts":1e17}`,
		strings.Repeat(`{"a":`, 300) + `1` + strings.Repeat(`}`, 300), `{"a":` + strings.Repeat(`[`, 150) + strings.Repeat(`]`, 150) + `}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		var r record
		r.read(line, true)
		isObject := json.Valid(line) && bytes.HasPrefix(bytes.TrimLeft(line, " \t\r\n"), []byte("{"))
		if r.object && !isObject {
			t.Fatalf("%q was taken for an object", line)
		}
		if !r.object {
			if isObject && bytes.Count(line, []byte("["))+bytes.Count(line, []byte("{")) <= maxDepth {
				t.Fatalf("%q was not taken for an object", line)
			}
			if r.msg != nil || r.hasLevel || !r.time.IsZero() || len(r.fields) > 0 {
				t.Fatalf("%q is no object, and yet %+v", line, r)
			}
			return
		}
		if !r.time.IsZero() && (r.time.UnixNano() <= 0 || r.time.UnixNano() == math.MaxInt64) {
			t.Fatalf("%q: time %v does not fit", line, r.time)
		}
		if r.msg != nil && !json.Valid(append(append([]byte{'"'}, r.msg...), '"')) {
			t.Fatalf("%q: msg %q", line, r.msg)
		}
		for _, fd := range r.fields {
			if !json.Valid(fd.value) {
				t.Fatalf("%q: field %q = %q", line, fd.key, fd.value)
			}
		}
	})
}

// FuzzText: with raw the text is what encoding/json reads; without, it holds no
// control characters.
func FuzzText(f *testing.F) {
	for _, s := range []string{``, `a`, `a\n\t\"\\\/b`, `\u0000\u001f\u007f\u0085`, `\ud83d\ude00`, `\ud83d`, `\ud83dx`, `\ud83d\u0041`, "\xff\xc3\x28", "\u0085\x7f", `\`, `\u`, `\u1`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		raw := appendText(nil, []byte(s), true)
		var want string
		if json.Unmarshal([]byte(`"`+s+`"`), &want) == nil && string(raw) != want {
			t.Fatalf("%q became %q, want %q", s, raw, want)
		}
		text := appendText(nil, []byte(s), false)
		if !json.Valid([]byte(`"` + s + `"`)) {
			return
		}
		if i := bytes.IndexFunc(text, unicode.IsControl); i >= 0 || !utf8.Valid(text) {
			t.Fatalf("%q became %q", s, text)
		}
	})
}

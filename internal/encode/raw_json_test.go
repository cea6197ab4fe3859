package encode

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

// FuzzRawJSON: what encoding/json takes comes out as the same value, on one
// line, and again as itself; all else is said to be no JSON.
func FuzzRawJSON(f *testing.F) {
	for _, s := range []string{" [ 1 , \n\"a b\" ] \r\n", "\"a\xffb\xc3\"", `"\ud83d\ude00 \ud83d\u0041"`, `[1e400,-1E+999,12345678901234567890]`,
		strings.Repeat("[", maxRawDepth+1) + strings.Repeat("]", maxRawDepth+1)} {
		f.Add([]byte(s))
	}
	f.Add([]byte(`{"a":[{}," \\",{"b":null}]}`))
	f.Add([]byte("{"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		got := AppendRawJSON([]byte("x"), raw)[1:]
		if !json.Valid(got) || !utf8.Valid(got) || strings.ContainsAny(string(got), "\n\r\t") {
			t.Fatalf("%q became %q", raw, got)
		}
		if again := AppendRawJSON(nil, got); string(again) != string(got) {
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

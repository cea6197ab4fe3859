package jsonwalk

import (
	"encoding/json"
	"io"
	"strings"
	"testing"
)

// FuzzStream: a Stream reads what encoding/json reads.
func FuzzStream(f *testing.F) {
	for _, s := range []string{
		``, ` `, `{}`, `[]`, `{"a":[1,-0.5e+3,true,false,null,"x\u00e9\n\""],"b":{}}`, `[1,]`, `{"a":1,}`, `{,}`, `[,1]`, `{"a"}`, `{1:2}`, `01`, `1.`, `-`, `+1`, `tru`,
		`truex`, `"`, `"\`, `"\x"`, `"\u12g4"`, "\"\n\"", "\"\xff\"", `]`, `{]`, `[}`, ` [ { "a" : 1 } , 2 ] `, `1 2`, `{"a":1 "b":2}`, `[1 2]`, "\u00a01",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if len(s) > maxLiteral { // which limits numbers, and depth
			return
		}
		a := NewStream(strings.NewReader(s), 1<<20, 200)
		err := a.Skip()
		if err == nil {
			if _, end := a.next(); end != io.EOF {
				return // a second value
			}
		}
		if (err == nil) != json.Valid([]byte(s)) {
			t.Fatalf("%q: %v", s, err)
		}
	})
}

// Of a long string the beginning is kept, and no escape sequence is cut.
func TestStreamCutsStrings(t *testing.T) {
	for _, unit := range []string{"x", "é", `\n`, `\u00e9`, `\ud83d\ude00`, `\\`} {
		for offset := range 12 {
			raw := strings.Repeat("x", offset) + strings.Repeat(unit, maxKept)
			a := NewStream(strings.NewReader(`["`+raw+`",7]`), 1<<20, 200)
			var text string
			var n uint64
			i := 0
			err := a.Array(func() (err error) {
				if i++; i == 1 {
					text, err = a.Text()
				} else {
					n, _, err = a.Uint()
				}
				return err
			})
			if err != nil || n != 7 || len(a.buf) > maxKept+6 || len(text) < maxKept/6 || strings.Contains(text, `\u`) {
				t.Errorf("%d bytes and %q: %v, %d, %.20q…%q", offset, unit, err, n, text, text[max(0, len(text)-10):])
			}
		}
	}
}

package jsonwalk

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/rollway/rollway/internal/testkit"
)

// TestDense compares strings with many escapes, valid or not, with encoding/json.
func TestDense(t *testing.T) {
	parts := []string{`\"`, `\\`, `\/`, `\n`, `\u0041`, `\u00e9`, `\ud83d\ude00`, `\ufffd`, "a", "bc", "some text", "é", strings.Repeat("x", 61), "", "{", ":"}
	bad := []string{`\ud800`, `\ude00`, `\x`, `\u12`, "\n", "\x1f", `"`, `\`}
	r := rand.New(rand.NewPCG(1, 2))
	for range testkit.RaceRounds(t, 10_000, 200_000) {
		var b []byte
		n := r.IntN(40)
		fault := r.IntN(3) == 0
		for range n {
			b = append(b, parts[r.IntN(len(parts))]...)
			if fault && r.IntN(20) == 0 {
				b = append(b, bad[r.IntN(len(bad))]...)
			}
		}
		raw := append(append([]byte{'"'}, b...), '"')
		text := append(append([]byte("  "), raw...), strings.Repeat(`,"\u0041"`, r.IntN(20))...)
		end := CheckString(text, 2)
		if want := firstString(raw); want >= 0 && end != 2+want || want < 0 && end >= 0 && end <= 2+len(raw) {
			t.Fatalf("%s: string ends at %d, expected %d", text, end, 2+want)
		}
		checked, checkedEnd, exactly := AppendChecked([]byte("before"), text, 2)
		if checkedEnd != end {
			t.Fatalf("%s: ends at %d, by AppendChecked at %d", text, end, checkedEnd)
		}
		// What is after the text in its memory does not matter, nor that there is nothing.
		for _, tail := range []string{strings.Repeat(parts[r.IntN(len(parts))], 120), `"`, ""} {
			memory := append(bytes.Clone(text), tail...)[:len(text)]
			if tail == "" {
				memory = slices.Clip(memory)
			}
			again, end, exact := AppendChecked([]byte("before"), memory, 2)
			if !bytes.Equal(again, checked) || end != checkedEnd || exact != exactly {
				t.Fatalf("%s before %.20q: %q, %d, %v, otherwise %q, %d, %v", text, tail, again, end, exact, checked, checkedEnd, exactly)
			}
		}
		if end != 2+len(raw) {
			continue
		}
		var want string
		if err := json.Unmarshal(raw, &want); err != nil {
			t.Fatalf("%s: %v", raw, err)
		}
		got, exact := AppendExact([]byte("before"), b)
		if string(checked) != string(got) || exactly != exact {
			t.Fatalf("%s: %q, %v by AppendChecked, %q, %v otherwise", raw, checked, exactly, got, exact)
		}
		if string(got) != "before"+want || exact == (bytes.Contains(b, []byte(`\ud800`)) || bytes.Contains(bytes.ReplaceAll(b, []byte(`\ud83d\ude00`), nil), []byte(`\ude00`))) && !strings.Contains(string(b), `\\u`) {
			t.Fatalf("%s: %q, %v, expected %q", raw, got, exact, want)
		}
	}
}

// TestMasks compares vectors with words and bytes, where there are any.
func TestMasks(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 100_000 {
		var b [block]byte
		for i := range b {
			if b[i] = byte(r.Uint32()); r.IntN(3) == 0 {
				b[i] = "\\\"\x1f \x00[]#!\x80\xff\xa2\xdc"[r.IntN(13)]
			}
		}
		slashes, quotes, ctrls := masks(&b)
		if s, q, c := masksOf(&b); s != slashes || q != quotes || c != ctrls {
			t.Fatalf("%q: %x, %x and %x, by words %x, %x and %x", b, slashes, quotes, ctrls, s, q, c)
		}
		for i, c := range b {
			if slashes>>i&1 == 1 != (c == '\\') || quotes>>i&1 == 1 != (c == '"') || ctrls>>i&1 == 1 != (c < ' ') {
				t.Fatalf("%q: %x, %x and %x", b, slashes, quotes, ctrls)
			}
		}
		var from, out, each [beyond]byte
		copy(from[:], b[:])
		m := r.Uint64() & (r.Uint64() | r.Uint64())
		drop(&out, &from, m)
		dropEach(&each, &from, m)
		var want []byte
		for i, c := range b {
			if m>>i&1 == 0 {
				want = append(want, c)
			}
		}
		if !bytes.HasPrefix(out[:], want) || !bytes.HasPrefix(each[:], want) {
			t.Fatalf("%q without %x: %q, byte by byte %q", b, m, out[:len(want)], each[:len(want)])
		}
	}
}

// firstString returns the end of the string that raw begins with, or -1.
func firstString(raw []byte) int {
	for i := 1; i < len(raw); i++ {
		switch {
		case raw[i] == '"':
			if json.Valid(raw[:i+1]) {
				return i + 1
			}
			return -1
		case raw[i] == '\\':
			i++
		}
	}
	return -1
}

package query

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// TestFold checks each character: it is folded as strings.EqualFold does, a letter stays a
// letter, and no text becomes longer.
func TestFold(t *testing.T) {
	t.Parallel()
	for r := rune(0); r <= unicode.MaxRune; r++ {
		if !utf8.ValidRune(r) {
			continue
		}
		text := string(r)
		f := string(appendFolded(nil, []byte(text)))
		folded, size := utf8.DecodeRuneInString(f)
		if size != len(f) || size > len(text) || !strings.EqualFold(f, text) {
			t.Errorf("%q is folded to %q", r, f)
		}
		if isWordRune(r) != isWordRune(folded) && r != '\u0345' {
			t.Errorf("%q is a letter or not, folded it is the opposite", r)
		}
		for other := unicode.SimpleFold(r); other != r; other = unicode.SimpleFold(other) {
			if got := string(appendFolded(nil, []byte(string(other)))); got != f {
				t.Errorf("%q is folded to %q, %q to %q", r, f, other, got)
			}
		}
	}
	if got := string(appendFolded(nil, []byte("a\xffb\xe2\x82"))); got != "A\xffB\xe2\x82" {
		t.Errorf("what is no UTF-8 is folded to %q", got)
	}
}

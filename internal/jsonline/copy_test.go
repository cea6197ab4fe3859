package jsonline

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// checkCopy holds copyClean against a look at each byte.
func checkCopy(t *testing.T, s string) {
	t.Helper()
	const wall = "################"
	memory := []byte(wall + strings.Repeat("?", len(s)) + wall)
	clean := strings.IndexFunc(s, func(r rune) bool { return r < ' ' || r == '"' || r == '\\' || r > '~'+1 }) < 0
	if got := copyClean(memory[len(wall):len(wall)+len(s)], s); got != clean {
		t.Fatalf("copyClean(%q) = %t", s, got)
	}
	if clean && string(memory) != wall+s+wall || string(memory[:len(wall)]) != wall || string(memory[len(wall)+len(s):]) != wall {
		t.Fatalf("copyClean(%q) has written %q", s, memory)
	}
}

// TestCopyClean: a byte at each place of strings of all lengths up to some turns
// of the loops: every byte in some of them, those at the bounds in all.
func TestCopyClean(t *testing.T) {
	t.Logf("sixteen at a time: %t", hasCopyLong)
	for n := range 75 {
		b := []byte(strings.Repeat("a", n))
		checkCopy(t, string(b))
		for i := range n {
			for c := range 256 {
				if n%19 == 8 || strings.IndexByte("\x00\x1f !\"#[\\]~\x7f\x80\x9f\xa2\xdc\xff", byte(c)) >= 0 {
					b[i] = byte(c)
					checkCopy(t, string(b))
				}
			}
			b[i] = byte('a' + i%26)
		}
	}
}

// TestCopyCleanOfMany: more than one byte that is not clean in one word.
func TestCopyCleanOfMany(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 5_000 {
		b := make([]byte, rng.IntN(300))
		dirty := rng.IntN(4) // of 4: no byte up to most
		for i := range b {
			if b[i] = byte(' ' + rng.IntN(95)); rng.IntN(4) >= dirty && (b[i] == '"' || b[i] == '\\') {
				b[i] = 'x'
			}
			if dirty == 3 && rng.IntN(8) == 0 {
				b[i] = byte(rng.Uint32())
			}
		}
		checkCopy(t, string(b))
	}
}

// FuzzCopy holds AppendString against the loop that looks at each byte.
func FuzzCopy(f *testing.F) {
	for _, s := range []string{"", "ready", `say "hi"`, "a\\b", "\x00\x1f\x20\x7e\x7f\x80\xff", "zwölf Boxkämpfer jagen Viktor quer über den großen Sylter Deich", strings.Repeat("x", 31) + "\n"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		checkCopy(t, s)
		want := `"` + string(appendEscapedSlow(nil, s)) + `"`
		for _, dst := range into(len(s) + 2) {
			before := string(dst)
			if got := string(AppendString(dst, s)); got != before+want {
				t.Errorf("AppendString(%q, %q) = %q", before, s, got)
			}
			if got := string(AppendKey(dst[:0], s)); got != want+":" {
				t.Errorf("AppendKey(%q) = %q", s, got)
			}
		}
	})
}

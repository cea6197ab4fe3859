package linecount

import "testing"

func TestOf(t *testing.T) {
	for in, want := range map[string]uint64{"": 0, "\n": 1, "a": 1, "a\n": 1, "a\nb": 2, "\n\n": 2, "a\n\nb\n": 3} {
		if got := Of([]byte(in)); got != want {
			t.Errorf("%q: %d, want %d", in, got, want)
		}
	}
}

package main

import (
	"strings"
	"testing"

	"github.com/rollway/rollway/internal/encode"
)

// Whatever pieces text comes in, a terminal gets none of what controls it, and the rest as
// it is.
func TestAppendEscaped(t *testing.T) {
	for _, tt := range []struct {
		text, want string
		colors     bool
	}{
		{"plain é 漢 🙂\n\tx", "plain é 漢 🙂\n\tx", false},
		{"\x00\x07\b\r\x1b[31m\x7f", `\u0000\u0007\u0008\u000d\u001b[31m\u007f`, false},
		{"\u0080\u009b31m\u009f\u00a0", `\u0080\u009b31m\u009f` + "\u00a0", false},
		{"\x80\x9b31m\x9f\xa0\xff", `\x80\x9b31m\x9f` + "\xa0\xff", false},
		{"\u202a\u202e\u2066\u2069\u200e\u200f\u061c\u2029", `\u202a\u202e\u2066\u2069\u200e\u200f\u061c` + "\u2029", false},
		{"\xe2\x80\xe2\x80\xae", "\xe2" + `\x80\u202e`, false},
		{encode.ColorAlarm + "PANIC" + encode.ColorReset + " \x1b]0;t\x07\x1b[2J\x1b[12;34;56;78m", encode.ColorAlarm + "PANIC" + encode.ColorReset + ` \u001b]0;t\u0007\u001b[2J\u001b[12;34;56;78m`, true},
	} {
		whole, n := appendEscaped(nil, []byte(tt.text), tt.colors)
		if string(whole) != tt.want || n != len(tt.text) {
			t.Errorf("%q: %q, want %q", tt.text, whole, tt.want)
		}
		for at := range len(tt.text) {
			first, n := appendEscaped(nil, []byte(tt.text[:at]), tt.colors)
			rest, _ := appendEscaped(nil, []byte(tt.text[n:]), tt.colors)
			if string(first)+string(rest) != tt.want {
				t.Errorf("%q in two pieces, %d and the rest: %q and %q", tt.text, at, first, rest)
			}
		}
	}
}

// Into a file or a pipe bytes go as they are.
func TestStreamOfAFile(t *testing.T) {
	path := t.TempDir() + "/f"
	writeFile(t, path, hostileText+"\n")
	if r := cli(t, "", "cat", path); r.stdout != hostileText+"\n" {
		t.Errorf("cat: %q", r.stdout)
	}
	if r := cli(t, "", "cat", hostileText); !strings.Contains(r.stderr, "\x9b") {
		t.Errorf("error of cat: %q", r.stderr)
	}
}

// hostileText has one of everything that a terminal must not get.
const hostileText = "a\x1b]0;title\x07b\x1b[2Jc\u009b31md\x9b31me\x7ff\u202eg\u2066h\u200fi\u061cj\rk\x08l"

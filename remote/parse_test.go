package remote

import (
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/rollway/rollway/line"
)

func FuzzParseTally(f *testing.F) {
	for _, s := range []string{
		``, `{}`, `[]`, `null`, `{"accepted":1}`, `{"accepted":-1}`, `{"accepted":1e3}`, `{"accepted":null}`,
		`{"accepted":2,"rejected":[{"index":0,"line":1,"reason":"json","detail":"not JSON"}],"rejected_total":1}`,
		`{"rejected":null}`, `{"rejected":{}}`, `{"rejected":[1]}`, `{"rejected":[{}`, `{"rejected":[{"line":-1}]}`,
		`{"rejected":[],"rejected_total":18446744073709551615}`, `{"error":[[[{"a":1}]]],"accepted":3}trailing`,
	} {
		f.Add(s, uint64(3))
	}
	f.Fuzz(func(t *testing.T, s string, lines uint64) {
		tal, err := parseTally(strings.NewReader(s))
		if err != nil && tal != (tally{}) {
			t.Fatalf("%q: not a tally, and yet %+v", s, tal)
		}
		if n := tal.refused(lines); n > lines {
			t.Fatalf("%q: %d of %d lines refused", s, n, lines)
		}
		if tal.rejected == 0 && (tal.first != "" || tal.firstLine != 0) {
			t.Fatalf("%q: a first refused line and none refused: %+v", s, tal)
		}
	})
}

func FuzzParseRetryAfter(f *testing.F) {
	now := time.Date(2026, 11, 21, 4, 0, 0, 0, time.UTC)
	for _, s := range []string{"", "0", "7", "-1", "1.5", "99999999999999999999", "4294967295", "soon",
		now.Add(time.Minute).Format(http.TimeFormat), now.Add(-time.Minute).Format(http.TimeFormat),
		"Saturday, 21-Nov-26 04:01:00 GMT", "Sat Nov 21 04:01:00 2026"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if d := parseRetryAfter(s, now); d < 0 || d > maxRetryAfter {
			t.Fatalf("%q: %v", s, d)
		}
	})
}

func TestParseRetryAfter(t *testing.T) {
	now := time.Date(2026, 11, 21, 4, 0, 0, 0, time.UTC)
	for s, want := range map[string]time.Duration{
		"":                                 0,
		"soon":                             0,
		"-3":                               0,
		"0":                                0,
		"120":                              2 * time.Minute,
		"4294967295":                       maxRetryAfter,
		"4294967296":                       maxRetryAfter,
		"99999999999":                      maxRetryAfter,
		"18446744073709551616":             maxRetryAfter,
		strings.Repeat("9", 1000):          maxRetryAfter,
		strings.Repeat("0", 1000) + "7":    7 * time.Second,
		" 7\t":                             7 * time.Second,
		"1.5":                              0,
		"30, 60":                           0,
		"+5":                               0,
		"5s":                               0,
		"7 8":                              0,
		"\u0665":                           0, // a digit, but not of ASCII
		"3600":                             time.Hour,
		"3601":                             time.Hour,
		"Saturday, 21-Nov-26 04:01:00 GMT": time.Minute,
		"Sat Nov 21 04:01:00 2026":         time.Minute,
		" Sat, 21 Nov 2026 04:01:00 GMT ":  time.Minute,
		"Sat, 21 Nov 1926 04:01:00 GMT":    0,
		"Sat, 21 Nov 2026 04:01:00 GMT":    time.Minute,
		"Sat, 21 Nov 2026 03:59:00 GMT":    0,
		"Sun, 22 Nov 2026 04:00:00 GMT":    maxRetryAfter,
	} {
		if got := parseRetryAfter(s, now); got != want {
			t.Errorf("parseRetryAfter(%q) = %v, want %v", s, got, want)
		}
	}
	if got := retryAfterOf(http.Header{"Retry-After": {"3", "9", "soon"}}); got != 9*time.Second {
		t.Errorf("of several the wait is %v, want the longest", got)
	}
}

// FuzzFirstPiece: cutting p again and again gives p back, in whole lines, none
// longer than the limit that holds more than one line.
func FuzzFirstPiece(f *testing.F) {
	f.Add("a\nbb\nccc\n", 4)
	f.Add("\n\n\n", 1)
	f.Add("long line without end", 3)
	f.Add("a\n", 0)
	f.Fuzz(func(t *testing.T, p string, limit int) {
		p += "\n"
		limit = max(limit, 0)
		joined := ""
		lines := uint64(0)
		for rest := []byte(p); len(rest) > 0; {
			piece := firstPiece(rest, limit)
			n := line.Count(piece)
			if wholeLines(piece) != len(piece) || n == 0 || len(piece) > limit && n > 1 {
				t.Fatalf("limit %d: piece %q of %q", limit, piece, rest)
			}
			joined += string(piece)
			lines += n
			rest = rest[len(piece):]
		}
		if joined != p || lines != line.Count([]byte(p)) {
			t.Fatalf("%q became %q, %d lines", p, joined, lines)
		}
	})
}

// A program may have no arguments at all, not even its name.
func TestDefaultsWithoutArguments(t *testing.T) {
	defer func(args []string) { os.Args = args }(os.Args)
	os.Args = nil
	for _, url := range []string{"syslog+udp://127.0.0.1:514", "loki+http://127.0.0.1:3100"} {
		w, err := Open(url, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	}
}

package enrich

import (
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

var exprs = []string{
	`\d{4}`, `\b\d{13,16}\b`, `\b(?:\d[ -]?){12,15}\d\b`, `[\w.+-]+@[\w-]+\.[\w.]+`, `(?i)password=\S+`, `\bfoo`, `\Bfoo`, `^a|b`, `(?m)^a+$`,
	`é+`, `(?i)k`, `a.c`, `(?s)a.c`, `x|yz`, `(a|ab)(c|bcd)`, `a+?`, `[^a]{2}`, `\w+\b`, `(?:)a`, `a$`, `(?i)ſ`, `\x{10FFFF}`, `a(?:bc)?d{2,}e*`,
}

// FuzzMatch compares the search in steps, and the look that saves it, with what
// package regexp says of the whole.
func FuzzMatch(f *testing.F) {
	for _, text := range []string{
		"", "1234 5678", "4111 1111 1111 1111, 4111-1111-1111-1111", "a@b.c d@e.f", "Password=x PASSWORD=y", "foofoo foo", "aaa\naaa\n",
		"éé\u212a", "k", "a\nc abc", "abcd", "ſs", "\U0010FFFF", "abcdde addd",
	} {
		f.Add(text)
	}
	var all []*matcher
	for _, expr := range exprs {
		m, err := newMatcher(expr)
		if err != nil {
			f.Fatal(expr, err)
		}
		all = append(all, m)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if !utf8.ValidString(text) {
			return
		}
		for i, m := range all {
			want := m.re.FindAllStringIndex(text, -1)
			if m.in([]byte(text)) != (want != nil) {
				t.Fatalf("%s in %q: %v, want %v", exprs[i], text, m.in([]byte(text)), want)
			}
			pos := 0
			for _, span := range want {
				at, to := m.next([]byte(text), pos)
				if at != span[0] || to != span[1] {
					t.Fatalf("%s in %q from %d: %d to %d, want %v", exprs[i], text, pos, at, to, want)
				}
				pos = to
			}
			if at, to := m.next([]byte(text), pos); at >= 0 {
				t.Fatalf("%s in %q from %d: %d to %d, want no more", exprs[i], text, pos, at, to)
			}
		}
	})
}

func TestLookAtBytes(t *testing.T) {
	for _, tc := range []struct {
		expr, text string
		may        bool
	}{
		{`\d{13,16}`, "status 200 in 123456789012 steps", false},
		{`\d{13,16}`, "x1234567890123", true},
		{`\S+@\S+`, "nobody at home", false},
		{`(?i)secret`, "SECRE T", false},
		{`(?i)secret`, "my SECRET", true},
	} {
		m, err := newMatcher(tc.expr)
		if err != nil {
			t.Fatal(err)
		}
		if got := m.may([]byte(tc.text)); got != tc.may {
			t.Errorf("%s in %q: %v", tc.expr, tc.text, got)
		}
	}
}

// TestTimeIsLinear: expressions that take other engines for ever take four times
// as long for a text four times as long, with room for a busy machine.
func TestTimeIsLinear(t *testing.T) {
	for _, expr := range []string{`(a+)+$`, `(a|a)*b`, `(.*)*x`, `a?a?a?a?a?a?a?a?a?a?aaaaaaaaaa`} {
		m, err := newMatcher("(?:" + expr + ")z")
		if err != nil {
			t.Fatal(err)
		}
		cost := func(n int) time.Duration {
			text := []byte(strings.Repeat("a", n) + "z" + strings.Repeat("a", n))
			best := time.Hour
			for range 5 {
				start := time.Now()
				m.re.Match(text)
				best = min(best, time.Since(start))
			}
			return best
		}
		short, long := cost(20_000), cost(80_000)
		for round := 0; round < 20 && long > 12*short; round++ {
			short, long = max(short, cost(20_000)), min(long, cost(80_000))
		}
		if long > 12*short {
			t.Errorf("%s: %v for 20,000 bytes, %v for 80,000", expr, short, long)
		}
	}
}

func TestGlob(t *testing.T) {
	for _, tc := range []struct {
		key, path string
		is        bool
	}{
		{"a", "a", true}, {"A.b", "a.b", true}, {"a", "a.b", false}, {"a.*", "a.b", true}, {"a.*", "a.b.c", false}, {"a.**", "a.b.c", true},
		{"**.c", "c", true}, {"**.c", "a.b.c", true}, {"**.c", "a.bc", false}, {"*.c", "c", false}, {"a*z", "az", true}, {"a*z", "a.z", false}, {"a**z", "a.b.z", true},
		{"a.**.c", "a.c", true}, {"a.**.c", "a.b.b.c", true}, {"a.**.c", "ac", false}, {"*a*b*", "xaybz", true}, {"*a*b*", "xbya", false},
		{"**.x*.y", "a.xb.b.xc.y", true}, {"**x*y", "x.xay", true}, {"**.pass*", "a.b.password", true},
	} {
		keys, err := newKeys(nil, tc.key, false)
		if err != nil {
			t.Fatal(err)
		}
		r := rule{keys: keys}
		if got := r.selects([]byte(tc.path), true); got != tc.is {
			t.Errorf("%s for %s: %v", tc.key, tc.path, got)
		}
		// Whatever is selected is reached from above.
		for i := range tc.path {
			if tc.is && tc.path[i] == '.' && !r.leads([]byte(tc.path[:i+1])) {
				t.Errorf("%s does not lead to %s by %s", tc.key, tc.path, tc.path[:i+1])
			}
		}
	}
}

// A value may be in a slot though it came under another name. Under a name that is
// rarely a slot's that is so for secrets alone.
func TestKeysOfSecondNames(t *testing.T) {
	for _, tc := range []struct {
		key, path  string
		is, secret bool
	}{
		{"_msg", "msg", true, true}, {"@mt", "msg", false, true}, {"fields.message", "msg", true, true}, {"event", "msg", false, true}, {"event", "event", true, true},
		{"name", "logger", false, true}, {"logger_name", "logger", true, true}, {"log.logger", "logger", true, true}, {"trace", "trace_id", false, false}, {"trace.id", "trace_id", true, true},
		{"levelname", "level", false, false}, {"datetime", "time", false, false}, {"nothing", "msg", false, false},
	} {
		for secret, want := range map[bool]bool{false: tc.is, true: tc.secret} {
			keys, err := newKeys(nil, tc.key, secret)
			if err != nil {
				t.Fatal(err)
			}
			r := rule{keys: keys}
			if got := r.selects([]byte(tc.path), false) || r.selects([]byte(tc.path), true); got != want {
				t.Errorf("%s for %s, secret %t: %v", tc.key, tc.path, secret, got)
			}
		}
	}
}

// FuzzGlob compares with a regular expression.
func FuzzGlob(f *testing.F) {
	f.Add("a.*b**c", "a.xb.y.c")
	f.Add("**.*a*.b", "x.cad.b")
	f.Fuzz(func(t *testing.T, pattern, path string) {
		if len(pattern) > 12 || len(path) > 30 || strings.Contains(pattern, "***") || !utf8.ValidString(pattern) || !utf8.ValidString(path) {
			return
		}
		expr := strings.ReplaceAll(regexp.QuoteMeta(pattern), `\*\*`, `(?s:.*)`)
		expr = "^" + strings.ReplaceAll(expr, `\*`, `[^.]*`) + "$"
		if got, want := glob(pattern, []byte(path), false), regexp.MustCompile(expr).MatchString(path); got != want {
			t.Fatalf("%q for %q: %v, want %v", pattern, path, got, want)
		}
	})
}

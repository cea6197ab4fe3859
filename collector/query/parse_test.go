package query

import (
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/rollway/rollway/internal/levels"
)

var update = flag.Bool("update", false, "write the golden files")

// testNow is the clock of the tests.
var testNow = time.Date(2026, 5, 28, 13, 0, 0, 500_000_000, time.UTC)

func mustParse(t testing.TB, expr string) *Query {
	t.Helper()
	q, err := parseAt(expr, testNow)
	if err != nil {
		t.Fatal(err)
	}
	return q
}

func TestNormalForm(t *testing.T) {
	for _, c := range []struct{ expr, want string }{
		{"", ""},
		{" \t\r\n", ""},
		{"charge", `"charge"`},
		{`"charge failed"`, `"charge failed"`},
		{"500", `"500"`},
		{"10.0.0.1:8080", `"10.0.0.1:8080"`},
		{"don't", `"don't"`},
		{"hello!", `"hello!"`},
		{"nOt", `"nOt"`},
		{`"and"`, `"and"`},
		{`re"a\"\d" b!=~c+ -re"d"`, `re"a\"\d" b!=~"c+" -re"d"`},
		{`i"Abc" -w"a b" wi"É" i"1-2" iw"1"`, `i"Abc" -w"a b" iw"É" "1-2" w"1"`},
		{`a=i"X" b!=i"x" c~w"x" d!~iw"x" e=i"5" e~i"5"`, `a=i"X" b!=i"x" c~w"x" d!~iw"x" e="5" e~"5"`},
		{`i a=i i=w`, `"i" a=i i=w`},
		{`level=i"Warn"`, `level=WARN`},
		{`a in (b,"c d", 5 , "5",i"X" ,/p*, 1..2, "x"..<"y", 10.0.0.0/8, "a..b", "/x")`, `a in (b, "c d", 5, "5", i"X", /p*, 1..2, "x"..<"y", 10.0.0.0/8, "a..b", "/x")`},
		{`a in (b)`, `a=b`}, {`a not in(b)`, `a!=b`}, {`a NOT IN (b, c)`, `a not in (b, c)`}, {`not a not in (b, c)`, `a in (b, c)`}, {`-a in (b, c)`, `a not in (b, c)`},
		{`a in 1..<2.50 b`, `a in 1..<2.50 "b"`}, {`a not in x..y`, `a not in ("x".."y")`}, {`a in (x..y)`, `a in ("x".."y")`}, {`a in ("1".."2")`, `a in ("1".."2")`}, {`a in -5..-1`, `a in -5..-1`},
		{`"in" in (in, not)`, `in in (in, "not")`}, {`a in b`, `"a" "in" "b"`}, {`a not in b`, `"a" -"in" "b"`}, {`a in`, `"a" "in"`}, {`a not` + ` in or b`, `"a" -"in" or "b"`}, {`in (a or b)`, `"in" ("a" or "b")`},
		{`a in 10.0.0.0/8 or b not in fe80::/10`, `a in 10.0.0.0/8 or b not in fe80::/10`}, {`a in ::ffff:10.0.0.0/104`, `a in 10.0.0.0/8`}, {`a in ("10.0.0.0/8", b)`, `a in ("10.0.0.0/8", b)`},
		{`level in (warn, err)`, `level=WARN or level=ERROR`}, {`b level not in (warn, err)`, `"b" not (level=WARN or level=ERROR)`}, {`level in warn..<8`, `level>=WARN level<ERROR`},
		{"time in 2026-05-28..2026-05-29", "time>=2026-05-28T00:00:00Z time<=2026-05-29T23:59:59.999999999Z"}, {"time in 1h..now", "time>=2026-05-28T12:00:00.5Z time<=2026-05-28T13:00:00.5Z"},
		{"level>=warn", "level>=WARN"},
		{"level >= warning", "level>=WARN"},
		{"level=err", "level=ERROR"},
		{"level>warn+1", "level>WARN+1"},
		{"level<=-4", "level<=DEBUG"},
		{"level=5", "level=WARN+1"},
		{"level<-20", "level<TRACE-12"},
		{"level=*", "level=*"},
		{"level!=*", "level!=*"},
		{"attrs.level=x", "attrs.level=x"},
		{"attrs.customer_id=x", "customer_id=x"},
		{"attrs.error.kind=x", "attrs.error.kind=x"},
		{"error.kind=x", "error.kind=x"},
		{"attrs=*", "attrs=*"},
		{"attrs.attrs=*", "attrs.attrs=*"},
		{"attrs.attrs.x=*", "attrs.attrs.x=*"},
		{`"user id"=5`, `"user id"=5`},
		{`"not"=5`, `"not"=5`},
		{`a="5"`, `a="5"`},
		{`a=5`, `a=5`},
		{`a=-0.50e+3`, `a=-0.50e+3`},
		{`a=""`, `a=""`},
		{`a="x"`, `a=x`},
		{`a="or"`, `a="or"`},
		{`a=/api/v1?x=<y>`, `a="/api/v1?x=<y>"`},
		{`path=/api/*`, `path=/api/*`},
		{`path!=/api/*`, `path!=/api/*`},
		{`path="/api/*"`, `path="/api/*"`},
		{`msg~timeout`, `msg~timeout`},
		{`msg!~"time out"`, `msg!~"time out"`},
		{`msg~"\u00e9\ud83d\ude00\x41\U0001F600\/\a\v"`, `msg~"é😀A😀/\u0007\u000b"`},
		{"a b and c", `"a" "b" "c"`},
		{"a or b c", `"a" or "b" "c"`},
		{"(a or b) c", `("a" or "b") "c"`},
		{"((a)) ((b c))", `"a" "b" "c"`},
		{"a or (b or c)", `"a" or "b" or "c"`},
		{"NOT a OR -b AND c", `-"a" or -"b" "c"`},
		{"not not a", `"a"`},
		{"--a", `"a"`},
		{"-(a b)", `not ("a" "b")`},
		{"not(a or b)", `not ("a" or "b")`},
		{"not a=1", "a!=1"},
		{"not a!=1", "a=1"},
		{"-a>1", "not a>1"},
		{"x=-5", "x=-5"},
		{"time>=-15m", "time>=2026-05-28T12:45:00.5Z"},
		{`time<"1h ago"`, "time<2026-05-28T12:00:00.5Z"},
		{"time=2026-05-28", "time>=2026-05-28T00:00:00Z time<=2026-05-28T23:59:59.999999999Z"},
		{"time!=2026-05-28", "not (time>=2026-05-28T00:00:00Z time<=2026-05-28T23:59:59.999999999Z)"},
		{`time="2026-05-28 12:40"`, "time>=2026-05-28T12:40:00Z time<=2026-05-28T12:40:59.999999999Z"},
		{"time=2026-05-28T12:40:00.000Z", "time=2026-05-28T12:40:00.000000000Z"},
		{"time>2026-05-28T14:40:00+02:00", "time>2026-05-28T12:40:00Z"},
		{"time=2026-05-28T12:4*", "time=2026-05-28T12:4*"},
		{`time~"T12:"`, "time~T12:"},
		{"time>0000-01-01T00:00:00+05:00", "time>0000-01-01T00:00:00Z"},
	} {
		q, err := parseAt(c.expr, testNow)
		if err != nil {
			t.Errorf("Parse(%q): %v", c.expr, err)
			continue
		}
		got := q.String()
		if got != c.want {
			t.Errorf("Parse(%q) prints\n %s, want\n %s", c.expr, got, c.want)
		}
		again, err := parseAt(got, testNow)
		if err != nil {
			t.Errorf("normal form of %q: %v", c.expr, err)
		} else if again.String() != got {
			t.Errorf("normal form %s prints %s", got, again)
		}
	}
}

// TestSyntaxErrors holds the text of every error in one golden file.
func TestSyntaxErrors(t *testing.T) {
	exprs := []string{
		"(", ")", "()", "(a", "a)", "a or", "or a", "a and or b", "and", "not", "- a", "-",
		"level>=", "level>= )", "level>=loud", "level~warn", "level=warn*", "level=4.5", "level>=30",
		"level==warn", "level=>warn", "a=<5", "a=and", "=5", `""`, `""=5`, `msg~""`,
		"level:warn", "a && b", "a || b", "!a", "'a b'", "msg='a b'", "“a”", "timeout*", "*", "a=*b", "a=b*c", "a>b*", "msg~b*",
		"user*=5", `"abc`, `msg="abc\q"`, `"\ud800"`, `"\u12"`, `"\xff"`, "\"abc\\", `a=foo"bar"`, `"foo"bar`, "main()", "a\x00b", "a\xffb",
		`level=~"a"`, `re"("`, `re""`, `a=~`, `a=~""`, `re"x{1000}y{1000}"`, `re"abc`, `re"a"b`, `a=~"x{500}" or b!=~"y{600}"`,
		`i""`, `w"a`, `i"a"b`, `x"a"`, `a=w"b"`, `a>i"b"`, `i"a"=5`, `a=~i"b"`, strings.Repeat(`w"a" `, MaxScans+1),
		`a in (`, `a in ()`, `a in (b`, `a in (b c)`, `a in (b or c)`, `a in (b,`, `a in (b,)`, `a in (*)`, `a in (b*c, d)`, `a in (w"b", c)`, `"" in (a)`, `a* in (b)`, `i"a" in (b)`, `level in (loud, warn)`, `time in (soon)`,
		`a in 1..`, `a in ..2`, `a in 2..1`, `a in 1..<1`, `a in 1..b`, `a in ("b"..2)`, `a in 1..2*`, `a in (i"a"..b)`, `a in 10.0.0.1..10.0.0.9`, `level in error..warn`, `time in now..1h`, `a in 1..2,3`,
		`a in 10.0.0.0/33`, `a in (10.0.0.1/8)`, `a in fe80::1%eth0/64`, `a in (` + strings.Repeat("b,", MaxTerms) + "b)",
		"time>=soon", `time>="1 fortnight ago"`, "time=5", "time=12:40",
		"é level>=loud",
		strings.Repeat("a ", 600), strings.Repeat("(", 101) + "a", strings.Repeat("-", 101) + "a",
		strings.Repeat("x", MaxLength+1), strings.Repeat("n", MaxName+1) + "=5",
		strings.Repeat("word ", 30) + "level>=loud " + strings.Repeat("word ", 30),
	}
	var got strings.Builder
	for _, expr := range exprs {
		_, err := parseAt(expr, testNow)
		var syntax *SyntaxError
		if !errors.As(err, &syntax) {
			t.Errorf("Parse(%.40q): %v, want a *SyntaxError", expr, err)
			continue
		}
		if syntax.Column < 1 || syntax.Found == "" || syntax.Expected == "" {
			t.Errorf("Parse(%.40q): incomplete error %+v", expr, syntax)
		}
		fmt.Fprintf(&got, "%s\n\n", err)
	}
	const name = "testdata/errors.golden"
	if *update {
		if err := os.WriteFile(name, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if got.String() != string(want) {
		t.Errorf("errors differ from %s (-update writes it):\n%s", name, got.String())
	}
}

// TestLevelNames checks that the names mean what they mean on input.
func TestLevelNames(t *testing.T) {
	for _, name := range []string{"trace", "verbose", "debug", "info", "information", "notice", "warn", "warning", "error", "err", "panic", "fatal", "critical", "crit", "alert", "emergency", "emerg", "WARN+1", "TRACE-3"} {
		got, ok := parseLevel(name)
		want, known := levels.ParseAny([]byte(name))
		if !ok || !known || got != want {
			t.Errorf("%s is %v, on input %v", name, got, want)
		}
	}
}

func TestLimitsHold(t *testing.T) {
	mustParse(t, strings.Repeat("a ", MaxTerms))
	mustParse(t, strings.Repeat("(", MaxDepth)+"a"+strings.Repeat(")", MaxDepth))
	mustParse(t, strings.Repeat("x", MaxLength))
	mustParse(t, strings.Repeat("n", MaxName)+"=5")
}

func TestParseTime(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"2026-05-28T12:40:00Z", "2026-05-28T12:40:00Z"},
		{"2026-05-28t12:40:00.25z", "2026-05-28T12:40:00.25Z"},
		{"2026-05-28T12:40:00+02:00", "2026-05-28T10:40:00Z"},
		{"2026-05-28 12:40:07", "2026-05-28T12:40:07Z"},
		{"2026-05-28 12:40:07.5", "2026-05-28T12:40:07.5Z"},
		{"2026-05-28 12:40", "2026-05-28T12:40:00Z"},
		{"2026-05-28T12:40+01:00", "2026-05-28T11:40:00Z"},
		{" 2026-05-28 ", "2026-05-28T00:00:00Z"},
		{"now", "2026-05-28T13:00:00.5Z"},
		{"Today", "2026-05-28T00:00:00Z"},
		{"yesterday", "2026-05-27T00:00:00Z"},
		{"15m", "2026-05-28T12:45:00.5Z"},
		{"-15m", "2026-05-28T12:45:00.5Z"},
		{"1h ago", "2026-05-28T12:00:00.5Z"},
		{"1.5h", "2026-05-28T11:30:00.5Z"},
		{"1d12h", "2026-05-27T01:00:00.5Z"},
		{"2w", "2026-05-14T13:00:00.5Z"},
		{"500ms", "2026-05-28T13:00:00Z"},
	} {
		got, err := ParseTime(c.in, testNow)
		if err != nil {
			t.Errorf("ParseTime(%q): %v", c.in, err)
		} else if s := got.Format(time.RFC3339Nano); s != c.want {
			t.Errorf("ParseTime(%q) = %s, want %s", c.in, s, c.want)
		}
	}
	for _, in := range []string{"", "-", "ago", "h", "15", "15x", "1h 5m", "+5m", "2026-13-01", "2026-05-28 25:00", "1..5h", "99999999w", "2026-05-28T12"} {
		if got, err := ParseTime(in, testNow); err == nil {
			t.Errorf("ParseTime(%q) = %v, want an error", in, got)
		} else if !strings.Contains(err.Error(), "expected a time") {
			t.Errorf("ParseTime(%q): %v", in, err)
		}
	}
}

func TestTimeRange(t *testing.T) {
	const lo, hi = math.MinInt64, math.MaxInt64
	at := func(s string) int64 {
		v, err := ParseTime(s, testNow)
		if err != nil {
			t.Fatal(err)
		}
		return v.UnixNano()
	}
	for _, c := range []struct {
		expr     string
		min, max int64
	}{
		{"", lo, hi},
		{"charge level>=warn", lo, hi},
		{"time>=2026-05-28", at("2026-05-28"), hi},
		{"time>2026-05-28", at("2026-05-28") + 1, hi},
		{"time<2026-05-28", lo, at("2026-05-28") - 1},
		{"time<=2026-05-28 charge", lo, at("2026-05-28")},
		{"time=2026-05-28", at("2026-05-28"), at("2026-05-29") - 1},
		{"time>=2026-05-01 time<2026-05-02 or time>=2026-05-10 time<=2026-05-11", at("2026-05-01"), at("2026-05-11")},
		{"time>=2026-05-01 or charge", lo, hi},
		{"not time<2026-05-28", lo, hi},
		{"-time>=2026-05-28 time>=2026-05-27", at("2026-05-27"), hi},
		{"time>=9000-01-01", hi, hi},
		{"time<9000-01-01", lo, hi},
		{"time>1000-01-01", lo, hi},
		{"time=2026-05-28T00:00:00.0Z", at("2026-05-28"), at("2026-05-28")},
		{"(time<2026-05-01 time>2026-05-02) or time=2026-05-05", at("2026-05-05"), at("2026-05-06") - 1},
	} {
		gotMin, gotMax := mustParse(t, c.expr).TimeRange()
		if gotMin != c.min || gotMax != c.max {
			t.Errorf("%q: %d, %d, want %d, %d", c.expr, gotMin, gotMax, c.min, c.max)
		}
	}
	if lo, hi := mustParse(t, "time<2026-05-01 time>2026-05-02").TimeRange(); lo <= hi {
		t.Errorf("a contradiction has the range %d, %d", lo, hi)
	}
}

func TestWithin(t *testing.T) {
	later := testNow.Add(time.Hour)
	q := mustParse(t, "a or b").within(&testNow, &later)
	const want = `("a" or "b") time>=2026-05-28T13:00:00.5Z time<2026-05-28T14:00:00.5Z`
	if q.String() != want {
		t.Errorf("got %s, want %s", q, want)
	}
	if q := (&Query{}).within(nil, nil); q.String() != "" || !q.Match(nil) {
		t.Errorf("an open range of an empty query is %q", q)
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{
		"", "a b or not (c and -d)", `level>=warn service=payment "charge"`, `time>=-15m time<"1h ago"`,
		`"user id"!=x* http.status>=500 msg!~"\u00e9\ud83d\ude00"`, "attrs.level=* or error.kind!=*",
		`a="5" b=5 c=-1e9 d="" e=/x?y=z`, "time=2026-05-28 or time!=today", `i"a" -w"b" c=i"d" e!~iw"É"`, `a in (b, "c", 5, 1..2, 10.0.0.0/8) or d not in "x".."y" level in warn..error time in 1h..now`, "((((", "level==x",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, expr string) {
		q, err := parseAt(expr, testNow)
		if err != nil {
			var syntax *SyntaxError
			if !errors.As(err, &syntax) || syntax.Column < 1 || syntax.Column > len([]rune(expr))+1 {
				t.Fatalf("Parse(%q): %#v", expr, err)
			}
			_ = err.Error()
			return
		}
		normal := q.String()
		if len(normal) > MaxLength {
			return
		}
		again, err := parseAt(normal, testNow.Add(time.Hour))
		if err != nil {
			t.Fatalf("Parse(%q) prints %q: %v", expr, normal, err)
		}
		if again.String() != normal {
			t.Fatalf("Parse(%q) prints %q, which prints %q", expr, normal, again)
		}
		if a, b := q.TimeRange(); a <= b {
			if c, d := again.TimeRange(); a != c || b != d {
				t.Fatalf("time range of %q changed", expr)
			}
		}
	})
}

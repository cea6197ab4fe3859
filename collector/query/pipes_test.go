package query

import (
	"strings"
	"testing"
)

// An error in a pipe says where it is and what to write instead.
func TestPipeErrors(t *testing.T) {
	for _, c := range []struct {
		expr   string
		column int
		want   string
	}{
		{"a |", 4, "found the end of the query, expected a pipe: "},
		{"a | head 10", 5, "found `head`, expected limit 10"},
		{"a | where x=1", 5, "expected the comparison before the first |"},
		{"a | b", 5, "to find a text that contains \"|\", quote it"},
		{"(a | limit 1", 4, "found `|`, expected \")\" for the \"(\" in column 1"},
		{"level>=loud | limit 1", 8, "found `loud`, expected a level"},
		{"| limit", 8, "expected a number of rows, from 1"},
		{"| limit 0", 9, "found `0`, expected a number of rows"},
		{"| limit 5 6", 11, "found `6`, expected \"|\" or the end of the query"},
		{"| fields", 9, "expected the name of a field"},
		{"| fields a,", 12, "expected the name of a field"},
		{"| fields (a, b", 15, `expected "," or ")"`},
		{"| fields a, a", 13, "found a second column `a`, expected another name"},
		{"| fields a as", 14, "expected a name"},
		{`| fields ""`, 10, "expected the name of a field"},
		{"| fields 'a'", 10, "expected plain double quotes"},
		{"| fields a b", 12, "found `b`, expected \"|\" or"},
		{"| fields a | sort b", 19, "found `b`, expected a column of these rows: a"},
		{"| stats", 8, "expected a function: count(), sum(field)"},
		{"| stats by service", 9, `expected a function first, such as count(), and then "by"`},
		{"| stats service", 9, "found `service`, expected a function"},
		{"| stats sum", 12, "found the end of the query, expected \"(\""},
		{"| stats sum()", 13, "expected the name of a field"},
		{"| stats sum(a", 14, "expected \")\""},
		{"| stats p99(a)", 9, "found `p99`, expected quantile(0.99, field)"},
		{"| stats dc(a)", 9, "expected uniq(field)"},
		{"| stats latest(a)", 9, "expected last(field)"},
		{"| fields a | stats last(a)", 20, "found `time`, expected a column of these rows: a"},
		{"| stats quantile(a, 0.99)", 18, "found `a,`, expected a number from 0 to 1"},
		{"| stats quantile(99, a)", 18, "expected a number from 0 to 1, such as 0.99"},
		{"| stats quantile(0.99)", 22, "expected \",\""},
		{"| stats count(), count()", 18, "found a second column `count`, expected another name for one of them"},
		{"| stats min(level) by a as min_level", 9, "found a second column `min_level`"},
		{"| stats count() by time(x)", 25, "expected a duration: 1h"},
		{"| stats count() by time(2s), time(2026-05-28) as b", 35, "expected a duration: 1h"},
		{"| stats count() by time(1500ms)", 25, "expected a duration: 1h"},
		{"| stats count() by bin(1h)", 20, "found `bin(`, expected time(1h)"},
		{"| stats count() by", 19, "expected the name of a field"},
		{"| stats count() | sort n", 24, "expected a column of these rows: count"},
		{"| count()", 3, "expected stats count()"},
		{"| top", 6, "expected the name of a field"},
		{"| top 0 a", 7, "expected a number of rows, from 1"},
		{"| top count", 7, "found a second column `count`"},
		{"| patterns by", 14, "expected the name of a field"},
		{"| patterns by count", 12, "found a second column `count`"},
		{"| patterns by pattern", 15, "found a second column `pattern`"},
		{"| patterns new", 15, `expected "since" and a time`},
		{"| patterns new since", 21, "expected a time"},
		{"| patterns new since by a", 22, "expected a time"},
		{"| patterns limit 0", 18, "expected a number of rows, from 1"},
		{"| fields msg | patterns", 24, "expected a column of these rows: msg"},
		{"| parse", 8, "expected the name of a field"},
		{"| parse msg", 12, "expected a pattern in quotes"},
		{`| parse "took"`, 9, "found no placeholder, expected one such as <name>"},
		{`| parse "<a><b>"`, 9, "found nothing between two placeholders, expected a text before <b>"},
		{`| parse "<a:int>"`, 9, "found <a:int>, expected <a> or <a:number>"},
		{`| parse "<a> <a>"`, 9, "found the name `a` twice"},
		{`| parse "<level> "`, 9, "found the name `level`, expected a name that no field of a line has"},
		{`| parse ~"(a"`, 10, "found a regular expression that is not valid: missing closing ): `(a`, expected the syntax of Go's package regexp"},
		{`| parse ~"a"`, 10, "found no group with a name, expected one such as (?P<code>"},
		{`| parse ~"(?P<a>x{900})(?P<b>x{900})"`, 10, "found a regular expression that is too large, expected at most 1000 instructions"},
		{`| parse ~"(?P<a>x`, 18, "expected the closing quote of the regular expression"},
		{`| fields time | parse "<a> "`, 23, "expected a column of these rows: time"},
		{"| extract x", 3, `expected parse "…"`},
		{"| sort -", 9, "expected the name of a field"},
		{"| fields a" + strings.Repeat(",a", 100), 12, "second column"},
		{"| sort a" + strings.Repeat(",a", 64), 136, "found field 65, expected at most 64"},
		{strings.Repeat("| limit 1", 17), 147, "found pipe 17, expected at most 16"},
		{"| fields " + strings.Repeat("x", 257), 10, "found a name of 257 bytes"},
		{"| fields " + strings.Repeat("x", MaxLength), MaxLength + 1, "expected at most 8192"},
		{"| fields \xff", 10, "found the byte 0xff"},
	} {
		_, _, err := parsePiped(c.expr, testNow)
		syntax, ok := err.(*SyntaxError)
		if !ok || !strings.Contains(err.Error(), c.want) || syntax.Column != c.column {
			t.Errorf("%.60s: %v, want column %d: %s", c.expr, err, c.column, c.want)
		}
	}
}

// A "|" in quotes, or none, makes no pipes.
func TestNoPipes(t *testing.T) {
	for _, expr := range []string{"", "a", `"a|b"`, `x="a\"|b"`, `msg~"|"`} {
		if q, p, err := parsePiped(expr, testNow); err != nil || p != nil || q == nil {
			t.Errorf("%s: %v, %v", expr, p, err)
		}
	}
}

func FuzzPipes(f *testing.F) {
	for _, seed := range []string{
		"a | fields time, msg as m | sort -m, time desc | limit 5", `"|" | sort by (a asc, "b c")`, "| stats count(), min(level) as m, quantile(.9, a), avg(a), sum(x), uniq(m) by time(1h), service as s | top 3 s, m | stats sum(count)", "| stats first(msg), last(level), values(a) by s", "| limit 99999999999999999999", `| parse "<a> <b> took <c:number>" | parse a ~"(?P<d>.)\"?" | stats sum(c) by d`, `| parse m.x "<_>:<q>"`, `| parse "<pattern> " | patterns by a limit 3`, `| patterns new since "1h ago" by a limit 3 | fields first`,
	} {
		f.Add(seed)
	}
	lines := []string{
		`{"time":"2026-05-28T12:40:00.000000000Z","level":"INFO","msg":"GET /a took 15 ms","attrs":{"a":1,"m":{"x":null},"b c":"\ud800"}}`,
		`{"time":"2026-05-28T12:41:00.000000000Z","level":"ERROR","msg":"x","service":"s"}`,
	}
	f.Fuzz(func(t *testing.T, expr string) {
		_, p, err := parsePiped(expr, testNow)
		if syntax, ok := err.(*SyntaxError); err != nil && (!ok || syntax.Column < 1 || syntax.Column > len(expr)+1) {
			t.Fatalf("%v", err)
		}
		if p != nil {
			runOver(t, p, lines)
		}
	})
}

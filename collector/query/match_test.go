package query

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/rollway/rollway/internal/jsonline"
	"github.com/rollway/rollway/internal/testkit"
)

const paymentLine = `{"time":"2026-05-28T12:40:00.123456789Z","level":"ERROR","msg":"failed to charge customer","service":"payment-api","logger":"billing.stripe","source":"charge.go:118","trace_id":"6f9c9b9d7a1a","error":{"kind":"timeout","cause":["dial tcp","i/o timeout"]},` +
	`"attrs":{"customer_id":"cus_123","region":"eu-west","retry_count":2,"http":{"status":503,"path":"/v1/charge","took":1.50},"http.method":"POST","tags":["vip","a\"b",["deep",7]],"big":9007199254740993,"ok":false,"none":null,"text":"caf\u00e9 \ud83d\ude00\n\"q\"\\","level":"shadow","num":"0042","ten":"10","empty":"","user id":"u 1","a":{"b.c":{"d":1}},"neg":-0.5e2,"error.kind":"other"}}` + "\n"

const plainLine = `{"time":"2026-05-28T12:40:00.000000000Z","level":"WARN+1","msg":"slow","source":{"file":"a.go","line":7},"error":"i/o timeout"}` + "\n"

func TestMatch(t *testing.T) {
	for _, c := range []struct {
		expr string
		want bool
	}{
		{"", true},
		// texts
		{"charge", true}, {"Charge", false}, {`"to charge"`, true}, {"payment", false},
		{"timeout", true}, {"tcp", true}, {"vip", true}, {"deep", true}, {"cus_1", true}, {"customer_id", false},
		{"503", true}, {"740993", true}, {"1.50", true}, {"false", false}, {"null", false}, {"6f9c", false},
		{"café", true}, {"😀", true}, {`"\n\"q\"\\"`, true}, {`u00e9`, false}, {`"a\"b"`, true},
		// fixed fields
		{"service=payment-api", true}, {"service=payment", false}, {"service=pay*", true}, {"service~ment", true},
		{"service!=payment-api", false}, {"logger=billing.stripe", true}, {"source=charge.go:118", true},
		{"trace_id=6f9c9b9d7a1a", true}, {"span_id=*", false}, {"span_id!=*", true}, {"span_id!=x", true}, {"msg=*", true},
		{`msg="failed to charge customer"`, true}, {"msg<g", true}, {"msg>g", false},
		// levels
		{"level>=warn", true}, {"level=error", true}, {"level>error", false}, {"level<panic", true}, {"level>=8", true}, {"level!=info", true},
		{"level=warn", false}, {"level<=error+1", true},
		// times
		{"time>=2026-05-28", true}, {"time=2026-05-28", true}, {"time<2026-05-28", false}, {`time="2026-05-28 12:40"`, true},
		{"time=2026-05-28T12:40:00.123456789Z", true}, {"time>2026-05-28T12:40:00.123456789Z", false}, {"time>=-15m", false}, {"time>=-30m", true},
		{"time=2026-05*", true}, {"time~T12", true},
		// attributes
		{"customer_id=cus_123", true}, {"customer_id!=cus_123", false}, {"region=eu*", true}, {"region!=us*", true}, {"nothing!=us", true}, {"nothing>0", false},
		{"retry_count=2", true}, {"retry_count=2.0", true}, {"retry_count=0.2e1", true}, {`retry_count="2"`, true}, {`retry_count="2.0"`, false},
		{"retry_count>1", true}, {"retry_count>2", false}, {"retry_count<=2", true}, {`retry_count>"1"`, false}, {"retry_count>a", false},
		{"http.status>=500", true}, {"http.status<500", false}, {"http.took=1.5", true}, {"http.method=POST", true}, {"http=*", true}, {"http~v1", true}, {"http=POST", false},
		{"a.b.c.d=1", true}, {"a.b=*", false}, {"a.b.c=*", true}, {"tags=vip", true}, {"tags=deep", true}, {"tags>=7", true}, {"tags=8", false}, {"tags!=vip", false}, {"tags~i", true},
		{"big=9007199254740993", true}, {"big=9007199254740992", false}, {"big>9007199254740992", true}, {"big<9007199254740993.1", true},
		{"ok=false", true}, {"ok=true", false}, {"none=null", true}, {"none=*", true}, {"neg=-50", true}, {"neg<-49.9", true}, {"neg>-5e1", false},
		{"attrs.level=shadow", true}, {"level=4", false}, {"num=42", false}, {"num=0042", true}, {"num>41", false}, {"ten>9", true}, {`ten>"9"`, false}, {"ten=10", true}, {"ten=10.0", false},
		{`empty=""`, true}, {"empty=*", true}, {`region=""`, false}, {`"user id"="u 1"`, true}, {`text="café 😀\n\"q\"\\"`, true}, {`text~"é 😀"`, true}, {`text=café*`, true}, {`text>"café 😀"`, true}, {`text<"café 😀"`, false},
		{"attrs=*", true}, {"attrs~eu-w", true}, {"attrs~tcp", false},
		// inside error and source
		{"error.kind=timeout", true}, {"error.kind=other", true}, {"attrs.error.kind=timeout", false}, {"attrs.error.kind=other", true}, {`error.cause="dial tcp"`, true}, {"error~tcp", true}, {"error=timeout", false}, {"error=*", true},
		{"source.file=a.go", false},
		// regular expressions
		{`re"ch.rge"`, true}, {`re"^charge"`, false}, {`re"(?i)CHARGE"`, true}, {`-re"ch.rge"`, false}, {`re"^503$"`, true}, {`re"false"`, false}, {`re"café|tea"`, true}, {`re"a\"b"`, true},
		{`re"x" or re"y$" or charge`, true}, {`http.path=~^/v\d/`, true}, {`http.path!=~"^/v2/"`, true}, {`http=~"/v1"`, true}, {`nothing=~"a"`, false}, {`nothing!=~"a"`, true}, {`service=~"api$" region=~"^(eu|us)-"`, true},
		{`time=~"T12:4\d"`, true}, {`tags=~"^vi"`, true}, {`ok=~"^f"`, true}, {`msg=~"(?i:FAILED) to c*"`, true}, {`msg=~"failed|X" msg=~"to (x|charge)"`, true},
		// ignoring case, whole words
		{`i"CHARGE"`, true}, {`i"CHARGES"`, false}, {`i"CAFÉ 😀"`, true}, {`w"charge"`, true}, {`w"charg"`, false}, {`w"harge"`, false}, {`w"to charge"`, true}, {`w"Charge"`, false},
		{`iw"Charge"`, true}, {`wi"CHARG"`, false}, {`w"é"`, false}, {`w"café"`, true}, {`w"😀"`, true}, {`w"a\"b"`, true}, {`w"123"`, false}, {`w"cus_123"`, true}, {`-w"charg"`, true}, {`i"false"`, false},
		{`service=i"Payment-API"`, true}, {`service!=i"Payment-API"`, false}, {`service=i"payment"`, false}, {`service~i"MENT"`, true}, {`service~w"payment"`, true}, {`service~w"pay"`, false}, {`service!~iw"PAYMENT"`, false},
		{`http~iw"V1"`, true}, {`tags=i"VIP"`, true}, {`tags~w"vi"`, false}, {`ok=i"FALSE"`, true}, {`region~wi"EU"`, true}, {`level=i"Error"`, true}, {`retry_count=i"2"`, true}, {`attrs~i"EU-W"`, true},
		{`i"CHARGE" i"VIP" w"503" charge`, true}, {`text~i"CAFÉ"`, true}, {`user_id=i""`, false}, {`empty=i""`, true},
		// lists, ranges, networks
		{"region in (us, eu-west)", true}, {"region not in (us, eu-west)", false}, {"region in (us, eu)", false}, {"region in (us*, eu*)", true}, {`region in ("us", i"EU-West")`, true}, {"nothing in (a, b)", false}, {"nothing not in (a, b)", true},
		{"tags in (x, deep)", true}, {"tags in (x, 7.0)", true}, {"tags in (x, 8)", false}, {"retry_count in (1, 2.0, 3)", true}, {`retry_count in (1, "2")`, true}, {`retry_count in (1, "2.0")`, false}, {"num in (42, 43)", false}, {"num in (0042, 43)", true},
		{"big in (9007199254740992, 9007199254740994)", false}, {"big in (9007199254740993.0, 1)", true}, {"ok in (true, false)", true}, {`empty in ("", x)`, true}, {"service in (ledger, payment-api)", true}, {"service not in (ledger, payment-api)", false},
		{"level in (warn, error)", true}, {"level not in (warn, error)", false}, {"level in (warn, info)", false}, {"level in warn..error", true}, {"level in warn..<error", false}, {"level in (debug, warn+1..panic)", true},
		{"retry_count in 1..2", true}, {"retry_count in 1..<2", false}, {"retry_count in 2..2", true}, {"retry_count not in 1..2", false}, {"http.took in 1.4..1.6", true}, {"big in 9007199254740993..9007199254740993", true}, {"neg in -60..-40", true},
		{"ten in 9..11", true}, {"num in 40..43", false}, {"tags in 6..8", true}, {"tags in (1..2, 6..8)", true}, {`region in ("eu".."ev")`, true}, {"region in eu..<eu-west", false}, {"nothing in 1..2", false}, {"nothing not in 1..2", true},
		{"time in 2026-05-28..2026-05-28", true}, {"time in 2026-05-27..<2026-05-28", false}, {`time in ("2026-05-28 12:40".."2026-05-28 12:40")`, true}, {"time in 30m..15m", true}, {"time in (2026-05-01, 2026-05-28)", true}, {"time not in (2026-05-01, 2026-05-28)", false},
		{"service in 10.0.0.0/8", false}, {"tags not in 10.0.0.0/8", true}, {"error.kind in (x, timeout)", true}, {"error.kind in (x, other)", true}, {"attrs in (x, POST)", false},
		// and, or, not
		{"level>=warn service=payment-api charge", true}, {"level>=warn service=x", false}, {"service=x or charge", true}, {"not (service=x or charge)", false},
		{"-debug -nothing", true}, {"-charge", false}, {"-(zzz b) (vip or x)", true}, {"not level=debug region=eu-west", true}, {"not level=error or region=eu-west", true},
	} {
		q := mustParse(t, c.expr)
		if got := q.Match([]byte(paymentLine)); got != c.want {
			t.Errorf("%s: %v", c.expr, got)
		}
		if got := slowMatch(q, []byte(paymentLine)); got != c.want {
			t.Errorf("%s: the slow evaluation says %v", c.expr, got)
		}
	}
	for value, in := range map[string]string{
		`"10.1.2.3"`: "10.0.0.0/8", `"10.1.2.3:443"`: "10.0.0.0/8", `"::ffff:10.1.2.3"`: "10.0.0.0/8", `"[::ffff:10.1.2.3]:443"`: "10.0.0.0/8",
		`"::1"`: "::1/128", `"[::1]:80"`: "::1/128", `"[::1]"`: "::1/128", `"fe80::9"`: "fe80::/10", `["x","10.1.2.3"]`: "10.0.0.0/8",
		`"11.1.2.3"`: "", `"10.1.2"`: "", `"10.1.2.3:x"`: "", `"10.1.2.3:"`: "", `"fe80::1%eth0"`: "", `10.1`: "", `"10.0.0.0/8"`: "", `"a"`: "", `""`: "", `"fec0::1"`: "", `"9.255.255.255"`: "",
	} {
		line := []byte(`{"time":"2026-05-28T12:40:00.000000000Z","level":"INFO","msg":"m","attrs":{"a":` + value + "}}\n")
		for _, network := range []string{"10.0.0.0/8", "::1/128", "fe80::/10", "::ffff:10.0.0.0/104"} {
			q := mustParse(t, "a in "+network)
			want := q.String() == "a in "+in
			if got := q.Match(line); got != want || slowMatch(q, line) != want {
				t.Errorf("%s in %s: %v", value, network, got)
			}
		}
		if got := mustParse(t, "a in (10.0.0.0/8, 10.1.0.0/16, fe80::/10, ::1/128, 10.0.0.0/9, x)").Match(line); got != (in != "") {
			t.Errorf("%s in one of the networks: %v", value, got)
		}
	}
	for expr, want := range map[string]bool{
		"level>warn": true, "level=warn+1": true, "level>=error": false, "source.line>=7": true, "source.file=a.go": true, "source~a.go": true,
		"error=*": true, "error.kind=*": false, "timeout": true, "attrs=*": false, "attrs!=*": true, "msg=slow level<error": true,
	} {
		q := mustParse(t, expr)
		if got := q.Match([]byte(plainLine)); got != want || got != slowMatch(q, []byte(plainLine)) {
			t.Errorf("%s on the plain line: %v", expr, got)
		}
	}
}

func TestManyTerms(t *testing.T) {
	expr := strings.Repeat("nothing or ", MaxTerms-1) + "vip"
	if !mustParse(t, expr).Match([]byte(paymentLine)) {
		t.Error("the last of the most terms does not count")
	}
}

// What a request adds to the largest expression does not count for a term of it.
func TestManyTermsWithin(t *testing.T) {
	a, err := over(newStore(t), Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		last, until string
		want        bool
	}{{"nothing", "2100", false}, {"vip", "2100", true}, {"vip", "2001", false}} {
		expr := strings.Repeat("nothing or ", MaxTerms-1) + c.last
		r := httptest.NewRequest("GET", "/api/query?since=2000-01-01&until="+c.until+"-01-01&q="+url.QueryEscape(expr), nil)
		req, err := a.parseRequest(r, "q", "since", "until")
		if err != nil {
			t.Fatal(err)
		}
		since, until := testNow.AddDate(-1, 0, 0), testNow.AddDate(1, 0, 0)
		if q := req.query.within(&since, &until); q.terms != MaxTerms+addedTerms || q.Match([]byte(paymentLine)) != c.want {
			t.Errorf("%+v: %d terms, or the other answer", c, q.terms)
		}
	}
}

func TestDamagedLines(t *testing.T) {
	var queries []*Query
	for _, expr := range []string{"x", `-"é"`, "level>=warn", "a.b=1 tags~x", "error.kind=x or http.status>=500", "time>=2026-05-28 attrs=*", "msg!~y"} {
		queries = append(queries, mustParse(t, expr))
	}
	check := func(line []byte) {
		for _, q := range queries {
			q.Match(line)
		}
	}
	line := []byte(paymentLine)
	for i := range line {
		check(line[:i])
		check(line[i:])
		for _, c := range []byte{'"', '\\', '{', '}', '[', ':', ',', 0, 'u', '\n'} {
			damaged := bytes.Clone(line)
			damaged[i] = c
			check(damaged)
		}
	}
	check([]byte(`{"attrs":` + strings.Repeat("[", 1<<20)))
	check([]byte(`{"attrs":` + strings.Repeat(`{"a":`, 1<<16)))
	check([]byte(`{"attrs":` + strings.Repeat(`{"a":{"b":`, 1<<10)))
	check([]byte(`{"msg":"` + strings.Repeat(`\`, 1<<16)))
}

// TestMatchDoesNotAllocate counts over many runs, escapes included.
func TestMatchDoesNotAllocate(t *testing.T) {
	testkit.NoRace(t, "it allocates to find uses of what was put into a pool")
	lines := [][]byte{[]byte(paymentLine), []byte(plainLine), []byte(paymentLine[:200])}
	for _, expr := range []string{
		"charge", `"é 😀"`, "nothing", "level>=warn", "level=warn+1", "time>=2026-05-28 time<2026-05-29", "http.status>=500 a.b.c.d=1",
		`text="café 😀\n\"q\"\\"`, "tags~deep or tags=7", "big>9007199254740992", "error.cause~dial", "not (region=us or service=x) vip",
		strings.Repeat("x", 2000), `i"CAFÉ" or i"X"`, `w"charge" -tags~iw"DEE" service=i"É"`,
		`customer_id not in (a, 5, 10.0.0.0/8, ::/0, i"b", c*) tags in (10.0.0.0/8, 1..6) retry_count in (2, 3)`,
	} {
		q := mustParse(t, expr)
		fewest := testkit.Mallocs(func() {
			for range 1000 {
				for _, line := range lines {
					q.Match(line)
				}
			}
		})
		if fewest > 100 {
			t.Errorf("%.40s: %d allocations in 3000 calls", expr, fewest)
		}
	}
}

// Pieces of generated lines and queries; few, so that they meet often.
var (
	genKeys    = []string{"a", "b", "a.b", "b.c", "é", "level", "error.kind", "x y", `q"`}
	genStrings = []string{"", "10.1.2.3", "10.9.9.9:80", "[fe80::1]:80", "::ffff:10.1.2.3", "A", "B a", "a_b", "Ab-a", "É", "ſK", "sk", "a", "b", "ab", "abc", "aab", "é", "x\ny", `q"\`, "10", "9", "1e1", "true", "null", "-5", "😀"}
	genNumbers = []string{"0", "-0", "1", "9", "10", "1e1", "10.0", "0.1", "1E-1", "-5", "-5.5", "9007199254740993", "9007199254740992", "9007199254740993.0", "123456789012345678901234567890"}
	genLevels  = []string{"TRACE", "DEBUG", "INFO", "WARN", "WARN+1", "ERROR", "PANIC", "FATAL", "FATAL+3", "TRACE-2"}
	genTimes   = []string{"2026-05-28T12:40:00.000000000Z", "2026-05-28T12:40:00.000000001Z", "2026-05-28T00:00:00.000000000Z", "2026-05-27T23:59:59.999999999Z"}
)

func pick(r *rand.Rand, from []string) string { return from[r.IntN(len(from))] }

func appendGenString(b []byte, r *rand.Rand, s string) []byte {
	if r.IntN(3) > 0 {
		return jsonline.AppendString(b, s)
	}
	// The same string by escapes, as a client may send it.
	q, _ := json.Marshal(s)
	for _, c := range q[1 : len(q)-1] {
		if c == 'a' {
			q = bytes.ReplaceAll(q, []byte("a"), []byte(`\u0061`))
			break
		}
	}
	q = bytes.ReplaceAll(q, []byte("é"), []byte(`\u00E9`))
	q = bytes.ReplaceAll(q, []byte("😀"), []byte(`\uD83D\ude00`))
	return append(b, q...)
}

func appendGenValue(b []byte, r *rand.Rand, depth int) []byte {
	kind := r.IntN(10)
	if depth > 2 {
		kind %= 7
	}
	switch {
	case kind < 3:
		return appendGenString(b, r, pick(r, genStrings))
	case kind < 6:
		return append(b, pick(r, genNumbers)...)
	case kind == 6:
		return append(b, pick(r, []string{"true", "false", "null"})...)
	case kind == 7:
		b = append(b, '[')
		for i := range r.IntN(3) {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendGenValue(b, r, depth+1)
		}
		return append(b, ']')
	}
	return appendGenObject(b, r, depth+1)
}

// appendGenObject never writes a key twice, which the slow evaluation would
// not see.
func appendGenObject(b []byte, r *rand.Rand, depth int) []byte {
	b = append(b, '{')
	for i, k := range r.Perm(len(genKeys))[:r.IntN(5)] {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendGenString(b, r, genKeys[k])
		b = append(b, ':')
		b = appendGenValue(b, r, depth)
	}
	return append(b, '}')
}

func genLine(r *rand.Rand) []byte {
	b := []byte(`{`)
	key := func(name string) {
		if len(b) > 1 {
			b = append(b, ',')
		}
		b = jsonline.AppendString(b, name)
		b = append(b, ':')
	}
	for id := range numFields {
		if r.IntN(5) == 0 {
			continue
		}
		key(id.name())
		switch id {
		case fieldTime:
			b = jsonline.AppendString(b, pick(r, genTimes))
		case fieldLevel:
			b = jsonline.AppendString(b, pick(r, genLevels))
		case fieldError:
			b = appendGenValue(b, r, 0)
		case fieldSource:
			if r.IntN(2) == 0 {
				b = appendGenObject(b, r, 0)
				continue
			}
			fallthrough
		default:
			b = appendGenString(b, r, pick(r, genStrings))
		case fieldAttrs:
			b = appendGenObject(b, r, 0)
		}
	}
	return append(b, "}\n"...)
}

var genPatterns = []string{`"a"`, `"^a"`, `"(?i)A"`, `"a|1e|é"`, `"q\\?\"$"`, `"\d{2,}"`, `"b*"`, `"x y"`, `"(a|b)+c?"`, `"tr(ue)+"`, `"[^a]a"`}

func genExpr(r *rand.Rand, depth int) string {
	quote := func(s string) string { return string(jsonline.AppendString(nil, s)) }
	switch kind := r.IntN(12); {
	case kind < 2 && depth < 4:
		return "(" + genExpr(r, depth+1) + " or " + genExpr(r, depth+1) + ")"
	case kind < 4 && depth < 4:
		return "(" + genExpr(r, depth+1) + " " + genExpr(r, depth+1) + ")"
	case kind < 5 && depth < 4:
		return "not " + genExpr(r, depth+1)
	case kind == 5 && r.IntN(4) == 0:
		return pick(r, []string{"level in (info, WARN..<PANIC)", "level not in debug..info", "time in 2026-05-28..2026-05-28", "time not in (2026-05-27, 2026-05-28T12:40:00Z..<2026-05-28T12:40:00.000000001Z)"})
	case kind == 5:
		return "level" + pick(r, []string{"=", "!=", "<", "<=", ">", ">="}) + pick(r, genLevels)
	case kind == 6:
		return "time" + pick(r, []string{"=", "!=", "<", "<=", ">", ">="}) + pick(r, genTimes)
	case kind == 7 && r.IntN(3) == 0:
		return "re" + pick(r, genPatterns)
	case kind == 7:
		if r.IntN(2) == 0 {
			return pick(r, []string{"i", "w", "iw", "wi"}) + quote(pick(r, []string{"a", "AB", "B", "é", "SK", "k", "x", "1E", "\ny", "-a"}))
		}
		if s := pick(r, genStrings); s != "" {
			return quote(s)
		}
		return quote(pick(r, genNumbers))
	}
	name := pick(r, genKeys)
	switch r.IntN(6) {
	case 0:
		name = fieldNames[2+r.IntN(int(numFields)-2)]
	case 1:
		name = pick(r, []string{"attrs.", "error.", "source."}) + name
	case 2, 3:
		name += "." + pick(r, genKeys)
	}
	if name == "level" {
		name = "attrs.level"
	}
	name = quote(name)
	switch r.IntN(8) {
	case 7:
		return name + pick(r, []string{" in ", " not in "}) + pick(r, []string{"1..10", "-5.5..<1", "0..1e1", "10.0.0.0/8", "fe80::/10", `("a".."ab")`, `(""..<"b")`})
	case 6:
		list := make([]string, 1+r.IntN(6))
		for i := range list {
			list[i] = pick(r, []string{quote(pick(r, genStrings)), pick(r, genNumbers), "a*", "i" + quote(pick(r, genStrings)), "9..10", "-1..<1", "10.1.0.0/16", "10.0.0.0/8", "::/0", `"a".."ab"`, "true"})
		}
		return name + pick(r, []string{" in (", " not in ("}) + strings.Join(list, ",") + ")"
	case 0:
		return name + pick(r, []string{"=*", "!=*"})
	case 1:
		return name + pick(r, []string{"=", "!="}) + pick(r, []string{"a", "1", "ab", "é"}) + "*"
	case 2:
		if r.IntN(2) == 0 {
			return name + pick(r, []string{"=~", "!=~"}) + pick(r, genPatterns)
		}
		return name + pick(r, []string{"~", "!~"}) + pick(r, []string{"", "i", "w", "iw"}) + quote(pick(r, []string{"a", "a", "É", "1", "Tr"}))
	case 3:
		if r.IntN(4) == 0 {
			return name + pick(r, []string{"=", "!="}) + "i" + quote(pick(r, genStrings))
		}
		return name + pick(r, []string{"=", "!=", "<", "<=", ">", ">="}) + quote(pick(r, genStrings))
	}
	return name + pick(r, []string{"=", "!=", "<", "<=", ">", ">="}) + pick(r, genNumbers)
}

// TestMatchAgainstMaps compares Match with the slow evaluation on generated
// lines and queries.
func TestMatchAgainstMaps(t *testing.T) {
	const seed = 20260528
	r := rand.New(rand.NewPCG(seed, 1))
	matched, total := 0, 0
	for range 3000 {
		expr := genExpr(r, 0)
		q := mustParse(t, expr)
		again := mustParse(t, q.String())
		minimum, maximum := q.TimeRange()
		for range 10 {
			line := genLine(r)
			if !json.Valid(line) {
				t.Fatalf("generated %s", line)
			}
			want := slowMatch(q, line)
			if got := q.Match(line); got != want {
				t.Fatalf("seed %d: %s\non %s is %v, want %v", seed, expr, line, got, want)
			}
			if again.Match(line) != want {
				t.Fatalf("seed %d: %s matches otherwise than its normal form %s\non %s", seed, expr, q, line)
			}
			if want && bytes.Contains(line, []byte(`"time":`)) {
				at, err := ParseTime(string(line[9:39]), testNow)
				if err != nil {
					t.Fatal(err)
				}
				if ns := at.UnixNano(); ns < minimum || ns > maximum {
					t.Fatalf("%s matches %s outside of its time range", expr, line)
				}
			}
			total++
			if want {
				matched++
			}
		}
	}
	if matched < total/20 || matched > total*19/20 {
		t.Errorf("%d of %d matched: the generator proves little", matched, total)
	}
}

func FuzzMatch(f *testing.F) {
	for _, expr := range []string{"charge", "level>=warn", "http.status>=500 or a.b.c.d=1", `text="café 😀\n\"q\"\\"`, "error.kind=timeout tags~deep", "not (big>9007199254740992 time<2026-05-28)"} {
		f.Add(expr, []byte(paymentLine))
		f.Add(expr, []byte(plainLine))
	}
	f.Add(`re"a|b" or x=~"(?i)c+" y!=~^d`, []byte(paymentLine))
	f.Add(`i"CHARGE" w"charge" tags~iw"VIP" or service=i"Payment-Api"`, []byte(paymentLine))
	f.Add(`retry_count in 1..<3 tags not in (a, 7, "b".."c", 10.0.0.0/8)`, []byte(paymentLine))
	f.Add("a=1", []byte(`{"attrs":{"a":`))
	f.Add(`"\n"`, []byte(`{"msg":"\`))
	f.Fuzz(func(t *testing.T, expr string, line []byte) {
		q, err := parseAt(expr, testNow)
		if err != nil {
			return
		}
		got := q.Match(line)
		if !canonical(line) || hugeExponent(expr, line) {
			return
		}
		if want := slowMatch(q, line); got != want {
			t.Fatalf("%s\non %s is %v, want %v", expr, line, got, want)
		}
	})
}

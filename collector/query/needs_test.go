package query

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/rollway/rollway/internal/levels"
)

// showNeed writes a need in short.
func showNeed(n Need) string {
	kids := make([]string, len(n.Kids))
	for i, kid := range n.Kids {
		kids[i] = showNeed(kid)
	}
	switch n.Kind {
	case NeedAll:
		return "all(" + strings.Join(kids, ", ") + ")"
	case NeedOne:
		return "one(" + strings.Join(kids, ", ") + ")"
	case NeedText:
		return fmt.Sprintf("text %q", n.Text)
	case NeedField:
		return fmt.Sprintf("%s/%s %s %q %v", n.Field, n.Path, [...]string{"present", "=", "=*", "~", "<", "<=", ">", ">="}[n.Op], n.Text, n.Number)
	case NeedLevel:
		low, high := "", ""
		if n.MinLevel != math.MinInt {
			low = fmt.Sprint(int(n.MinLevel))
		}
		if n.MaxLevel != math.MaxInt {
			high = fmt.Sprint(int(n.MaxLevel))
		}
		return "level " + low + ".." + high
	case NeedTime:
		return fmt.Sprintf("time %d..%d", n.MinTime, n.MaxTime)
	}
	return "nothing"
}

func TestNeeds(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ expr, want string }{
		{``, `nothing`},
		{`charge`, `text "charge"`},
		{`charge -failed`, `text "charge"`},
		{`charge or -failed`, `nothing`},
		{`"a\"b" service=x`, `all(text "a\"b", service/ = "x" false)`},
		{`http.status=503`, `attrs/http.status = "503" true`},
		{`code="503"`, `attrs/code = "503" false`},
		{`error.kind=time* msg~out`, `all(error/kind =* "time" false, msg/ ~ "out" false)`},
		{`took>=5 customer=*`, `all(attrs/took >= "5" true, attrs/customer present "" false)`},
		{`re"charge(d|s)? (x|yy)"`, `text "charge"`},
		{`msg=~"fail|(?i)x1"`, `msg/ present "" false`},
		{`msg=~"fail|lost \d+"`, `one(msg/ ~ "fail" false, msg/ ~ "lost " false)`},
		{`re"(?i)a" or b`, `nothing`},
		{`a in (b, 5)`, `one(attrs/a = "b" false, attrs/a = "5" true)`},
		{`a in 1..5`, `all(attrs/a >= "1" true, attrs/a <= "5" true)`},
		{`a in 10.0.0.0/8`, `attrs/a present "" false`},
		{`a not in (b, c)`, `nothing`},
		{`level not in (info, warn)`, `all(one(level ..-1, level 1..), one(level ..3, level 5..))`},
		{`w"charge"`, `text "charge"`},
		{`i"charge"`, `nothing`},
		{`i"order 4711-x"`, `text " 4711-"`},
		{`service=i"x" msg~i"a 5" msg~w"b"`, `all(service/ present "" false, msg/ ~ " 5" false, msg/ ~ "b" false)`},
		{`level>=warn`, `level 4..`},
		{`level!=info`, `one(level ..-1, level 1..)`},
		{`not (level<warn or charge)`, `level 4..`},
		{`not (level=info x=1)`, `nothing`},
		{`level=error or level<=debug`, `one(level 8..8, level ..-4)`},
		{`time<1970-01-01T00:00:01Z`, fmt.Sprintf("time %d..999999999", math.MinInt64)},
		{`not time<1970-01-01T00:00:01Z`, `nothing`},
	} {
		if got := showNeed(mustParse(t, c.expr).Needs()); got != c.want {
			t.Errorf("%s needs %s, want %s", c.expr, got, c.want)
		}
	}
}

func TestNeedWords(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		expr string
		want []string
	}{
		{`"failed to charge"`, []string{"to"}},
		{`" charge,"`, []string{"charge"}},
		{`charge`, nil},
		{`msg~"a b_1 ü c"`, []string{"b_1", "ü"}},
		{`path=/v1/charge`, []string{"v1", "charge"}},
		{`path=/v1/charge*`, []string{"v1"}},
		{`path=v1*`, nil},
		{`path=v1-*`, []string{"v1"}},
		{`code=503`, nil},
		{`code="503"`, []string{"503"}},
		{`code>abc`, nil},
		{`code=*`, nil},
	} {
		need := mustParse(t, c.expr).Needs()
		if got := need.Words(); !slices.Equal(got, c.want) {
			t.Errorf("%s needs the words %q, want %q", c.expr, got, c.want)
		}
	}
}

// slowNeed tells whether a decoded line fulfills n.
func slowNeed(n Need, m map[string]any) bool {
	switch n.Kind {
	case NeedAll:
		return !slices.ContainsFunc(n.Kids, func(kid Need) bool { return !slowNeed(kid, m) })
	case NeedOne:
		return slices.ContainsFunc(n.Kids, func(kid Need) bool { return slowNeed(kid, m) })
	case NeedText:
		return slowTerm(newTextTerm(written{text: n.Text}), m)
	case NeedField:
		name := n.Field
		if n.Path != "" {
			name += "." + n.Path
		}
		return slowTerm(newValueTerm(op(1+slices.Index(needOps[1:], n.Op)), resolve(name), n.Text, n.Number), m)
	case NeedLevel:
		name, _ := m["level"].(string)
		l, ok := levels.Parse([]byte(name))
		return ok && n.MinLevel <= l && l <= n.MaxLevel
	case NeedTime:
		at, err := ParseTime(m["time"].(string), testNow)
		ns := unixNano(at)
		return err == nil && n.MinTime <= ns && ns <= n.MaxTime
	}
	return true
}

// TestMatchesFulfillNeeds checks on generated lines that what matches fulfills the needs,
// and that needs leave out lines.
func TestMatchesFulfillNeeds(t *testing.T) {
	t.Parallel()
	const seed = 20261126
	r := rand.New(rand.NewPCG(seed, 1))
	matched, left := 0, 0
	for range 3000 {
		expr := genExpr(r, 0)
		q := mustParse(t, expr)
		need := q.Needs()
		for range 10 {
			line := genLine(r)
			dec := json.NewDecoder(bytes.NewReader(line))
			dec.UseNumber()
			var m map[string]any
			if err := dec.Decode(&m); err != nil {
				t.Fatal(err)
			}
			if m["time"] == nil || m["level"] == nil {
				continue // every canonical line has both
			}
			matches, fulfills := q.Match(line), slowNeed(need, m)
			if matches && !fulfills {
				t.Fatalf("seed %d: %s matches\n%s, which lacks %s", seed, expr, line, showNeed(need))
			}
			if matches {
				matched++
			}
			if !fulfills {
				left++
			}
		}
	}
	if matched < 1000 || left < 1000 {
		t.Errorf("%d matched, %d were left out: the generator proves little", matched, left)
	}
}

func ExampleQuery_Needs() {
	q, _ := Parse(`level>=warn service=ledger`)
	need := q.Needs()
	for _, kid := range need.Kids {
		switch kid.Kind {
		case NeedLevel:
			fmt.Println("level from", kid.MinLevel)
		case NeedField:
			fmt.Println(kid.Field, "is", kid.Text)
		}
	}
	// Output:
	// level from WARN
	// service is ledger
}

package query

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/big"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rollway/rollway/collector/query/pipe"
	"github.com/rollway/rollway/internal/testkit"
)

// The slow evaluation of pipes: rows are maps that encoding/json made, numbers are
// rationals, and each stage makes the whole list of its rows from the whole list before.

// slowValue is a value of a row; the zero one is absent.
type slowValue struct {
	kind string // "number", "string" or "other"
	text string
}

type slowRow struct {
	line   string // "": columns alone
	fields map[string]slowValue
	names  []string // of the columns, in order; of a line, those that it does not have itself
}

type slowStage func([]slowRow) []slowRow

func slowValueOf(raw json.RawMessage) slowValue {
	var v any
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	if err := dec.Decode(&v); err != nil {
		panic(err)
	}
	switch v := v.(type) {
	case string:
		return slowValue{"string", v}
	case json.Number:
		return slowValue{"number", string(v)}
	}
	return slowValue{"other", string(raw)}
}

func (v slowValue) rat() *big.Rat {
	if v.kind != "number" && v.kind != "string" || !json.Valid([]byte(v.text)) || strings.TrimSpace(v.text) != v.text {
		return nil
	}
	if !strings.ContainsAny(v.text[:1], "-0123456789") {
		return nil
	}
	r, ok := new(big.Rat).SetString(v.text)
	if !ok {
		return nil
	}
	return r
}

func (v slowValue) json() string {
	if v.kind == "string" {
		var b bytes.Buffer
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		e.Encode(v.text)
		return strings.TrimSuffix(b.String(), "\n")
	}
	return v.text
}

func slowCompare(a, b slowValue) int {
	x, y := a.rat(), b.rat()
	if x != nil && y != nil {
		return x.Cmp(y)
	}
	rank := func(v slowValue, r *big.Rat) int {
		if r != nil {
			return 0
		}
		return slices.Index([]string{"", "string", "other"}, v.kind) + 3*btoi(v.kind == "")
	}
	return cmp.Or(cmp.Compare(rank(a, x), rank(b, y)), strings.Compare(a.text, b.text))
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// slowCompareBy orders levels by severity.
func slowCompareBy(name string) func(a, b slowValue) int {
	if !strings.HasPrefix(name, "level") {
		return slowCompare
	}
	severity := []string{"TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL"}
	return func(a, b slowValue) int {
		x, y := slices.Index(severity, a.text), slices.Index(severity, b.text)
		if x < 0 || y < 0 {
			return slowCompare(a, b)
		}
		return x - y
	}
}

// slowLine reads a line that has none of its fields twice.
func slowLine(line string) slowRow {
	r := slowRow{line: line, fields: map[string]slowValue{}}
	var inside func(prefix string, raw json.RawMessage)
	inside = func(prefix string, raw json.RawMessage) {
		var m map[string]json.RawMessage
		if json.Unmarshal(raw, &m) != nil {
			return
		}
		for k, v := range m {
			r.fields[prefix+k] = slowValueOf(v)
			inside(prefix+k+".", v)
		}
	}
	var top map[string]json.RawMessage
	if err := json.Unmarshal([]byte(line), &top); err != nil {
		panic(err)
	}
	inside("", top["attrs"])
	inside("attrs.", top["attrs"])
	inside("error.", top["error"])
	for k, v := range top {
		r.fields[k] = slowValueOf(v)
	}
	return r
}

func slowFields(names, as []string) slowStage {
	return func(rows []slowRow) (out []slowRow) {
		for _, r := range rows {
			next := slowRow{fields: map[string]slowValue{}, names: as}
			for i, name := range names {
				next.fields[as[i]] = r.fields[name]
			}
			out = append(out, next)
		}
		return out
	}
}

func slowSort(names []string, descending []bool) slowStage {
	return func(rows []slowRow) []slowRow {
		rows = slices.Clone(rows)
		slices.SortStableFunc(rows, func(a, b slowRow) int {
			for i, name := range names {
				x, y := a.fields[name], b.fields[name]
				c := slowCompareBy(name)(x, y)
				if descending[i] && x.kind != "" && y.kind != "" {
					c = -c
				}
				if c != 0 {
					return c
				}
			}
			return 0
		})
		return rows
	}
}

func slowLimit(n int) slowStage {
	return func(rows []slowRow) []slowRow { return rows[:min(n, len(rows))] }
}

// slowNumber writes a number from 1e-6 on, without an exponent up to 1e21.
func slowNumber(r *big.Rat) slowValue {
	const places = 40
	text := r.FloatString(places)
	whole := text[:len(text)-places-1]
	if digits := strings.TrimLeft(whole, "-"); len(digits) > 21 {
		sign := whole[:len(whole)-len(digits)]
		exponent := len(digits) - 1
		digits = strings.TrimRight(digits, "0")
		if len(digits) > 1 {
			digits = digits[:1] + "." + digits[1:]
		}
		return slowValue{"number", fmt.Sprintf("%s%se+%d", sign, digits, exponent)}
	}
	return slowValue{"number", strings.TrimRight(strings.TrimRight(text, "0"), ".")}
}

// slowKey is a value as stats groups by it: numbers in one form.
func slowKey(v slowValue) slowValue {
	if v.kind == "number" {
		return slowNumber(v.rat())
	}
	return v
}

func slowFloat(r *big.Rat) slowValue {
	f, _ := r.Float64()
	text, err := json.Marshal(max(-math.MaxFloat64, min(math.MaxFloat64, f)))
	if err != nil {
		panic(err)
	}
	return slowValue{"number", string(text)}
}

// slowCall is a function of stats over the values of a group.
func slowCall(function, name string, values []slowValue, rows int) slowValue {
	var numbers []*big.Rat
	var floats []float64
	large := false
	for _, v := range values {
		if r := v.rat(); r != nil {
			f, _ := r.Float64()
			f = max(-math.MaxFloat64, min(math.MaxFloat64, f))
			if math.Abs(f) >= 1e18 {
				r, large = new(big.Rat).SetFloat64(f), true
			}
			numbers = append(numbers, r)
			floats = append(floats, f)
		}
	}
	total := new(big.Rat)
	for _, n := range numbers {
		total.Add(total, n)
	}
	if f, _ := total.Float64(); math.IsInf(f, 0) {
		total.SetFloat64(math.MaxFloat64)
	}
	slices.Sort(floats)
	switch {
	case function == "rows":
		return slowValue{"number", strconv.Itoa(rows)}
	case function == "count":
		return slowValue{"number", strconv.Itoa(len(values))}
	case function == "uniq":
		different := map[slowValue]bool{}
		for _, v := range values {
			different[slowKey(v)] = true
		}
		return slowValue{"number", strconv.Itoa(len(different))}
	case function == "values":
		return slowValues(values)
	case function == "min" || function == "max":
		if len(values) == 0 {
			return slowValue{}
		}
		order := slowCompareBy(name)
		full := func(a, b slowValue) int {
			c := order(a, b)
			if function == "max" {
				c = -c
			}
			return cmp.Or(c, strings.Compare(a.text, b.text), strings.Compare(a.kind, b.kind))
		}
		return slices.MinFunc(values, full)
	case len(numbers) == 0 || function == "first" || function == "last":
		return slowValue{}
	case function == "sum" && large:
		return slowFloat(total)
	case function == "sum":
		return slowNumber(total)
	case function == "avg" && large:
		f, _ := total.Float64()
		return slowFloat(new(big.Rat).SetFloat64(f / float64(len(numbers))))
	case function == "avg":
		return slowFloat(total.Quo(total, big.NewRat(int64(len(numbers)), 1)))
	}
	percent, err := strconv.Atoi(function) // a quantile
	if err != nil {
		panic(err)
	}
	rank := max(1, (percent*len(floats)+99)/100)
	return slowFloat(new(big.Rat).SetFloat64(floats[rank-1]))
}

// slowValues is the list of the first 20 different values.
func slowValues(values []slowValue) slowValue {
	least := map[slowValue]slowValue{}
	for _, v := range values {
		if old, has := least[slowKey(v)]; !has || v.text < old.text {
			least[slowKey(v)] = v
		}
	}
	if len(least) == 0 {
		return slowValue{}
	}
	kinds := []string{"number", "string", "other"}
	list := slices.SortedFunc(maps.Values(least), func(a, b slowValue) int {
		return cmp.Or(slowCompareBy("")(a, b), slices.Index(kinds, a.kind)-slices.Index(kinds, b.kind), strings.Compare(a.text, b.text))
	})
	var texts []string
	for _, v := range list[:min(20, len(list))] {
		texts = append(texts, v.json())
	}
	return slowValue{"other", "[" + strings.Join(texts, ",") + "]"}
}

// slowEdge is the value of the first or last row, by time, that has one.
func slowEdge(rows []slowRow, name, function string) (best slowValue) {
	var when time.Time
	for _, r := range rows {
		v, at := r.fields[name], r.fields["time"]
		t, err := time.Parse(time.RFC3339Nano, at.text)
		if v.kind == "" || at.kind != "string" || err != nil {
			continue
		}
		c := t.Compare(when)
		if function == "last" {
			c = -c
		}
		if c = cmp.Or(c, strings.Compare(v.text, best.text), strings.Compare(v.kind, best.kind)); best.kind == "" || c < 0 {
			best, when = v, t
		}
	}
	return best
}

type slowGroup struct {
	keys []slowValue
	rows []slowRow
}

// slowStats groups by fields. Those with a step are times.
func slowStats(functions, of, names, by []string, steps []time.Duration) slowStage {
	return func(rows []slowRow) (out []slowRow) {
		var groups []*slowGroup
		if len(by) == 0 {
			groups = append(groups, &slowGroup{})
		}
		for _, r := range rows {
			keys := []slowValue{}
			for i, name := range by {
				v := slowKey(r.fields[name])
				if steps[i] > 0 {
					at, err := time.Parse(time.RFC3339Nano, v.text)
					if v.kind != "string" || err != nil {
						v = slowValue{}
					} else {
						v = slowValue{"string", at.Truncate(steps[i]).Format("2006-01-02T15:04:05.000000000Z")}
					}
				}
				keys = append(keys, v)
			}
			i := slices.IndexFunc(groups, func(g *slowGroup) bool { return slices.Equal(g.keys, keys) })
			if i < 0 {
				groups, i = append(groups, &slowGroup{keys: keys}), len(groups)
			}
			groups[i].rows = append(groups[i].rows, r)
		}
		kinds := []string{"", "number", "string", "other"}
		slices.SortFunc(groups, func(a, b *slowGroup) int {
			for i := range by {
				if c := slowCompareBy(by[i])(a.keys[i], b.keys[i]); c != 0 {
					return c
				}
			}
			return slices.CompareFunc(a.keys, b.keys, func(x, y slowValue) int {
				return cmp.Or(slices.Index(kinds, x.kind)-slices.Index(kinds, y.kind), strings.Compare(x.text, y.text))
			})
		})
		for _, g := range groups {
			row := slowRow{fields: map[string]slowValue{}, names: names}
			for i, v := range g.keys {
				row.fields[names[i]] = v
			}
			for i, function := range functions {
				var values []slowValue
				for _, r := range g.rows {
					if v := r.fields[of[i]]; v.kind != "" {
						values = append(values, v)
					}
				}
				row.fields[names[len(by)+i]] = slowCall(function, of[i], values, len(g.rows))
				if function == "first" || function == "last" {
					row.fields[names[len(by)+i]] = slowEdge(g.rows, of[i], function)
				}
			}
			out = append(out, row)
		}
		return out
	}
}

func (r slowRow) String() string {
	var parts []string
	for _, name := range r.names {
		if v := r.fields[name]; v.kind != "" {
			parts = append(parts, slowValue{"string", name}.json()+":"+v.json())
		}
	}
	switch members := strings.Join(parts, ","); {
	case r.line == "":
		return "{" + members + "}\n"
	case members == "":
		return r.line + "\n"
	case strings.Contains(r.line, `"attrs":{`): // is the last member, and not empty
		return strings.TrimSuffix(r.line, "}}") + "," + members + "}}\n"
	default:
		return strings.TrimSuffix(r.line, "}") + `,"attrs":{` + members + "}}\n"
	}
}

// pipeMaker makes random pipes, as text and as slow stages.
type pipeMaker struct {
	*rand.Rand
	names  []string // of fields of the rows
	text   []string
	stages []slowStage
	named  int // columns
}

// column returns a name that no other column has.
func (m *pipeMaker) column() string {
	m.named++
	return fmt.Sprintf("column %d of %d", m.named, m.IntN(1e6))
}

func one[T any](r *rand.Rand, list ...T) T { return list[r.IntN(len(list))] }

// some returns n different names of fields.
func (m *pipeMaker) some(n int) []string {
	names := slices.Clone(m.names)
	m.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	return names[:min(n, len(names))]
}

func (m *pipeMaker) add(text string, s slowStage) {
	m.text = append(m.text, text)
	m.stages = append(m.stages, s)
}

func (m *pipeMaker) addFields() {
	names := m.some(1 + m.IntN(4))
	as, parts := slices.Clone(names), slices.Clone(names)
	for i := range as {
		parts[i] = quoteName(as[i])
		if m.IntN(4) == 0 {
			as[i] = map[bool]string{true: "level "}[strings.HasPrefix(as[i], "level")] + m.column()
			parts[i] += fmt.Sprintf(" as %q", as[i])
		}
	}
	m.add("fields "+strings.Join(parts, one(m.Rand, ",", " , ")), slowFields(names, as))
	m.names = as
}

func quoteName(name string) string {
	if strings.ContainsAny(name, " ()") {
		return strconv.Quote(name)
	}
	return name
}

func (m *pipeMaker) addSort() {
	names := m.some(1 + m.IntN(2))
	var parts []string
	descending := make([]bool, len(names))
	for i, name := range names {
		switch m.IntN(4) {
		case 0:
			parts = append(parts, "-"+quoteName(name))
			descending[i] = true
		case 1:
			parts = append(parts, quoteName(name)+" desc")
			descending[i] = true
		case 2:
			parts = append(parts, quoteName(name)+" asc")
		default:
			parts = append(parts, quoteName(name))
		}
	}
	list := strings.Join(parts, ", ")
	m.add("sort "+one(m.Rand, list, "by "+list, "by ("+list+")"), slowSort(names, descending))
}

const slowJSONNumber = `-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?`

// parsers are pipes and what they are as regular expressions.
var parsers = []struct {
	text, rx string
	names    []string
	number   []bool
}{
	{`"<p1> <p2> took <ms:number>"`, `(?s)^(.*?) (.*?) took (` + slowJSONNumber + `)`, []string{"p1", "p2", "ms"}, []bool{false, false, true}},
	{`"job <id:number> <p1>"`, `(?s)^(?:[^j]|j[^o])*?job (` + slowJSONNumber + `) (.*)$`, []string{"id", "p1"}, []bool{true, false}},
	{`"<_> <p1> "`, `(?s)^.*? (.*?) `, []string{"p1"}, []bool{false}},
	{`"\"<p2>\""`, `(?s)^[^"]*"(.*?)"`, []string{"p2"}, []bool{false}},
	{`~"code=(?P<id>\d+)|(?P<p1>[a-z]+) "`, `code=(\d+)|([a-z]+) `, []string{"id", "p1"}, []bool{false, false}},
	{`~ "^(?P<p2>\S+)"`, `^(\S+)`, []string{"p2"}, []bool{false}},
}

func (m *pipeMaker) addParse() {
	from := "msg"
	text := "parse "
	if !slices.Contains(m.names, "msg") || m.IntN(3) == 0 {
		from = m.some(1)[0]
		text += quoteName(from) + " "
	}
	p := one(m.Rand, parsers...)
	rx := regexp.MustCompile(p.rx)
	m.add(text+p.text, func(rows []slowRow) (out []slowRow) {
		for _, r := range rows {
			next := slowRow{line: r.line, fields: maps.Clone(r.fields), names: slices.Clone(r.names)}
			v := r.fields[from]
			found := rx.FindStringSubmatchIndex(v.text)
			for i, name := range p.names {
				if !slices.Contains(next.names, name) {
					next.names = append(next.names, name)
				}
				if v.kind == "" || found == nil || found[2*i+2] < 0 {
					continue
				}
				kind := "string"
				if p.number[i] {
					kind = "number"
				}
				next.fields[name] = slowValue{kind, v.text[found[2*i+2]:found[2*i+3]]}
			}
			out = append(out, next)
		}
		return out
	})
	for _, name := range p.names {
		if !slices.Contains(m.names, name) {
			m.names = append(m.names, name)
		}
	}
}

func (m *pipeMaker) addLimit() {
	n := 1 + m.IntN(20)
	m.add(fmt.Sprint("limit ", n), slowLimit(n))
}

func (m *pipeMaker) addStats() {
	var functions, of, calls, by, groups []string
	var steps []time.Duration
	for range 1 + m.IntN(3) {
		function, name := one(m.Rand, "rows", "count", "sum", "avg", "min", "max", "uniq", "values", "first", "last", "0", "7", "50", "99", "100"), m.some(1)[0]
		if (function == "first" || function == "last") && !slices.Contains(m.names, "time") {
			function = "max"
		}
		text := fmt.Sprintf("%s(%s)", function, quoteName(name))
		if percent, err := strconv.Atoi(function); err == nil {
			text = fmt.Sprintf("quantile(%g, %s)", float64(percent)/100, quoteName(name))
		}
		if function == "rows" {
			text, name = one(m.Rand, "count()", "count"), ""
		}
		functions, of, calls = append(functions, function), append(of, name), append(calls, text)
	}
	for _, name := range m.some(m.IntN(3)) {
		text, step := quoteName(name), time.Duration(0)
		if name == "time" && m.IntN(2) == 0 {
			step = one(m.Rand, time.Hour, 5*time.Minute, 500*time.Millisecond, 7*24*time.Hour, 36*time.Hour)
			text = map[time.Duration]string{time.Hour: "time(1h)", 5 * time.Minute: "time( 5m )", 500 * time.Millisecond: "time(500ms)", 7 * 24 * time.Hour: "time(1w)", 36 * time.Hour: "time(36h)"}[step]
			if step == 36*time.Hour {
				step, text = 0, name // Truncate counts from another year
			}
		}
		by, groups, steps = append(by, name), append(groups, text), append(steps, step)
	}
	names := slices.Clone(by)
	for i := range calls {
		name := m.column()
		if slices.Contains([]string{"min", "max", "first", "last"}, functions[i]) && strings.HasPrefix(of[i], "level") {
			name = "level " + name
		}
		names = append(names, name)
		calls[i] += fmt.Sprintf(" as %q", name)
	}
	text := "stats " + strings.Join(calls, ", ")
	if len(by) > 0 {
		list := strings.Join(groups, ",")
		text += one(m.Rand, " by "+list, " by ("+list+")")
	}
	m.add(text, slowStats(functions, of, names, by, steps))
	m.names = slices.Clone(by)
	for i, function := range functions {
		if function != "avg" { // rounded, and so of no use to compare what comes of it
			m.names = append(m.names, names[len(by)+i])
		}
	}
}

func (m *pipeMaker) addTop() {
	by := m.some(1 + m.IntN(2))
	var quoted []string
	for _, name := range by {
		if name == "count" {
			return
		}
		quoted = append(quoted, quoteName(name))
	}
	n := one(m.Rand, 10, 1+m.IntN(4))
	text := fmt.Sprint("top ", n, " ")
	if n == 10 {
		text = "top "
	}
	names := append(slices.Clone(by), "count")
	stats := slowStats([]string{"rows"}, []string{""}, names, by, make([]time.Duration, len(by)))
	m.add(text+one(m.Rand, "", "by ")+strings.Join(quoted, ","), func(rows []slowRow) []slowRow {
		return slowLimit(n)(slowSort([]string{"count"}, []bool{true})(stats(rows)))
	})
	m.names = names
}

var lineFields = []string{"time", "level", "msg", "service", "took", "user", "http.status", "tags", "flag", "attrs.level", "error.kind"}

// randomPipes makes up to four pipes.
func randomPipes(r *rand.Rand) *pipeMaker {
	m := &pipeMaker{Rand: r, names: slices.Clip(lineFields)}
	for range 1 + r.IntN(4) {
		if len(m.names) == 0 {
			break
		}
		one(r, m.addFields, m.addSort, m.addLimit, m.addStats, m.addStats, m.addTop, m.addParse)()
	}
	return m
}

// randomLine makes a canonical line that has no field twice.
func randomLine(r *rand.Rand, i int) string {
	var b strings.Builder
	fmt.Fprintf(&b, `{"time":"2026-05-%02dT%02d:%02d:00.%09dZ","level":"%s","msg":%s`, 1+r.IntN(3), r.IntN(3), r.IntN(60), r.IntN(3)*250_000_000,
		one(r, "TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL"),
		one(r, `"GET /a/b took 15 ms"`, `"user \"x\" gone"`, `"job 7 failed"`, `"job 12 failed"`, `""`, `"PUT /c took 1.5 ms code=7"`, strconv.Quote(fmt.Sprint("n ", i))))
	if r.IntN(3) > 0 {
		b.WriteString(one(r, `,"service":"pay"`, `,"service":"ledger"`, `,"service":"\u00e9\"x"`))
	}
	if r.IntN(4) == 0 {
		b.WriteString(one(r, `,"error":{"kind":"timeout","msg":"late"}`, `,"error":"plain"`))
	}
	var attrs []string
	if r.IntN(5) > 0 {
		attrs = append(attrs, `"took":`+one(r, "1", "1.0", "10e-1", "15", "-3", "0.1", "0.2", `"7"`, `"slow"`, "null", "9007199254740993", "9007199254740992", "1e400", fmt.Sprint(r.IntN(50))))
	}
	if r.IntN(5) > 0 {
		attrs = append(attrs, `"user":`+one(r, `"a"`, `"b"`, `"10"`, "10", `"a\nb"`, strconv.Quote(fmt.Sprint("u", r.IntN(30)))))
	}
	if r.IntN(2) == 0 {
		attrs = append(attrs, one(r, `"http":{"status":200,"path":"/"}`, `"http":{"status":503}`, `"http.status":404`, `"http":7`))
	}
	if r.IntN(4) == 0 {
		attrs = append(attrs, one(r, `"tags":["a",1]`, `"tags":{}`, `"tags":"a"`), `"flag":`+one(r, "true", "false"), `"level":"L2"`)
	}
	if len(attrs) > 0 {
		b.WriteString(`,"attrs":{` + strings.Join(attrs, ",") + "}")
	}
	return b.String() + "}"
}

// runOver returns the rows that pipes make of lines.
func runOver(t testing.TB, p *pipe.Pipeline, lines []string) string {
	t.Helper()
	var out []byte
	run := p.Start(pipe.Env{
		Out:   func(r *pipe.Row) error { out = appendRow(out, p.Columns, r); return nil },
		Take:  func(int) error { return nil },
		Check: func() error { return nil },
	})
	for _, line := range lines {
		more, err := run.Line([]byte(line + "\n"))
		if err != nil {
			t.Fatal(err)
		}
		if !more {
			break
		}
	}
	if err := run.End(); err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// Pipes give what the slow evaluation gives.
func TestPipesLikeSlow(t *testing.T) {
	rounds := uint64(testkit.RaceRounds(t, 1000, 10_000))
	seed := rand.Uint64()
	for round := range rounds {
		r := rand.New(rand.NewPCG(seed, round))
		lines := make([]string, r.IntN(25))
		for i := range lines {
			lines[i] = randomLine(r, i)
		}
		m := randomPipes(r)
		expr := "|" + strings.Join(m.text, " | ")
		_, p, err := parsePiped(expr, testNow)
		if err != nil {
			t.Fatalf("seed %d, round %d: %v", seed, round, err)
		}
		var rows []slowRow
		for _, line := range lines {
			rows = append(rows, slowLine(line))
		}
		for _, s := range m.stages {
			rows = s(rows)
		}
		var want strings.Builder
		for _, row := range rows {
			want.WriteString(row.String())
		}
		if got := runOver(t, p, lines); got != want.String() {
			t.Fatalf("seed %d, round %d: %s\ngot\n%swant\n%slines\n%s", seed, round, expr, got, want.String(), strings.Join(lines, "\n"))
		}
	}
}

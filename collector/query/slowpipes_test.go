package query

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"math/big"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rollway/rollway/collector/query/pipe"
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
	names  []string // of the columns, in order
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

func (r slowRow) String() string {
	if r.line != "" {
		return r.line + "\n"
	}
	var parts []string
	for _, name := range r.names {
		if v := r.fields[name]; v.kind != "" {
			parts = append(parts, slowValue{"string", name}.json()+":"+v.json())
		}
	}
	return "{" + strings.Join(parts, ",") + "}\n"
}

// pipeMaker makes random pipes, as text and as slow stages.
type pipeMaker struct {
	*rand.Rand
	names  []string // of fields of the rows
	text   []string
	stages []slowStage
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
			as[i] = map[bool]string{true: "level "}[strings.HasPrefix(as[i], "level")] + "column " + strconv.Itoa(m.IntN(1000000))
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

func (m *pipeMaker) addLimit() {
	n := 1 + m.IntN(20)
	m.add(fmt.Sprint("limit ", n), slowLimit(n))
}

var lineFields = []string{"time", "level", "msg", "service", "took", "user", "http.status", "tags", "flag", "attrs.level", "error.kind"}

// randomPipes makes up to four pipes.
func randomPipes(r *rand.Rand) *pipeMaker {
	m := &pipeMaker{Rand: r, names: lineFields}
	for range 1 + r.IntN(4) {
		one(r, m.addFields, m.addSort, m.addLimit)()
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
	const rounds = 10_000
	seed := rand.Uint64()
	for round := range uint64(rounds) {
		r := rand.New(rand.NewPCG(seed, round))
		lines := make([]string, r.IntN(40))
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

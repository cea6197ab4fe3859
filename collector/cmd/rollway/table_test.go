package main

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"
)

// all returns what a table makes of rows.
func (t *table) all(rows ...string) string {
	t.renderer = &renderer{utc: true}
	for _, row := range rows {
		t.add([]byte(row))
	}
	t.hold = false
	return string(t.flush(nil))
}

func TestTable(t *testing.T) {
	long := strings.Repeat("x", 100)
	for _, tt := range []struct {
		name  string
		table table
		rows  []string
		want  []string
	}{
		{"numbers are at the right, times short", table{columns: []string{"time", "n"}}, []string{`{"time":"2026-05-28T12:40:00.000000000Z","n":5}`, `{"n":1000}`, `{"time":"2026-05-28T12:40:00.250000000Z","n":1e2}`},
			[]string{"time                         n", "2026-05-28 12:40:00.000Z     5", "                          1000", "2026-05-28 12:40:00.250Z   1e2"}},
		{"a text among numbers", table{columns: []string{"n", "b"}}, []string{`{"n":5,"b":true}`, `{"n":"five","b":null}`}, []string{"n     b", "5     true", "five  null"}},
		{"what controls a terminal", table{columns: []string{"\x1b[2J"}}, []string{`{"\u001b[2J":"\u202e\n"}`}, []string{`\x1b[2J`, `\u202e\n`}},
		{"no object", table{columns: []string{"a", "msg"}}, []string{"plain\n", `{"a":1`, ""}, []string{"a  msg", `   plain`, `   {"a":1`, ""}},
		{"too wide", table{columns: []string{"a", "b", "n"}, width: 30}, []string{`{"a":"` + long + `","b":"short","n":123456}`}, []string{"a                b           n", "xxxxxxxxxxxxxx…  short  123456"}},
		{"narrower than can be", table{columns: []string{"a", "b"}, width: 5}, []string{`{"a":"` + long + `","b":"` + long + `"}`}, []string{"a         b", "xxxxxxx…  xxxxxxx…"}},
		{"bars", table{columns: []string{"s", "n"}, bars: barsIfFit, width: 20}, []string{`{"s":"a","n":10}`, `{"s":"b","n":5}`, `{"s":"c","n":0}`, `{"s":"d","n":0.01}`, `{"s":"e"}`, `{"s":"f","n":-5}`},
			[]string{"s     n", "a    10  ██████████", "b     5  █████", "c     0", "d  0.01  ▏", "e", "f    -5  ░░░░░"}},
		{"two columns of numbers", table{columns: []string{"s", "n", "m"}, bars: barsIfFit}, []string{`{"s":"a","n":1,"m":1}`, `{"s":"a","n":1,"m":1}`}, []string{"s  n  m", "a  1  1", "a  1  1"}},
		{"two columns of numbers by time", table{columns: []string{"time", "n", "m"}, bars: barsIfFit, width: 25}, []string{`{"time":"1","n":1,"m":1}`, `{"time":"2","n":2,"m":1}`}, []string{"time  n  m", "1     1  1  ██████", "2     2  1  ████████████"}},
		{"groups by number", table{columns: []string{"status", "count"}, bars: barsIfFit, width: 25}, []string{`{"status":200,"count":2}`, `{"status":503,"count":1}`}, []string{"status  count", "   200      2  ██████████", "   503      1  █████"}},
		{"no room", table{columns: []string{"s", "n"}, bars: barsIfFit, width: 12}, []string{`{"s":"a","n":1}`, `{"s":"a","n":1}`}, []string{"s  n", "a  1", "a  1"}},
		{"fields that no line has", table{columns: lineColumns}, []string{`{"level":"INFO","msg":"m"}`}, []string{"level  msg", "INFO   m"}},
		{"nothing", table{columns: []string{"a"}}, nil, nil},
	} {
		want := strings.Join(tt.want, "\n")
		if tt.rows != nil {
			want += "\n"
		}
		if got := tt.table.all(tt.rows...); got != want {
			t.Errorf("%s:\n%s\nwant\n%s", tt.name, got, want)
		}
	}
}

// A table that waits for its end does not wait for more than maxHeld rows.
func TestTableIsBounded(t *testing.T) {
	w := table{renderer: &renderer{}, columns: []string{"n"}, hold: true, bars: barsAlways}
	var text []byte
	for i := range maxHeld + 10 {
		w.add(fmt.Appendf(nil, `{"n":%d}`, i))
		text = w.flush(text)
	}
	if got := strings.Count(string(text), "\n"); got != maxHeld+11 || len(w.rows) > 0 {
		t.Errorf("%d lines, %d rows held", got, len(w.rows))
	}
}

// No cell is wider than the terminal lets it be, or leaves its row.
func FuzzTable(f *testing.F) {
	f.Add([]byte(`{"a":"x\ny","b":-1e400}`), 30)
	f.Add([]byte(`{"a":[1,{"b":"\u009b"}],"b":12}`), 9)
	f.Fuzz(func(t *testing.T, row []byte, width int) {
		w := table{columns: []string{"a", "b"}, width: min(max(0, width), 1000), bars: barsAlways}
		text := w.all(string(row), `{"b":1}`)
		if strings.Count(text, "\n") != 3 || !utf8.ValidString(text) {
			t.Fatalf("%q", text)
		}
		for _, r := range text {
			if controls(r) {
				t.Fatalf("%q", text)
			}
		}
	})
}

func TestCSV(t *testing.T) {
	got := string(appendCSV(nil, []string{"a", "b,c", `d"e`, "f\ng\r\n", "", " "})) + string(appendCSV(nil, []string{""}))
	if want := "a,\"b,c\",\"d\"\"e\",\"f\ng\r\n\",, \r\n\"\"\r\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

package columns

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// cellLines are lines whose columns have all forms.
func cellLines(r *rand.Rand) []byte {
	number, user := r.IntN(4), r.IntN(6)
	var b bytes.Buffer
	for i := range 20 + r.IntN(80) {
		fmt.Fprintf(&b, `{"time":"2026-05-28T12:40:%02d.%09dZ","level":"%s"`, i%60, r.IntN(1e9), []string{"INFO", "WARN"}[r.IntN(2)])
		if r.IntN(3) > 0 {
			b.WriteString(`,"n":` + []string{fmt.Sprint(r.IntN(9)), fmt.Sprintf("%d.%02d", r.IntN(20), r.IntN(99)), fmt.Sprint(-r.IntN(1 << 40)), fmt.Sprintf("%.1e", r.Float64())}[number])
		}
		b.WriteString(`,"user":"` + []string{fmt.Sprintf("cus_%04d", r.IntN(500)), fmt.Sprintf("%x", r.Uint64()), "é" + strings.Repeat("x", r.IntN(50)),
			fmt.Sprintf("10.%d.0.%d", r.IntN(2), r.IntN(256)), fmt.Sprintf("10.0.%d.%d", r.IntN(300), r.IntN(1<<17)), fmt.Sprintf("cus_%04d of %03d", r.IntN(500), r.IntN(300))}[user] + `"`)
		if r.IntN(9) == 0 {
			b.WriteString(`,"in":{"a":"` + fmt.Sprint(r.IntN(3)) + `"}`)
		}
		b.WriteString("}\n")
		if r.IntN(30) == 0 {
			b.WriteString("whole\n")
		}
	}
	return b.Bytes()
}

// someRows requires the lines of random rows, and that no column of other shapes alone was read.
func someRows(t *testing.T, r *rand.Rand, b *Block, lines []byte) {
	t.Helper()
	rows, needed := b.Rows(), make([]bool, len(b.columns))
	for i := range b.columns {
		needed[i] = b.columns[i].read
	}
	var want []byte
	row, often := 0, 1+r.IntN(200)
	for line := range bytes.Lines(lines) {
		if r.IntN(often) == 0 {
			rows.add(row)
			want = append(want, line...)
			for _, c := range b.shapes[b.rows[row]].holes {
				needed[c] = true
			}
		} else {
			want = append(want, '\n')
		}
		row++
	}
	if got, err := b.AppendRows(nil, rows, nil); err != nil || !bytes.Equal(got, want) {
		t.Fatalf("%v: got\n%swant\n%s", err, got, want)
	}
	for i, c := range b.columns {
		if c.read != needed[i] {
			t.Fatalf("column %d was read: %v", i, c.read)
		}
	}
}

// TestCells joins lines of shapes and cells, and tells values apart by their Ints, also those of other
// blocks.
func TestCells(t *testing.T) {
	t.Parallel()
	const seed = 20261128
	r := rand.New(rand.NewPCG(seed, 1))
	e, b := encoder(t), &Block{Own: true}
	kinds := make(map[Kind]int)
	spelled := make(map[string]string) // JSON
	again, written := 0, 0
	for round := range 600 {
		lines := cellLines(r)
		block := e.Append(nil, lines)
		if err := b.Open(block, len(lines)); err != nil {
			t.Fatal(err)
		}
		if round%3 == 0 { // as a search for texts leaves it
			if err := b.Find(b.Rows(), func(string) *Matcher { return &Matcher{Any: [][]byte{{'7'}}} }); err != nil {
				t.Fatal(err)
			}
		}
		someRows(t, r, b, lines)
		cells := make([]Cells, len(b.columns))
		for i := range cells {
			if err := b.Cells(i, &cells[i]); err != nil {
				t.Fatal(err)
			}
			kinds[cells[i].Kind]++
		}
		clear(block) // no column refers to it
		if b.Len() != bytes.Count(lines, []byte{'\n'}) {
			t.Fatalf("seed %d: %d rows", seed, b.Len())
		}
		var got, buf []byte
		for row, shape := range b.rows {
			s := &b.shapes[shape]
			for i, h := range s.holes {
				var json []byte
				json, buf = cells[h].JSON(buf[:0], cells[h].At(row))
				got = append(append(got, s.pieces[i]...), json...)
			}
			got = append(got, s.pieces[len(s.holes)]...)
			for c := range cells {
				if has := cells[c].At(row) >= 0; has != b.Has(int(shape), c) {
					t.Fatalf("seed %d: row %d has column %d: %v", seed, row, c, has)
				}
			}
		}
		if !bytes.Equal(got, lines) {
			t.Fatalf("seed %d: got\n%swant\n%s", seed, got, lines)
		}
		for i := range cells {
			c := &cells[i]
			texts := make(map[int64]string)
			for value := range b.columns[i].n {
				n := int64(0)
				switch c.Kind {
				case Texts:
					continue
				case Same:
				default:
					n = c.Ints[value]
				}
				json, _ := c.JSON(nil, value)
				if before, ok := texts[n]; ok && before != string(json) {
					t.Fatalf("seed %d: %s and %s are both %d", seed, before, json, n)
				}
				texts[n] = string(json)
				if c.Kind >= Spelled {
					key := fmt.Sprint(c.Kind, " ", c.Digits, " ", n, " ", string(c.Spelling))
					if before, ok := spelled[key]; ok && before != string(json) {
						t.Fatalf("seed %d: %s and %s are both %s", seed, before, json, key)
					} else if ok && c.Kind == Spelled {
						again++
					}
					spelled[key] = string(json)
					if s, ok := NewSpelling(c); ok {
						written++
						if back, ok := s.Number(json); !ok || back != n || string(s.Append(nil, n)) != string(json) {
							t.Fatalf("seed %d: %s is %d, %v; written as %s", seed, json, back, ok, s.Append(nil, n))
						}
						other := slices.Clone(json)
						other[r.IntN(len(other))] = "0123456789-.\"x"[r.IntN(14)]
						if n, ok := s.Number(other); ok && string(s.Append(nil, n)) != string(other) {
							t.Fatalf("seed %d: %s is %d", seed, other, n)
						}
					}
				}
				if c.Kind == Indexes && n >= int64(c.Len()) || len(json) > c.Size() && c.Kind < Spelled {
					t.Fatalf("seed %d: %s is %d of %d, of %d bytes", seed, json, n, c.Len(), c.Size())
				}
				if c.Kind == Numbers && string(appendDecimal(nil, n, c.Digits)) != string(json) {
					t.Fatalf("seed %d: %s is %d with %d digits", seed, json, n, c.Digits)
				}
			}
		}
	}
	if again < 1000 || written < 10_000 {
		t.Errorf("%d values of other blocks, %d written: that proves little", again, written)
	}
	for kind := range Times + 1 {
		if kinds[kind] < 100 {
			t.Errorf("%d columns of kind %d: that proves little", kinds[kind], kind)
		}
	}
}

// TestFindNumbers finds numbers and times by their integers as by their texts.
func TestFindNumbers(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(20261128, 2))
	e, b := encoder(t), new(Block)
	found := 0
	for range 200 {
		lines := cellLines(r)
		if err := b.Open(e.Append(nil, lines), len(lines)); err != nil {
			t.Fatal(err)
		}
		m := &Matcher{Match: func([]byte) bool { return false }}
		low := r.Int64N(1000) - 300
		m.Numbers = func(int) Range { return Range{low, low + 700} }
		at := int64(1779972000)*1e9 + 30e9
		m.Times = &Range{at, at + 10e9}
		got := b.Rows()
		if err := b.Find(got, func(string) *Matcher { return m }); err != nil {
			t.Fatal(err)
		}
		var ints Cells
		want := b.Rows()
		for i := range b.columns {
			if err := b.Cells(i, &ints); err != nil {
				t.Fatal(err)
			}
			for row := range b.Len() {
				value := ints.At(row)
				if value < 0 || ints.Kind < Numbers {
					continue
				}
				n := ints.Ints[value]
				if ints.Kind == Numbers && n >= low && n <= low+700 || ints.Kind == Times && n >= at && n <= at+10e9 {
					want.add(row)
					found++
				}
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("got %v, want %v of\n%s", got, want, lines)
		}
	}
	if found < 1000 {
		t.Errorf("%d found: that proves little", found)
	}
}

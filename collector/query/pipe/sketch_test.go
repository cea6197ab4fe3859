package pipe

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/rollway/rollway/internal/jsonwalk"
)

func number(f float64) Value {
	return Value{Number, strconv.AppendFloat(nil, f, 'g', -1, 64)}
}

func valueFloat(t *testing.T, v Value) float64 {
	t.Helper()
	f, err := strconv.ParseFloat(string(v.Text), 64)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// A quantile of more values than are held is within 1 % of the value of its rank.
func TestQuantileError(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for name, next := range map[string]func() float64{
		"even":     func() float64 { return r.Float64() * 1000 },
		"normal":   func() float64 { return r.NormFloat64() },
		"wide":     func() float64 { return math.Exp(r.NormFloat64() * 100) },
		"whole":    func() float64 { return float64(r.IntN(100)) },
		"extremes": func() float64 { return []float64{math.MaxFloat64, -math.MaxFloat64, 5e-324, -5e-324, 0}[r.IntN(5)] },
	} {
		q := &quantile{memory: new([]float64)}
		var all []float64
		held := 0
		for range 20_000 {
			f := next()
			all = append(all, f)
			held += q.add(number(f))
		}
		if q.estimate() == "" || held != bucketBytes*len(q.buckets) {
			t.Errorf("%s: %q, %d bytes, %d buckets", name, q.estimate(), held, len(q.buckets))
		}
		slices.Sort(all)
		for _, q.p = range []float64{0, 0.01, 0.1, 0.5, 0.9, 0.99, 0.999, 1} {
			want := all[max(1, int(math.Ceil(q.p*float64(len(all))-1e-9)))-1]
			got := valueFloat(t, q.value(nil))
			if math.Abs(got-want) > accuracy*1.000001*math.Abs(want) && math.Abs(want) > 1e-300 {
				t.Errorf("%s: quantile %g is %g, want %g", name, q.p, got, want)
			}
		}
	}
}

// A quantile of parts of any sizes is that of all numbers.
func TestQuantileOfParts(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for range 300 {
		var all []float64
		into := &quantile{p: r.Float64(), memory: new([]float64)}
		for range 1 + r.IntN(12) {
			part := &quantile{p: into.p, memory: new([]float64)}
			for range r.IntN([]int{3, 100, 1500}[r.IntN(3)]) {
				f := float64(r.IntN(500))
				all = append(all, f)
				part.add(number(f))
			}
			if r.IntN(4) == 0 {
				into, part = part, into
			}
			before := into.held()
			grown := into.merge(part)
			if r.IntN(3) == 0 {
				into.value(nil)
			} else if into.buckets == nil && grown != into.held()-before {
				t.Fatalf("%d bytes are %d, and grow by %d", before, into.held(), grown)
			}
		}
		if len(all) == 0 || into.buckets != nil {
			continue
		}
		slices.Sort(all)
		want := all[max(1, int(math.Ceil(into.p*float64(len(all))-1e-9)))-1]
		if got := valueFloat(t, into.value(nil)); got != want || into.n != int64(len(all)) {
			t.Fatalf("quantile %g of %d numbers is %g, want %g of %d", into.p, into.n, got, want, len(all))
		}
	}
}

// If the memory for exact quantiles is refused, they are estimated.
func TestQuantileShort(t *testing.T) {
	took, group := Field{Name: "took", Index: 0}, Field{Name: "group", Index: 1}
	p := &Pipeline{Stages: []Stage{
		&Fields{Fields: []Field{took, group}},
		&Stats{Groups: []Group{{Field: group}}, Calls: []Call{{Name: "q", Function: "quantile", Field: &took, P: 0.5}}},
	}}
	for limit, want := range map[int]string{1 << 20: "", 150 << 10: "within 1 % of the value"} {
		held, rows, wrong := 0, 0, 0
		run := p.Start(Env{
			Out: func(r *Row) error {
				if got := valueFloat(t, r.Values[1]); math.Abs(got-13_000) > accuracy*13_000 || want == "" && math.Abs(got-13_000) > 8 {
					wrong++
				}
				rows++
				return nil
			},
			Take: func(n int) error {
				if held+n > limit {
					return errors.New("too much")
				}
				held += n
				return nil
			},
			Check: func() error { return nil },
		})
		for i := range 24_000 {
			row := Row{Values: []Value{number(float64(1000 + i)), number(float64(i % 8))}}
			if err := run.steps[0].row(&row); err != nil {
				t.Fatalf("limit %d, row %d: %v", limit, i, err)
			}
		}
		if err := run.End(); err != nil || rows != 8 || wrong > 0 || run.Estimates()["q"] != want {
			t.Errorf("limit %d: %v, %d rows, %d wrong, %v", limit, err, rows, wrong, run.Estimates())
		}
	}
}

// The error of uniq is below four standard errors, for few values and many.
func TestUniqError(t *testing.T) {
	for _, n := range []int{1, 1024, 1025, 2000, 10_000, 40_000, 200_000, 1_000_000} {
		u := &uniq{}
		for i := range n {
			v := Value{String, fmt.Appendf(nil, "value %d", i)}
			u.add(v)
			if i%3 == 0 {
				u.add(v)
			}
		}
		got := valueFloat(t, u.value(nil))
		if u.estimate() == "" && got != float64(n) || math.Abs(got-float64(n)) > 4*0.0115*float64(n) {
			t.Errorf("%d values are counted as %g", n, got)
		}
	}
}

// Sums of whole numbers and of decimals are exact.
func TestSumExact(t *testing.T) {
	for _, c := range []struct {
		add  []string
		want string
	}{
		{[]string{"0.1", "0.2"}, "0.3"},
		{[]string{"999999999999999999", "1", "999999999999999999", "-0.000000001"}, "1999999999999999998.999999999"},
		{[]string{"-1", "1.0"}, "0"},
		{[]string{"9007199254740993", "-9007199254740992", "-2"}, "-1"},
		{[]string{"1e3", "12.50e-1"}, "1001.25"},
		{[]string{"1e20", "1"}, "100000000000000000000"}, // in double precision
		{[]string{"-0.000000001", "-0.999999999"}, "-1"},
	} {
		s := &sum{}
		for _, text := range c.add {
			s.add(Value{Number, []byte(text)})
		}
		if got := string(s.value(nil).Text); got != c.want {
			t.Errorf("%v: %s", c.add, got)
		}
	}
}

func BenchmarkStats(b *testing.B) {
	took := Field{Name: "took", Index: 0}
	service := Field{Name: "service", Index: 1}
	p := &Pipeline{Stages: []Stage{
		&Fields{Fields: []Field{took, service}},
		&Stats{Groups: []Group{{Field: service}}, Calls: []Call{{Function: "count"}, {Function: "sum", Field: &took}, {Function: "quantile", Field: &took, P: 0.99}, {Function: "uniq", Field: &took}}},
	}}
	run := p.Start(Env{Out: func(*Row) error { return nil }, Take: func(int) error { return nil }, Check: func() error { return nil }})
	var rows []Row
	for i := range 10_000 {
		rows = append(rows, Row{Values: []Value{number(float64(i) / 8), {String, fmt.Appendf(nil, "service %d", i%20)}}})
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if err := run.steps[0].row(&rows[i%len(rows)]); err != nil {
			b.Fatal(err)
		}
	}
}

// nth finds what a sorted list has, also of equal numbers and in orders that are bad for it.
func TestNth(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 3000 {
		list := make([]float64, 1+r.IntN(200))
		different := 1 + r.IntN(300)
		for i := range list {
			list[i] = float64(r.IntN(different) - 100)
		}
		sorted := slices.Sorted(slices.Values(list))
		switch r.IntN(3) {
		case 0:
			copy(list, sorted)
		case 1:
			copy(list, sorted)
			slices.Reverse(list)
		}
		for range 3 {
			if n := r.IntN(len(list)); nth(list, n) != sorted[n] {
				t.Fatalf("number %d of %v is not %v", n, list, sorted[n])
			}
		}
		if slices.Sort(list); !slices.Equal(list, sorted) {
			t.Fatal("the numbers are not the same")
		}
	}
}

// Sums of 64 bits are written and divided as rationals are, and integers are added as texts are.
func TestFixed(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 20_000 {
		n, digits := r.Int64N(1e18)>>r.IntN(60), r.IntN(10)
		if r.IntN(2) == 0 {
			n = -n
		}
		x := fixedOfInt(n, digits)
		text := strconv.AppendInt(nil, n, 10)
		text = fmt.Appendf(text, "e-%d", digits)
		d, _ := jsonwalk.ParseDecimal(text)
		if y, ok := fixedOf(d); !ok || x != y {
			t.Fatalf("%s is %v, want %v", text, x, y)
		}
		if f, ok := floatOfInt(n, digits); ok && f != floatOf(text) {
			t.Fatalf("%s is %v, want %v", text, f, floatOf(text))
		}
		if r.IntN(3) == 0 {
			x = x.plus(fixed{r.Int64N(1 << 40), r.Uint64()})
		}
		d, _ = jsonwalk.ParseDecimal([]byte(x.rat().FloatString(fixedDigits)))
		if got, want := string(x.appendTo(nil)), string(d.AppendTo(nil)); got != want {
			t.Fatalf("%v is %s, want %s", x, got, want)
		}
		rows := 1 + r.Int64N(1<<r.IntN(62))
		want, _ := new(big.Rat).Quo(x.rat(), new(big.Rat).SetInt64(rows)).Float64()
		if got := x.mean(rows); got != want {
			t.Fatalf("%v divided by %d is %v, want %v", x, rows, got, want)
		}
	}
}

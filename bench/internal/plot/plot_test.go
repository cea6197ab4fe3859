package plot

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
)

// elements parses an SVG and counts its elements by name.
func elements(t *testing.T, svg string) map[string]int {
	t.Helper()
	counts := map[string]int{}
	for d := xml.NewDecoder(strings.NewReader(svg)); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return counts
		}
		if err != nil {
			t.Fatalf("no XML: %v\n%s", err, svg)
		}
		if e, ok := token.(xml.StartElement); ok {
			counts[e.Name.Local]++
		}
	}
}

func TestBars(t *testing.T) {
	svg := Bars("a < b", "ms", []BarPanel{
		{Title: "one", Bars: []Bar{{Name: "x & y", Value: 10, Low: 8, High: 20, Own: true}, {Name: "z", Value: 5, Low: 5, High: 5}}},
		{Title: "two", Unit: "s", Bars: []Bar{{Name: "x", Value: 0}}},
		{Title: "three"},
	})
	if n := elements(t, svg); n["rect"] != 1+3 || n["line"] != 3 {
		t.Errorf("elements %v of\n%s", n, svg)
	}
	scale := float64(panelWidth - 150 - 75)
	for _, want := range []string{"x &amp; y", "10 ms", "0 s", `fill="` + colors[0] + `"`, "a &lt; b"} {
		if !strings.Contains(svg, want) {
			t.Errorf("%q is not in\n%s", want, svg)
		}
	}
	if strings.Count(svg, `width="117.5"`) != 1 || scale/2 != 117.5 {
		t.Errorf("the bar of 10 on a scale to 20 is not half of %v wide:\n%s", scale, svg)
	}
}

func TestLines(t *testing.T) {
	svg := Lines("t", "connections", []LinePanel{
		{"p", []Line{{"a", []float64{100, 2000}, []float64{1, 42}}, {"b", []float64{100, 2000}, []float64{2, 3}}}},
		{"q", []Line{{"a", []float64{100, 2000}, []float64{1, 2}}}},
	})
	if n := elements(t, svg); n["polyline"] != 3 || n["circle"] != 6 {
		t.Errorf("elements %v of\n%s", n, svg)
	}
	if !strings.Contains(svg, "a: 42 at 2000") {
		t.Errorf("no legend in\n%s", svg)
	}
}

func TestNiceStep(t *testing.T) {
	for top, want := range map[float64]float64{0: 1, 5: 1, 42: 10, 100: 20, 110: 25, 0.7: 0.2} {
		if got := niceStep(top); got < want*0.999 || got > want*1.001 {
			t.Errorf("niceStep(%v) = %v, want %v", top, got, want)
		}
	}
}

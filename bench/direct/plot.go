package direct

import (
	"fmt"
	"strings"
)

// FilePlot is the name of the file with the plot of the long run.
const FilePlot = Kind + "-headline.svg"

// Sizes of the plot in pixels.
const (
	plotWidth   = 900
	panelHeight = 150
	panelGap    = 45
	plotLeft    = 70
	plotRight   = 20
)

// A panel is one curve over time, from 0 to a round number.
type panel struct {
	title string
	value func(Point) float64
}

// Plot draws MB/s, memory and drops of a run over time as SVG.
func Plot(r Run) string {
	panels := []panel{
		{"written, MB/s", func(p Point) float64 { return p.MBs }},
		{"resident memory of the server, MiB", func(p Point) float64 { return float64(p.Resident) / (1 << 20) }},
		{"records dropped", func(p Point) float64 { return float64(p.Dropped) }},
	}
	height := len(panels)*(panelHeight+panelGap) + panelGap
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="12">`+"\n", plotWidth, height)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="white"/>`+"\n", plotWidth, height)
	for i, p := range panels {
		p.draw(&b, r, panelGap+i*(panelHeight+panelGap))
	}
	b.WriteString("</svg>\n")
	return b.String()
}

func (p panel) draw(b *strings.Builder, r Run, top int) {
	most := 0.0
	for _, point := range r.Server.Series {
		most = max(most, p.value(point))
	}
	most = roundUp(most)
	bottom := top + panelHeight
	x := func(second float64) float64 {
		return plotLeft + second/r.Seconds*(plotWidth-plotLeft-plotRight)
	}
	y := func(v float64) float64 { return float64(bottom) - v/most*panelHeight }
	fmt.Fprintf(b, `<text x="%d" y="%d" font-weight="bold">%s</text>`+"\n", plotLeft, top-10, p.title)
	for i := range 5 {
		v := most * float64(i) / 4
		fmt.Fprintf(b, `<line x1="%d" y1="%.1f" x2="%d" y2="%.1f" stroke="#ddd"/><text x="%d" y="%.1f" text-anchor="end">%g</text>`+"\n",
			plotLeft, y(v), plotWidth-plotRight, y(v), plotLeft-8, y(v)+4, v)
	}
	for i := range 7 {
		second := r.Seconds * float64(i) / 6
		fmt.Fprintf(b, `<text x="%.1f" y="%d" text-anchor="middle">%.3g s</text>`+"\n", x(second), bottom+18, second)
	}
	b.WriteString(`<polyline fill="none" stroke="#1f5fa8" stroke-width="1.5" points="`)
	for _, point := range r.Server.Series {
		fmt.Fprintf(b, "%.1f,%.1f ", x(point.Second), y(p.value(point)))
	}
	b.WriteString(`"/>` + "\n")
}

// roundUp returns the least of 1, 2, 4 and 8 times a power of ten that is not
// below v, and at least 1.
func roundUp(v float64) float64 {
	for scale := 1.0; ; scale *= 10 {
		for _, n := range []float64{1, 2, 4, 8} {
			if n*scale >= v {
				return n * scale
			}
		}
	}
}

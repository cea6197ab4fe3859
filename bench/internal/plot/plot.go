// Package plot draws small charts as SVG, by the standard library alone.
package plot

import (
	"cmp"
	"fmt"
	"html"
	"math"
	"strings"
)

// Colors of series: first the one that stands out. They differ in brightness
// too, so that they can be told apart without their hue.
var colors = []string{"#0b5cad", "#e07b00", "#3c9a5f", "#8d5bb5", "#7a7a7a", "#c03030"}

const (
	font       = 13
	panelWidth = 460
	pad        = 16
	titleLine  = 26
)

// A picture collects elements and knows how high it has become.
type picture struct {
	b strings.Builder
}

func (p *picture) text(x, y float64, anchor, style, s string) {
	fmt.Fprintf(&p.b, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\"%s>%s</text>\n", x, y, anchor, style, html.EscapeString(s))
}

func (p *picture) line(x1, y1, x2, y2 float64, style string) {
	fmt.Fprintf(&p.b, "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" %s/>\n", x1, y1, x2, y2, style)
}

// frame puts what was drawn into a document with a white ground, so that it can
// be read on a page of any color.
func (p *picture) frame(title string, width, height float64) string {
	return fmt.Sprintf("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" width=\"%.0f\" height=\"%.0f\" role=\"img\" font-family=\"sans-serif\" font-size=\"%d\" fill=\"#222\">\n<title>%s</title>\n<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n%s</svg>\n",
		width, height, width, height, font, html.EscapeString(title), p.b.String())
}

const (
	bold  = ` font-weight="bold"`
	small = ` font-size="11" fill="#555"`
	grid  = `stroke="#ddd"`
)

// BarPanel is one list of bars on a common scale, which begins at zero.
type BarPanel struct {
	Title string
	Unit  string // if not that of all panels
	Bars  []Bar
}

// Bar is one value with the least and the most that was seen.
type Bar struct {
	Name             string
	Value, Low, High float64
	Own              bool // stands out
	None             bool // there is no value, only the name
}

// Bars draws panels of horizontal bars, two in a row.
func Bars(title, unit string, panels []BarPanel) string {
	const row, names = 20, 150
	var p picture
	p.text(pad, pad+font, "start", bold, title)
	y := float64(pad + titleLine)
	for i := 0; i < len(panels); i += 2 {
		lowest := y
		for k, panel := range panels[i:min(i+2, len(panels))] {
			x, at, top := float64(pad+k*panelWidth), y, 0.0
			p.text(x, at+font, "start", bold, panel.Title)
			at += titleLine
			for _, b := range panel.Bars {
				top = max(top, b.High, b.Value)
			}
			scale := (panelWidth - names - 75) / max(top, math.SmallestNonzeroFloat64)
			for _, b := range panel.Bars {
				if b.None {
					p.text(x+names-6, at+14, "end", "", b.Name)
					p.text(x+names+5, at+14, "start", small, "–")
					at += row
					continue
				}
				color := colors[4]
				if b.Own {
					color = colors[0]
				}
				p.text(x+names-6, at+14, "end", "", b.Name)
				fmt.Fprintf(&p.b, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%d\" fill=\"%s\"/>\n", x+names, at+2, b.Value*scale, row-5, color)
				p.line(x+names+b.Low*scale, at+9.5, x+names+b.High*scale, at+9.5, `stroke="#222" stroke-width="1.5"`)
				p.text(x+names+max(b.High, b.Value)*scale+5, at+14, "start", "", number(b.Value)+" "+cmp.Or(panel.Unit, unit))
				at += row
			}
			lowest = max(lowest, at)
		}
		y = lowest + pad
	}
	return p.frame(title, 2*panelWidth+2*pad, y)
}

// LinePanel is a set of lines over one axis.
type LinePanel struct {
	Title string
	Lines []Line
}

// Line is a series of points in order of X.
type Line struct {
	Name string
	X, Y []float64
}

// most is the greatest point on each axis.
func (p LinePanel) most() (x, y float64) {
	for _, l := range p.Lines {
		for i := range l.X {
			x, y = max(x, l.X[i]), max(y, l.Y[i])
		}
	}
	return x, y
}

// Lines draws panels side by side, each with a vertical axis of its own; both axes
// begin at zero.
func Lines(title, xTitle string, panels []LinePanel) string {
	const height, left = 260, 58
	var p picture
	p.text(pad, pad+font, "start", bold, title)
	top := float64(pad + 2*titleLine)
	bottom := top + height
	legend := 0
	for k, panel := range panels {
		x0, width := float64(pad+k*panelWidth+left), float64(panelWidth-left-30)
		maxX, most := panel.most()
		step := niceStep(most)
		maxY := step * math.Max(1, math.Ceil(most/step))
		at := func(x, y float64) (float64, float64) { return x0 + x/maxX*width, bottom - y/maxY*height }
		p.text(x0, top-10, "start", bold, panel.Title)
		for v := 0.0; v <= maxY*1.0001; v += step {
			_, y := at(0, v)
			p.line(x0, y, x0+width, y, grid)
			p.text(x0-6, y+4, "end", small, number(v))
		}
		marked := map[float64]bool{}
		for i, l := range panel.Lines {
			if len(l.X) == 0 {
				continue // nothing was seen in so short a run
			}
			color := colors[i%len(colors)]
			few := len(l.X) <= 12
			var points strings.Builder
			for j := range l.X {
				x, y := at(l.X[j], l.Y[j])
				fmt.Fprintf(&points, "%.1f,%.1f ", x, y)
				if !few {
					continue
				}
				fmt.Fprintf(&p.b, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3.5\" fill=\"%s\"/>\n", x, y, color)
				if !marked[l.X[j]] {
					marked[l.X[j]] = true
					p.text(x, bottom+16, "middle", small, number(l.X[j]))
				}
			}
			fmt.Fprintf(&p.b, "<polyline points=\"%s\" fill=\"none\" stroke=\"%s\" stroke-width=\"2.5\"/>\n", strings.TrimSpace(points.String()), color)
			y := bottom + 52 + float64(i)*18
			p.line(x0, y-4, x0+24, y-4, fmt.Sprintf("stroke=%q stroke-width=\"4\"", color))
			p.text(x0+30, y, "start", "", fmt.Sprintf("%s: %s at %s", l.Name, number(l.Y[len(l.Y)-1]), number(l.X[len(l.X)-1])))
		}
		legend = max(legend, len(panel.Lines))
		p.text(x0+width, bottom+32, "end", small, xTitle)
	}
	return p.frame(title, float64(len(panels)*panelWidth+2*pad), bottom+52+float64(legend)*18)
}

// niceStep is a distance of grid lines that gives some five of them.
func niceStep(top float64) float64 {
	if top <= 0 {
		return 1
	}
	power := math.Pow(10, math.Floor(math.Log10(top/5)))
	for _, m := range []float64{1, 2, 2.5, 5} {
		if top/5 <= m*power {
			return m * power
		}
	}
	return 10 * power
}

// number has as many digits as can be read off a chart.
func number(v float64) string {
	switch a := math.Abs(v); {
	case a >= 10 || v == math.Round(v):
		return fmt.Sprintf("%.0f", v)
	case a >= 0.095:
		return fmt.Sprintf("%.1f", v)
	default:
		return fmt.Sprintf("%.2g", v)
	}
}

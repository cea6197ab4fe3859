package relay

import (
	"fmt"

	"github.com/rollway/rollway/bench/internal/plot"
)

// Names of the pictures' files, beside the document.
const (
	cpuPicture    = "relay-cpu.svg"
	memoryPicture = "relay-memory.svg"
)

func pictureLinks(figures) (string, error) {
	return fmt.Sprintf("\n![CPU per GiB by relay](%s)\n\n![Memory of each idle connection by relay](%s)\n", cpuPicture, memoryPicture), nil
}

// Pictures draws the pictures: file name to content.
func (r *Results) Pictures() (map[string]string, error) {
	f := figures(r.summarize())
	cpu, err := r.cpuPicture(f)
	if err != nil {
		return nil, err
	}
	memory, err := memoryBars(f)
	if err != nil {
		return nil, err
	}
	return map[string]string{cpuPicture: cpu, memoryPicture: memory}, nil
}

func (r *Results) cpuPicture(f figures) (string, error) {
	spread := r.spread()
	var panels []plot.BarPanel
	for _, mode := range []string{modeRaw, modeTLS} {
		for _, dir := range []string{caseUpload, caseDownload} {
			p := plot.BarPanel{Title: map[string]string{modeRaw: "Plain, ", modeTLS: "TLS, "}[mode] + dir}
			for _, name := range names() {
				if s, ok := f.get(dir, name, mode); ok {
					lowHigh := spread[[3]string{dir, name, mode}]
					p.Bars = append(p.Bars, plot.Bar{Name: name, Value: cpuMs(s), Low: lowHigh[0], High: lowHigh[1], Own: name == Ours})
				}
			}
			if len(p.Bars) == 0 {
				return "", fmt.Errorf("%s, %s: %w", dir, mode, errNoSamples)
			}
			panels = append(panels, p)
		}
	}
	return plot.Bars("CPU time of the relay's process per GiB: median, least to most", "ms", panels), nil
}

// spread is the least and the most CPU in ms per GiB, by case, relay and mode.
func (r *Results) spread() map[[3]string][2]float64 {
	all := map[[3]string][2]float64{}
	for _, p := range r.Parts {
		for _, s := range p.Samples {
			k, v := [3]string{s.Case, s.Library, s.Mode}, s.CPUNsPerOp*perGiB
			if got, ok := all[k]; ok {
				all[k] = [2]float64{min(got[0], v), max(got[1], v)}
			} else {
				all[k] = [2]float64{v, v}
			}
		}
	}
	return all
}

func memoryBars(f figures) (string, error) {
	var panels []plot.BarPanel
	for _, mode := range []string{modeRaw, modeTLS} {
		p := plot.BarPanel{Title: map[string]string{modeRaw: "Plain", modeTLS: "TLS from the client"}[mode]}
		for _, name := range names() {
			if s, ok := f.get(caseIdle, name, mode); ok {
				each := s.Extra["bytes"] / 1024
				p.Bars = append(p.Bars, plot.Bar{Name: name, Value: each, Low: each, High: each, Own: name == Ours})
			}
		}
		if len(p.Bars) == 0 {
			return "", fmt.Errorf("%s, %s: %w", caseIdle, mode, errNoSamples)
		}
		panels = append(panels, p)
	}
	return plot.Bars("Memory of the relay's processes for each idle connection", "KiB", panels), nil
}

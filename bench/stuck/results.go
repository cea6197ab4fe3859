package stuck

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/rollway/rollway/bench/internal/measure"
)

// Kind is the name of the results and of their place in the document.
const Kind = "stuck"

// Settings say where tries are made.
type Settings struct {
	Dir   string        // for files; "": the system's for temporary files
	Limit time.Duration // after which a process has hung

	HTTP, TCP string // of a collector that was stopped by a signal
	Nobody    string // an address at which nobody listens
}

// Results are the raw results.
type Results struct {
	measure.Results
	Tries []Try `json:"tries"`
}

// Save writes the results to a file: one try a line.
func (r *Results) Save(path string) error {
	head := *r
	head.Samples, head.Tries = []measure.Sample{}, nil
	return measure.SaveLines(path, head, measure.ListOf("tries", r.Tries))
}

// Load reads what Save wrote.
func Load(path string) (*Results, error) { return measure.Load[Results](path, Kind) }

// Tables makes the tables of docs/RELIABILITY.md: one for each situation.
func (r *Results) Tables() (string, error) {
	if len(r.Tries) == 0 {
		return "", errors.New("no tries: run it again")
	}
	tries := map[[3]string]*Try{}
	var names []string
	for i, t := range r.Tries {
		if tries[[3]string{t.Writer, t.Situation, t.Act}] = &r.Tries[i]; !contains(names, t.Writer) {
			names = append(names, t.Writer)
		}
	}
	text := fmt.Sprintf("\n%s, commit %s, %s (%s, %d cores); zerolog %s, zap %s, phuslu/log %s. Every try: [stuck.json](results/stuck.json).\n",
		r.Date, r.Commit, r.Go, r.Machine.System, r.Machine.Cores,
		r.Versions["github.com/rs/zerolog"], r.Versions["go.uber.org/zap"], r.Versions["github.com/phuslu/log"])
	for _, s := range Situations {
		table := measure.NewTable("logger", "longest Info", "longest Error", "lines in the other output", "dropped, counted", "Fatal", "Panic", "SIGTERM", "Close")
		for _, name := range names {
			get := func(act string) *Try { return tries[[3]string{name, s.Name, act}] }
			if get(Info) == nil {
				continue
			}
			table.Row(name, calls(get(Info)), calls(get(Error)), share(get(Info)), dropped(get(Info)),
				end(get(Fatal)), end(get(Panic)), end(get(SIGTERM)), end(get(Close)))
		}
		text += "\n**" + s.Title + "**\n\n" + table.String()
	}
	return text + "\n", nil
}

// calls is the longest call, or how many producers did not come back from one.
func calls(t *Try) string {
	switch {
	case t == nil:
		return "–"
	case t.InCall > 1 || t.InCall == 1 && !t.Own:
		return fmt.Sprintf("**%d of 4 hang**", t.InCall)
	case t.InCall == 1:
		return round(t.Longest) + ", 1 of 4 hangs"
	}
	return round(t.Longest)
}

// share is how much of what producers wanted to log the other output has.
func share(t *Try) string {
	const wanted = producers * linesEach
	if t.Delivered == wanted {
		return "all"
	}
	return fmt.Sprintf("%.3g %%", 100*float64(t.Delivered)/wanted)
}

func dropped(t *Try) string {
	if !t.Own {
		return "not told"
	}
	return strconv.FormatUint(t.Dropped, 10)
}

func end(t *Try) string {
	switch {
	case t == nil:
		return "–"
	case t.Hung:
		return "**hangs**"
	case t.crashed():
		return "**panics**"
	case t.Act == Close || t.Status < 0:
		return round(t.Took)
	}
	return fmt.Sprintf("%s, status %d", round(t.Took), t.Status)
}

func round(d time.Duration) string {
	switch {
	case d >= time.Second:
		return d.Round(10 * time.Millisecond).String()
	case d >= time.Millisecond:
		return d.Round(time.Millisecond).String()
	}
	return d.Round(time.Microsecond).String()
}

// producers log linesEach lines each, at the same time.
const (
	producers = 4
	linesEach = 10_000
)

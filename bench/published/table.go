package published

import (
	"errors"
	"fmt"

	"github.com/rollway/rollway/bench/internal/report"
)

// A claim is something that a publication says. here reads the same from the results
// and reports whether it points where the publication does. why gives the reason for
// the direction that expect names.
type claim struct {
	says, published string
	here            func(r *results) (text string, same bool)
	expect          direction
	why             string
}

// A direction is what was found when the reason was written.
type direction int

const (
	holds  direction = iota // the publication's
	fails                   // another
	either                  // the reason goes with both
)

// A publication has its claims in the order of its text.
type publication struct {
	name   string
	claims []claim
}

// Report makes the table from the raw results in a folder.
func Report(dir string) (report.Report, error) {
	r, err := load(dir)
	if err != nil {
		return report.Report{}, err
	}
	t := report.NewTable("publication", "claim", "published", "here", "same direction", "why")
	same, open, all := 0, 0, 0
	for _, p := range publications() {
		for _, c := range p.claims {
			text, points, err := c.read(r)
			verdict := "**no**"
			switch {
			case errors.Is(err, errOpen):
				verdict = "not shown"
				open++
			case err != nil:
				return report.Report{}, fmt.Errorf("%s: %s: %w", p.name, c.says, err)
			case points:
				same++
				verdict = "yes"
			}
			all++
			t.Row(p.name, c.says, c.published, text, verdict, c.reason(points))
		}
	}
	return report.Report{Text: fmt.Sprintf("\n%d of %d claims hold here; %d could not be shown, one way or the other.\n\n%s\n", same, all, open, t)}, nil
}

// An undecidedText is what a claim found that neither supports nor refutes it. The
// function here panics with it.
type undecidedText string

func undecided(text string) (string, bool) { panic(undecidedText(text)) }

var errOpen = errors.New("nothing speaks for or against it")

// read calls here. The error is errOpen if it found nothing that decides.
func (c claim) read(r *results) (text string, same bool, err error) {
	defer func() {
		switch what := recover().(type) {
		case nil:
		case undecidedText:
			text, err = string(what), errOpen
		default:
			panic(what)
		}
	}()
	text, err = report.Make(func() string {
		var said string
		said, same = c.here(r)
		return said
	})
	return text, same, err
}

const unexplained = "not explained: it was otherwise when the reason was written"

// reason is why, if that is of the direction that was found.
func (c claim) reason(same bool) string {
	found := fails
	if same {
		found = holds
	}
	if c.expect != either && c.expect != found {
		return unexplained
	}
	return c.why
}

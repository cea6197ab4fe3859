package pipe

import (
	"time"

	"github.com/rollway/rollway/internal/jsonline"
	"github.com/rollway/rollway/internal/times"
)

const day, week = 24 * time.Hour, 7 * 24 * time.Hour

// steps are the lengths to choose from. Each divides the next, so that groups of shorter steps
// can be merged.
var steps = []time.Duration{
	time.Second, 5 * time.Second, 15 * time.Second, 30 * time.Second, time.Minute, 5 * time.Minute, 15 * time.Minute, 30 * time.Minute,
	time.Hour, 2 * time.Hour, 4 * time.Hour, 12 * time.Hour, day, week, 4 * week, 52 * week, 520 * week, 5200 * week,
}

// CheckStep reports whether a Group may have this step.
func CheckStep(step time.Duration) bool {
	return step > 0 && (step%time.Second == 0 || time.Second%step == 0)
}

// StepFor returns the shortest step of a fixed list with which at most most steps reach from
// the second first to the second last, both since 1970. The longest is about 100 years.
func StepFor(first, last int64, most int) time.Duration {
	for _, step := range steps {
		if Steps(first, last, step) <= int64(most) {
			return step
		}
	}
	return steps[len(steps)-1]
}

// Steps returns how many steps, of whole seconds, reach from the second first to the second last.
func Steps(first, last int64, step time.Duration) int64 {
	return (startOf(last, step)-startOf(first, step))/int64(step/time.Second) + 1
}

// StepOf returns the second at which the step begins that two times are in, in nanoseconds since 1970;
// false: they are in two, or it is not of whole seconds.
func StepOf(first, last int64, step time.Duration) (sec int64, ok bool) {
	if step < time.Second {
		return 0, false
	}
	sec = startOf(time.Unix(0, first).Unix(), step)
	return sec, sec == startOf(time.Unix(0, last).Unix(), step)
}

// Steps tells of each of Table.Cells the only thing that a run looks at: in which step of time a value is;
// 0: it looks at the values. It is nil unless the pipeline begins with stats or facets.
func (p *Pipeline) Steps(cells int) []time.Duration {
	list := make([]time.Duration, cells)
	s, ok := p.Stages[0].(*Stats)
	if _, facets := p.Stages[0].(*Facets); facets {
		return list
	}
	if !ok {
		return nil
	}
	used := make([]bool, cells)
	use := func(f *Field, step time.Duration) {
		if f == nil || !f.inTable() {
			return
		}
		if used[f.Cells] && list[f.Cells] != step {
			step = 0
		}
		used[f.Cells], list[f.Cells] = true, step
	}
	for i := range s.Groups {
		step := s.Groups[i].Step
		if s.Groups[i].Most > 0 {
			step = 0
		}
		use(&s.Groups[i].Field, step)
	}
	for i := range s.Calls {
		use(s.Calls[i].Field, 0)
	}
	return list
}

// startOf returns the second at which the step begins that sec is in.
func startOf(sec int64, step time.Duration) int64 {
	const monday = 4 * 24 * 60 * 60 // 1970 began on a Thursday
	seconds, first := int64(step/time.Second), int64(0)
	if step%week == 0 {
		first = monday
	}
	return sec - ((sec-first)%seconds+seconds)%seconds
}

// A cut brings times to the beginnings of their steps, and remembers the last.
type cut struct {
	step       time.Duration // 0: times stay
	cache      times.Cache
	text       []byte
	start, end int64 // seconds of the step that text is of, if steps are whole seconds

	reached     bool  // first and last are valid
	first, last int64 // seconds of the steps between which all times are
}

// of returns the beginning of the step that v is in, valid until the next call, or nothing.
func (c *cut) of(v Value) Value {
	if v.Kind != String {
		return Value{}
	}
	sec, nsec, ok := c.cache.Parse(v.Text)
	switch {
	case !ok:
		return Value{}
	case c.step < time.Second:
		c.text = jsonline.AppendUnix(c.text[:0], sec, nsec-nsec%int(c.step))
		return Value{String, c.text}
	case c.start <= sec && sec < c.end:
		return Value{String, c.text}
	}
	c.start = startOf(sec, c.step)
	c.end = c.start + int64(c.step/time.Second)
	c.text = jsonline.AppendUnix(c.text[:0], c.start, 0)
	return Value{String, c.text}
}

// reach notes that there are times from first to last, and makes steps longer if there would
// be more than most. It reports whether it did.
func (c *cut) reach(first, last int64, most int) bool {
	if c.reached && first >= c.first && last <= c.last {
		return false
	}
	if !c.reached {
		c.reached, c.first, c.last = true, first, last
	}
	c.first, c.last = min(c.first, first), max(c.last, last)
	before := c.step
	c.use(max(c.step, StepFor(c.first, c.last, most)))
	return c.step != before
}

// use has steps be longer.
func (c *cut) use(step time.Duration) {
	if step != c.step {
		c.step, c.start, c.end = step, 0, 0
		c.first, c.last = startOf(c.first, step), startOf(c.last, step)
	}
}

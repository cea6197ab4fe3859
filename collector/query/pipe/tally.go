package pipe

import (
	"slices"
	"time"
)

// A Tally says which lines a pipeline counts together, if it begins with a stats that does nothing
// else: those of one level, or of one step of time.
type Tally struct {
	Levels bool
	Steps  []time.Duration
	Most   int // as of a Group: the step is the shortest with which there are so many; 0: there is no such step
}

// Tally returns the tally that p begins with; false: p looks at other values of lines.
func (p *Pipeline) Tally() (t Tally, ok bool) {
	s, ok := p.Stages[0].(*Stats)
	if !ok || slices.ContainsFunc(s.Calls, func(c Call) bool { return c.Function != "count" || c.Field != nil }) {
		return t, false
	}
	for i := range s.Groups {
		switch g := &s.Groups[i]; {
		case g.Index >= 0:
			return t, false
		case g.Most > 0:
			t.Most = max(t.Most, g.Most)
		case g.Step > 0:
			t.Steps = append(t.Steps, g.Step)
		case g.Level:
			t.Levels = true
		default:
			return t, false
		}
	}
	return t, true
}

// Together reports whether two times, in seconds since 1970, are in the same steps.
func (t *Tally) Together(a, b int64) bool {
	for _, step := range t.Steps {
		if startOf(a, step) != startOf(b, step) {
			return false
		}
	}
	return true
}

// Lines is Line for n lines that the pipeline, which has a Tally, counts together.
func (r *Run) Lines(line []byte, n uint64) error {
	s := r.steps[0].(*statsStep)
	group, grown := s.groupOf(&Row{Line: line})
	for _, states := range s.states {
		(*states.(*counts))[group] += int64(n)
	}
	return s.take(grown)
}

// Widen makes the steps of time that are chosen step at least, as it is known that they will be.
func (r *Run) Widen(step time.Duration) {
	s := r.steps[0].(*statsStep)
	for i := range s.Groups {
		if c := &s.cuts[i]; s.Groups[i].Most > 0 && c.step < step {
			c.use(step)
		}
	}
}

package query

import (
	"cmp"
	"context"
	"log/slog"
	"math"
	"time"

	"github.com/rollway/rollway/collector/journal"
	"github.com/rollway/rollway/collector/query/pipe"
	"github.com/rollway/rollway/internal/jsonline"
	"github.com/rollway/rollway/internal/levels"
)

// A stretch is what is left to read: lines of these offsets that match query.
type stretch struct {
	offsets
	query *Query
}

// A counter answers a query that only counts lines by level and steps of time: from the counts of
// segments, as far as they tell exactly what a search would find.
type counter struct {
	out   *rows
	query *Query
	by    pipe.Tally

	minimum, maximum int64           // of the query's times
	grains           []time.Duration // to ask for one after the other, see [journal.Journal.Counts]
	left             []stretch

	verdicts []verdict // of the segment
	cells    []cell    // of the segment, that match
	at       int64     // time of the first line in sums
	sums     []cell    // that are counted together, by level; at is not used
}

// A cell is how many lines of a level there are in a step of time.
type cell struct {
	at    int64 // the first instant of the step in which there may be lines
	level slog.Level
	n     uint64
}

// A verdict is whether lines of a level match.
type verdict struct {
	level       slog.Level
	holds, told bool
}

const (
	// mostParts is how many parts of a segment are read at most. With more, all of it is.
	mostParts = 2
	// mostLooks is how many segments are asked for the first and the last lines that match.
	mostLooks = 8
)

// newCounter returns nil if counts cannot answer req.
func (a *API) newCounter(out *rows, req request) *counter {
	by, ok := req.pipes.Tally()
	c := &counter{out: out, query: req.query, by: by}
	if !ok || req.query.root != nil && !req.query.root.counts() {
		return nil
	}
	for _, step := range by.Steps {
		if step%journal.CountStep != 0 {
			return nil
		}
	}
	c.minimum, c.maximum = req.query.TimeRange()
	if by.Most > 0 {
		step := a.leastStep(c)
		if step < journal.CountStep {
			return nil
		}
		out.run.Widen(step)
		c.by.Steps = append(c.by.Steps, step)
	}
	c.grains = []time.Duration{0, journal.CountStep}
	for _, step := range c.by.Steps {
		if c.grains[0] = time.Hour; step%time.Hour != 0 {
			c.grains = c.grains[1:]
			break
		}
	}
	return c
}

// counts reports whether n asks for nothing but levels and times.
func (n *node) counts() bool {
	if n.kind == nodeTerm {
		return n.term.isLevel || n.term.isTime
	}
	for _, kid := range n.kids {
		if !kid.counts() {
			return false
		}
	}
	return true
}

// count adds to out.run the lines that counts tell of, and returns what is left to read.
func (a *API) count(ctx context.Context, out *rows, req request) ([]stretch, error) {
	c := a.newCounter(out, req)
	if c == nil {
		return []stretch{{offsets{out.from, out.end}, req.query}}, nil
	}
	defer out.turn.End()
	for at := out.from; at < out.end; {
		var end uint64
		taken := false
		for _, step := range c.grains {
			var n *journal.Counts
			n, _, end = a.counts(c, at, step)
			out.wait(out.turn.Begin)
			if taken = n != nil && a.addCounts(c, n, step == journal.CountStep); n == nil || taken {
				break
			}
		}
		if !taken {
			c.cells = c.cells[:0]
			c.read(offsets{at, min(end, out.end)}, c.query)
		}
		if err := cmp.Or(context.Cause(a.ctx), context.Cause(ctx), c.sum(), out.tick(flushEvery)); err != nil {
			return nil, err
		}
		at = end
	}
	return c.left, c.flush()
}

// counts returns counts, if all of their lines are asked for, and which offsets they are of, as
// [journal.Journal.Counts] does. It ends the turn.
func (a *API) counts(c *counter, offset uint64, step time.Duration) (n *journal.Counts, first, end uint64) {
	c.out.turn.End()
	c.out.wait(func() { n, first, end = a.src.counts(offset, c.minimum, c.maximum, step) })
	tenant := c.query.tenant
	if n != nil && n.Records > 0 && (first < c.out.from || end > c.out.end || tenant != nil && (n.Tenant == nil || *n.Tenant != *tenant)) {
		n = nil
	}
	return n, first, end
}

// read leaves a stretch to be read.
func (c *counter) read(o offsets, q *Query) {
	if k := len(c.left) - 1; k >= 0 && c.left[k].to == o.from && c.left[k].query == q {
		c.left[k].to = o.to
		return
	}
	c.left = append(c.left, stretch{o, q})
}

// addCounts takes the cells of n that match, and leaves to be read what they do not tell: with finest
// not all of it, and else nothing. It returns false if it cannot.
func (a *API) addCounts(c *counter, n *journal.Counts, finest bool) bool {
	f := found{reached: c.out.reached}
	parts, ok := c.look(n, &f)
	deleted := n.Records < n.End-n.First
	switch {
	case !ok, len(parts) > 0 && !finest, deleted && c.out.asked: // a reader tells that they are missing
		return false
	case c.query.tenant == nil || n.Records == 0:
	case deleted, len(parts) > 0, f.matched > 0 && f.matched < n.Records: // the offset of the last line that matches is told
		return false
	case f.matched > 0:
		f.after = n.End
	}
	for _, p := range parts {
		since, until := time.Unix(0, p.from), time.Unix(0, p.to)
		c.read(offsets{n.First, n.End}, c.query.within(&since, &until))
	}
	if p := c.query.probe; p != nil && n.Records > 0 {
		p.counted.Add(int64(f.scanned))
	}
	a.add(&c.out.found, &f)
	return true
}

// A period is the times from one to before another.
type period struct{ from, to int64 }

// look gathers the cells of n that match, and returns the steps of time whose lines have to be read
// to know. It returns false if there are too many.
func (c *counter) look(n *journal.Counts, f *found) (parts []period, ok bool) {
	c.verdicts, c.cells = c.verdicts[:0], c.cells[:0]
	for i := 0; i < len(n.Steps); {
		step := n.Steps[i].Step
		from, to := max(step*n.Step, n.MinTime), min((step+1)*n.Step-1, n.MaxTime)
		if from > to {
			return nil, false // the line has another time than its frame
		}
		cells, scanned, sure := len(c.cells), uint64(0), true
		for ; i < len(n.Steps) && n.Steps[i].Step == step; i++ {
			k := &n.Steps[i]
			if from > c.maximum || to < c.minimum {
				continue
			}
			scanned += uint64(k.Records)
			v := c.verdict(slog.Level(k.Level), n.MinTime, n.MaxTime)
			if !v.told {
				v.holds, v.told = c.query.root.tell(between(v.level, from, to))
			}
			if sure = sure && v.told && (!v.holds || c.by.Together(seconds(from), seconds(to))); v.holds {
				c.cells = append(c.cells, cell{from, v.level, uint64(k.Records)})
			}
		}
		if sure {
			f.scanned += scanned
			continue
		}
		c.cells = c.cells[:cells]
		if k := len(parts) - 1; k >= 0 && parts[k].to == from {
			parts[k].to = to + 1
		} else if parts = append(parts, period{from, to + 1}); len(parts) > mostParts {
			return nil, false
		}
	}
	for _, k := range c.cells {
		f.matched += k.n
	}
	return parts, true
}

// verdict tells what is known of the lines of a level in a segment.
func (c *counter) verdict(l slog.Level, from, to int64) verdict {
	for _, v := range c.verdicts {
		if v.level == l {
			return v
		}
	}
	v := verdict{level: l, holds: true, told: true}
	if c.query.root != nil {
		v.holds, v.told = c.query.root.tell(between(l, from, to))
	}
	c.verdicts = append(c.verdicts, v)
	return v
}

func between(l slog.Level, from, to int64) facts {
	return facts{level: l, first: time.Unix(0, from), last: time.Unix(0, to), timed: true}
}

// seconds returns those since 1970, rounded down.
func seconds(at int64) int64 {
	s := at / 1e9
	if at%1e9 < 0 {
		s--
	}
	return s
}

// sum adds the cells of a segment to sums.
func (c *counter) sum() error {
	for _, k := range c.cells {
		if len(c.sums) > 0 && !c.by.Together(seconds(c.at), seconds(k.at)) {
			if err := c.flush(); err != nil {
				return err
			}
		}
		if len(c.sums) == 0 {
			c.at = k.at
		}
		if !c.by.Levels {
			k.level = 0
		}
		c.sumOf(k.level).n += k.n
	}
	c.cells = c.cells[:0]
	return nil
}

func (c *counter) sumOf(l slog.Level) *cell {
	for i := range c.sums {
		if c.sums[i].level == l {
			return &c.sums[i]
		}
	}
	c.sums = append(c.sums, cell{level: l})
	return &c.sums[len(c.sums)-1]
}

// flush gives the sums to the pipes, each as one line and how many are like it.
func (c *counter) flush() error {
	var line []byte
	for _, k := range c.sums {
		line = jsonline.AppendTime(append(line[:0], `{"time":"`...), time.Unix(0, c.at))
		line = levels.Append(append(line, `","level":"`...), k.level)
		if err := c.out.run.Lines(append(line, "\"}\n"...), k.n); err != nil {
			return err
		}
	}
	c.sums = c.sums[:0]
	return nil
}

// leastStep returns a step that time(auto) does not go below, since lines match that are so far from
// each other; 0: it is not known.
func (a *API) leastStep(c *counter) time.Duration {
	reach := period{math.MaxInt64, math.MinInt64}
	look := func(at uint64) (first, end uint64, matches bool) {
		n, first, end := a.counts(c, at, journal.CountStep)
		if n != nil {
			if _, ok := c.look(n, new(found)); ok && len(c.cells) > 0 {
				earliest, latest := c.cells[0].at+n.Step, c.cells[len(c.cells)-1].at
				reach, matches = period{min(reach.from, earliest), max(reach.to, latest)}, true
			}
		}
		return first, end, matches
	}
	matches := false
	for at, i := c.out.from, 0; at < c.out.end && i < mostLooks && !matches; i++ {
		_, at, matches = look(at)
	}
	matches = false
	for at, i := c.out.end, 0; at > c.out.from && i < mostLooks && !matches; i++ {
		at, _, matches = look(at - 1)
	}
	if c.cells = c.cells[:0]; reach.from > reach.to {
		return 0
	}
	return pipe.StepFor(seconds(reach.from), seconds(reach.to), c.by.Most)
}

package query

import (
	"bytes"
	"log/slog"

	"github.com/rollway/rollway/internal/jsonwalk"
)

// addedTerms is how many terms a request adds to its expression's: since and until, and those of a
// stretch.
const addedTerms = 4

// hitSet holds which terms of a query held.
type hitSet [(MaxTerms + addedTerms + 63) / 64]uint64

func (h *hitSet) has(i int) bool { return h[uint(i)/64%uint(len(h))]&(1<<(uint(i)%64)) != 0 }
func (h *hitSet) add(i int)      { h[uint(i)/64%uint(len(h))] |= 1 << (uint(i) % 64) }

// Match tells whether a canonical line matches; a line feed at its end makes
// no difference. It reads the line once, does not allocate and does not keep
// line. What it says of a line that is not canonical is not defined, but it
// returns.
//
//   - A field that a line holds more than once, as http.status next to
//     http:{status:…}, matches if one of its values does.
//   - A list matches if one of its elements does.
func (q *Query) Match(line []byte) bool { return q.match(line, nil) }

// match is Match with rests in what takes long. After an error of rest any result comes.
func (q *Query) match(line []byte, rest func() error) bool {
	if q.root == nil {
		return true
	}
	if !q.mayMatch(line) {
		return false
	}
	s := scan{q: q, line: line, pending: q.terms, rest: rest}
	matches := s.run() && q.root.eval(&s.hits)
	if s.decoded != nil {
		decodeds.Put(s.decoded)
	}
	return matches
}

// MatchLevel is Match for any line of a level. told is false if the level alone
// does not tell.
func (q *Query) MatchLevel(l slog.Level) (matches, told bool) {
	if q.root == nil {
		return true, true
	}
	return q.root.tell(facts{level: l})
}

// Requires returns names, parts of paths included. A line that matches has one of them,
// as the last name of a path. If there are no names, it may have any. Time
// and level are not among them, as every line has both.
func (q *Query) Requires() []string {
	if q.root == nil {
		return nil
	}
	return q.root.requires()
}

// mayMatch tells false if none of the lines can match, by a search for the one
// literal that each of them would have to hold.
func (q *Query) mayMatch(lines []byte) bool {
	return len(q.literal) == 0 || bytes.Contains(lines, q.literal) || bytes.IndexByte(lines, '\\') >= 0
}

// scan is one pass over a line.
type scan struct {
	q       *Query
	line    []byte
	hits    hitSet
	pending int      // terms that have not held so far
	decoded *decoded // nil: no string with escapes so far

	rest func() error // to be called in what takes long; nil: nobody waits
}

func (s *scan) hit(c *check) {
	s.hits.add(c.index)
	s.pending--
}

// run reads the top level. It stops when all terms held or no later field can
// matter, and returns false as soon as the query cannot match any more.
func (s *scan) run() bool {
	line := s.line
	if len(line) == 0 || line[0] != '{' {
		return true
	}
	for i := 1; i < len(line) && line[i] == '"'; i++ {
		end, _ := jsonwalk.SkipString(line, i)
		if end < 0 || end >= len(line) || line[end] != ':' {
			return true
		}
		id := fieldOf(line[i+1 : end-1])
		start := end + 1
		if id == fieldAttrs {
			i = attrsEnd(line, start)
		} else {
			i = jsonwalk.SkipValue(line, start)
		}
		if i <= start {
			return true
		}
		if id < numFields {
			if !s.top(id, start, i) {
				return false
			}
			if s.pending == 0 || id >= s.q.last {
				return true
			}
		}
		if i >= len(line) || line[i] != ',' {
			return true
		}
	}
	return true
}

// attrsEnd is jsonwalk.SkipValue for attrs, which nothing but the line's own brace
// follows: it saves reading them twice.
func attrsEnd(line []byte, start int) int {
	end := len(line)
	if end > start && line[end-1] == '\n' {
		end--
	}
	if end > start && line[end-1] == '}' {
		end--
	}
	return end
}

// top looks at the value line[start:end] of a top-level field. It returns false
// if the query cannot match any more.
func (s *scan) top(id fieldID, start, end int) bool {
	checks := s.q.fixed[id]
	for k := range checks {
		c := &checks[k]
		held := s.apply(c.term, start, end)
		if held && !s.hits.has(c.index) {
			s.hit(c)
		}
		if held && c.mustNot || !held && c.must {
			return false
		}
	}
	if (s.q.texts.any() || s.q.folded.any()) && (id == fieldMsg || id == fieldError || id == fieldAttrs) {
		s.texts(start, end)
	}
	if checks := s.q.inside[id]; len(checks) > 0 && s.line[start] == '{' {
		s.paths(checks, start)
	}
	return true
}

// apply tells whether t holds for the value line[start:end].
func (s *scan) apply(t *term, start, end int) bool {
	line := s.line
	switch line[start] {
	case '"':
		end, escaped := jsonwalk.SkipString(line, start)
		return end >= 0 && s.holds(t, s.text(line[start+1:end-1], escaped), true)
	case '{', '[':
		return t.op == opPresent || s.applyInside(t, start, end)
	}
	return s.holds(t, line[start:end], false)
}

// holds compares a scalar with t.
func (s *scan) holds(t *term, text []byte, isString bool) bool {
	if t.set != nil {
		return t.set.holds(s, text, isString)
	}
	if t.fold {
		text = s.fold(text)
	}
	return t.holds(text, isString, s.rest)
}

// applyInside tells whether t holds for an element of the list line[start:end],
// or of the lists in it. A substring is looked for in objects too.
func (s *scan) applyInside(t *term, start, end int) bool {
	v := values{scan: s, end: end, at: start, objects: t.op == opContains}
	for {
		text, isString, ok := v.next()
		if !ok || s.holds(t, text, isString) {
			return ok
		}
	}
}

// texts looks for the texts in every string and number of line[start:end].
func (s *scan) texts(start, end int) {
	v := values{scan: s, end: end, at: start, objects: true}
	for {
		text, isString, ok := v.next()
		if !ok {
			return
		}
		s.q.texts.search(s, text, isString)
		if s.q.folded.any() {
			s.q.folded.search(s, s.fold(text), isString)
		}
	}
}

// search notes the texts that are in a scalar.
func (x *texts) search(s *scan, text []byte, isString bool) {
	if x.many != nil && (isString || isNumberStart(text)) {
		x.many.search(s, text)
	}
	for k := range x.each {
		if c := &x.each[k]; !s.hits.has(c.index) && c.term.holds(text, isString, s.rest) {
			s.hit(c)
		}
	}
}

// paths looks for the values that checks name in the object at line[start].
func (s *scan) paths(checks []check, start int) {
	var path [MaxName]byte
	s.object(checks, start, &path, 0)
}

// object is paths below path[:n], which is empty or ends in a point. Each level
// adds to the path, and a path has at most MaxName bytes, so the recursion ends.
func (s *scan) object(checks []check, start int, path *[MaxName]byte, n int) {
	line := s.line
	for i := start + 1; i < len(line) && line[i] == '"'; i++ {
		end, escaped := jsonwalk.SkipString(line, i)
		if end < 0 || end >= len(line) || line[end] != ':' {
			return
		}
		m, fits := joinKey(path, n, s.text(line[i+1:end-1], escaped))
		value := end + 1
		i = jsonwalk.SkipValue(line, value)
		if i < 0 {
			return
		}
		if fits {
			if s.named(checks, value, i, path, m); s.pending == 0 {
				return
			}
		}
		if i >= len(line) || line[i] != ',' {
			return
		}
	}
}

// named looks at the value line[start:end], whose path is path[:n].
func (s *scan) named(checks []check, start, end int, path *[MaxName]byte, n int) {
	descend := false
	for k := range checks {
		c := &checks[k]
		if len(c.path) < n || s.hits.has(c.index) || c.path[:n] != string(path[:n]) {
			continue
		}
		if len(c.path) == n {
			if s.apply(c.term, start, end) {
				s.hit(c)
			}
		} else if c.path[n] == '.' {
			descend = true
		}
	}
	if descend && s.line[start] == '{' {
		path[n] = '.'
		s.object(checks, start, path, n+1)
	}
}

// joinKey writes a key after path[:n] and returns the new length, or false if it does not
// fit: then no term can name it.
func joinKey(path *[MaxName]byte, n int, key []byte) (int, bool) {
	return n + copy(path[n:], key), len(key) <= len(path)-n
}

package query

import (
	"errors"
	"fmt"
	"math"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/rollway/rollway/collector/journal"
	"github.com/rollway/rollway/collector/query/pipe"
)

// A probe counts and times what a search does, also by several goroutines.
type probe struct {
	seen                              journal.Seen
	unpack, wait, looks, emits, pipes atomic.Int64 // nanoseconds
	counted                           atomic.Int64 // lines
}

// spent is where pipes count their time.
func (p *probe) spent() *atomic.Int64 {
	if p == nil {
		return nil
	}
	return &p.pipes
}

func spend(on *atomic.Int64, since time.Time) { on.Add(int64(time.Since(since))) }

// looked notes the time since begin, in which lines were looked at; away is what f.away was.
func (p *probe) looked(begin time.Time, f *found, away time.Duration) {
	waited := f.away - away
	p.wait.Add(int64(waited))
	p.looks.Add(int64(time.Since(begin) - waited))
}

// emitting times emit.
func (p *probe) emitting(emit func(uint64, []byte) (bool, error)) func(uint64, []byte) (bool, error) {
	return func(offset uint64, line []byte) (bool, error) {
		defer spend(&p.emits, time.Now())
		return emit(offset, line)
	}
}

// errEnough ends a search that is only explained.
var errEnough = errors.New("the search was long enough")

// Bounds of the search of serveExplain.
const (
	explainFor    = 10 * time.Second
	explainAtMost = 60 * time.Second
)

// explanation is the answer of serveExplain.
type explanation struct {
	Query    string             `json:"query"` // its normal form
	Tree     any                `json:"tree,omitempty"`
	Pipes    []string           `json:"pipes,omitempty"`
	From     string             `json:"from,omitempty"`
	Until    string             `json:"until,omitempty"`
	Reads    any                `json:"reads"`              // of lines: the fields that pipes look at, or that it is whole lines
	Contains string             `json:"contains,omitempty"` // in each line that matches, unless with an escape
	Segments map[string]int     `json:"segments,omitempty"`
	Counted  int64              `json:"counted,omitempty"` // lines that were not read, since the journal has counts of them
	Blocks   map[string]int64   `json:"blocks,omitempty"`
	Complete bool               `json:"complete"`
	Rows     int                `json:"rows"`
	Seconds  map[string]float64 `json:"seconds"`
	outcome
}

// serveExplain answers GET /api/explain: how a query is understood, and, after a search of
// at most explainFor, what of the journal it has read and how long each step took.
func (a *API) serveExplain(w http.ResponseWriter, r *http.Request) {
	if !onlyGet(w, r) {
		return
	}
	begin := time.Now()
	req, err := a.parseRequest(r, "q", "since", "until", "limit", "last", "from", "for")
	parsed := time.Since(begin)
	bound := explainFor
	if s := req.values.Get("for"); err == nil && s != "" {
		if bound, err = time.ParseDuration(s); err != nil || bound <= 0 || bound > explainAtMost {
			err = fmt.Errorf("parameter for: found %s, expected how long to search, at most %v, such as 5s", show(s), explainAtMost)
		}
	}
	if err != nil {
		writeError(w, http.StatusBadRequest, err)
		return
	}
	ctx, out, done, ok := a.start(w, r, req)
	if !ok {
		return
	}
	defer done()
	x := req.explain()
	in, all := a.src.segments(req.query.TimeRange())
	if req.pipes == nil { // the lines are rows
		req.pipes = &pipe.Pipeline{Lines: true, Stages: []pipe.Stage{pipe.Limit{N: math.MaxInt}}}
	}
	if req.limit > 0 {
		req.pipes.Stages = limited(req.pipes.Stages, req.limit)
	}
	p := new(probe)
	req.query.probe = p
	f := &figures{rows: out, ctx: ctx, pipes: req.pipes, until: time.Now().Add(bound)}
	out.figures = f
	f.shape = func(t *table) (any, error) {
		x.outcome = t.outcome
		if !out.only {
			x.Segments = map[string]int{"all": all, "in_range": in}
			x.Counted = p.counted.Load()
			x.Blocks = map[string]int64{
				"by_time": p.seen.ByTime.Load(), "by_tenant": p.seen.ByTenant.Load(), "by_filter": p.seen.ByFilter.Load(), "read": p.seen.Read.Load(),
			}
		}
		x.Seconds = make(map[string]float64)
		for name, n := range map[string]int64{
			"parse": int64(parsed), "all": int64(time.Since(begin)), "wait": p.wait.Load(), "read": p.seen.Nanos.Load() - p.unpack.Load(), "unpack": p.unpack.Load(), "match": p.looks.Load() - p.emits.Load(), "pipes": p.pipes.Load(),
		} {
			x.Seconds[name] = time.Duration(n).Round(time.Microsecond).Seconds()
		}
		return x, nil
	}
	err = a.runPipes(ctx, out, req, func(*pipe.Row) error { x.Rows++; return nil })
	if x.Complete = err == nil; errors.Is(err, errEnough) {
		err = nil
	}
	if err == nil {
		err = f.send("done", nil, nil)
	}
	if err != nil {
		f.fail(r, err)
	}
}

// explain tells how req was parsed.
func (req *request) explain() *explanation {
	q := req.query
	x := &explanation{Query: q.String(), Contains: string(q.literal)}
	if q.root != nil {
		x.Tree = q.root.tree()
	}
	if req.pipes != nil {
		for _, s := range req.pipes.Stages {
			name := fmt.Sprintf("%T", s)
			x.Pipes = append(x.Pipes, strings.ToLower(name[strings.LastIndexByte(name, '.')+1:]))
		}
	}
	minimum, maximum := q.TimeRange()
	if minimum > math.MinInt64 {
		x.From = formatTime(time.Unix(0, minimum))
	}
	if maximum < math.MaxInt64 {
		x.Until = formatTime(time.Unix(0, maximum).Add(1))
	}
	x.Reads = "whole lines"
	if q.fields != nil {
		names := []string{}
		for _, f := range q.fields {
			names = append(names, f.name())
		}
		x.Reads = names
	}
	return x
}

// tree returns n for package json: a term as it is written, or an object.
func (n *node) tree() any {
	var kids []any
	for _, kid := range n.kids {
		kids = append(kids, kid.tree())
	}
	switch n.kind {
	case nodeNot:
		return map[string]any{"not": kids[0]}
	case nodeAnd:
		return map[string]any{"and": kids}
	case nodeOr:
		return map[string]any{"or": kids}
	}
	return string(n.appendTo(nil))
}

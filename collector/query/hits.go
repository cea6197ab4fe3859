package query

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/rollway/rollway/collector/query/pipe"
	"github.com/rollway/rollway/internal/jsonline"
)

// Limits of serveHits.
const (
	maxBuckets    = 10_000
	defaultValues = 10
	maxValues     = 100
)

// serveHits answers GET /api/hits: how many lines match in each step of time, and how many of
// them have each of the most frequent values of a field.
func (a *API) serveHits(w http.ResponseWriter, r *http.Request) {
	a.serveFigures(w, r, askHits, "step", "by", "limit")
}

// hits is the answer.
type hits struct {
	From    string            `json:"from,omitempty"`
	Until   string            `json:"until,omitempty"`
	Step    float64           `json:"step_seconds,omitempty"`
	By      string            `json:"by,omitempty"`
	Values  []json.RawMessage `json:"values,omitempty"` // of By, the most frequent first
	Buckets []hitsBucket      `json:"buckets"`
	outcome
}

type hitsBucket struct {
	Time   string  `json:"time"`
	Count  int64   `json:"count"`
	Counts []int64 `json:"counts,omitempty"` // of each of Values
}

// askHits has req count by steps of time and values.
func askHits(req *request) (shape, error) {
	minimum, maximum := req.query.TimeRange()
	known := minimum > math.MinInt64
	if maximum == math.MaxInt64 {
		maximum = req.now.UnixNano() - 1
	}
	maximum = max(minimum, maximum)
	written, step, err := parseStep(req, known, minimum, maximum)
	if err != nil {
		return nil, err
	}
	limit, err := req.most("values", defaultValues, maxValues)
	if err != nil {
		return nil, err
	}
	by, pipes := "level", "| stats count() as n by time("+written+") as t"
	if req.values.Has("by") {
		by = req.values.Get("by")
	}
	if by != "" {
		quoted, err := fieldParameter("by", by)
		if err != nil {
			return nil, err
		}
		pipes += ", " + quoted + " as v"
	}
	if err := req.addPipes(pipes); err != nil {
		return nil, err
	}
	return func(t *table) (any, error) {
		h := &hits{By: by, outcome: t.outcome}
		h.count(t.rows, limit)
		if len(h.Buckets) > maxBuckets {
			return nil, &limitError{fmt.Errorf("parameter step: it makes more than %d steps; take a longer one, or give since", maxBuckets)}
		}
		step, n := cmp.Or(step, t.step), len(h.Buckets)
		if n > 0 || known {
			h.Step = step.Seconds()
		}
		if n > 0 {
			h.From = h.Buckets[0].Time
			if end, err := time.Parse(time.RFC3339Nano, h.Buckets[n-1].Time); err == nil {
				h.Until = formatTime(end.Add(step))
			}
		}
		if known {
			h.From = formatTime(time.Unix(0, minimum))
			h.Until = max(h.Until, formatTime(time.Unix(0, maximum).Add(1)))
		}
		return h, nil
	}, nil
}

// parseStep returns the step as a pipe has it, and its length; 0: the pipe chooses.
func parseStep(req *request, known bool, minimum, maximum int64) (string, time.Duration, error) {
	const second = int64(time.Second)
	written := req.values.Get("step")
	if written == "" || written == "auto" {
		if !known {
			return "auto", 0, nil
		}
		step := pipe.StepFor(minimum/second, maximum/second, autoSteps)
		return strconv.FormatInt(int64(step/time.Second), 10) + "s", step, nil
	}
	p := &pipeParser{parser: parser{expr: written, now: req.now}}
	step, err := p.step()
	if syntax := (*SyntaxError)(nil); errors.As(err, &syntax) || p.pos < len(written) {
		return "", 0, fmt.Errorf("parameter step: found %s, expected a duration: 30s, 5m, 1h, 1d; or nothing, for about 100 steps", show(written))
	}
	if known && uint64(maximum-minimum)/uint64(step) >= maxBuckets {
		return "", 0, fmt.Errorf("parameter step: %s makes more than %d steps of the time from since to until; take a longer one", written, maxBuckets)
	}
	return written, step, nil
}

// count makes buckets of rows with a time, a value of by if there is one, and a count, in
// the order of times.
func (h *hits) count(rows [][]pipe.Value, limit int) {
	totals := make(map[string]int64)
	count := func(row []pipe.Value) int64 { return intOf(row[len(row)-1]) }
	if h.By != "" {
		for _, row := range rows {
			totals[string(jsonOf(row[1]))] += count(row)
		}
	}
	var keys []string
	for key := range totals {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(a, b string) int { return cmp.Or(cmp.Compare(totals[b], totals[a]), cmp.Compare(a, b)) })
	index := make(map[string]int)
	for i, key := range keys[:min(limit, len(keys))] {
		index[key] = i
		h.Values = append(h.Values, json.RawMessage(key))
	}
	h.Buckets = []hitsBucket{}
	for _, row := range rows {
		at := string(row[0].Text)
		if at == "" {
			continue
		}
		if n := len(h.Buckets); n == 0 || h.Buckets[n-1].Time != at {
			h.Buckets = append(h.Buckets, hitsBucket{Time: at, Counts: make([]int64, len(h.Values))})
		}
		b := &h.Buckets[len(h.Buckets)-1]
		b.Count += count(row)
		if h.By != "" {
			if i, ok := index[string(jsonOf(row[1]))]; ok {
				b.Counts[i] += count(row)
			}
		}
	}
}

func formatTime(t time.Time) string { return string(jsonline.AppendTime(nil, t.UTC())) }

package query

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/rollway/rollway/collector/query/pipe"
)

// serveStats answers GET /api/stats: the rows that the pipes of a query give, as a table.
func (a *API) serveStats(w http.ResponseWriter, r *http.Request) {
	a.serveFigures(w, r, askStats, "limit", "last", "from")
}

// askStats has the rows be a table.
func askStats(req *request) (shape, error) {
	if req.pipes == nil || req.pipes.Lines {
		return nil, errors.New("parameter q: its rows are lines; add stats, top, patterns or fields, or ask /api/query")
	}
	if req.limit > 0 {
		req.pipes.Stages = limited(req.pipes.Stages, req.limit)
	}
	return func(t *table) (any, error) {
		answer := struct {
			Columns []string            `json:"columns"`
			Rows    [][]json.RawMessage `json:"rows"`
			outcome
		}{Rows: make([][]json.RawMessage, 0, len(t.rows)), outcome: t.outcome}
		for _, c := range t.columns {
			answer.Columns = append(answer.Columns, c.Name)
		}
		for _, row := range t.rows {
			values := make([]json.RawMessage, 0, len(row))
			for _, v := range row {
				values = append(values, jsonOf(v))
			}
			answer.Rows = append(answer.Rows, values)
		}
		return answer, nil
	}, nil
}

// Limits of fields and facets.
const (
	defaultNames = 1000
	maxNames     = 10_000
	maxFacets    = 20
)

// serveFields answers GET /api/fields: which fields the lines that match have.
func (a *API) serveFields(w http.ResponseWriter, r *http.Request) {
	a.serveFigures(w, r, askFields, "limit", "last")
}

// fieldFigures is what is told of a field.
type fieldFigures struct {
	Name   string           `json:"name"`
	Count  int64            `json:"count"` // how often it occurs
	Types  map[string]int64 `json:"types"`
	Values int64            `json:"values"` // different ones
}

// askFields has req count and describe the fields of lines.
func askFields(req *request) (shape, error) {
	limit, err := req.most("names", defaultNames, maxNames)
	if err != nil {
		return nil, err
	}
	calls := []pipe.Call{{Name: "count", Function: "count"}, {Name: "values", Function: "uniq", Field: &pipe.Field{Index: 1}}}
	groups := []pipe.Group{{Field: pipe.Field{Name: "name"}}, {Field: pipe.Field{Name: "type", Index: 2}}}
	if err := req.count(&pipe.Explode{Each: eachField}, &pipe.Stats{Groups: groups, Calls: calls}); err != nil {
		return nil, err
	}
	return func(t *table) (any, error) {
		answer := struct {
			Fields []fieldFigures `json:"fields"`
			More   int            `json:"more,omitempty"`
			outcome
		}{Fields: make([]fieldFigures, 0, len(t.rows)), outcome: t.outcome}
		index := make(map[string]int)
		for _, row := range t.rows { // of one type, whose values are not those of another
			name := string(row[0].Text)
			if _, ok := index[name]; !ok {
				index[name] = len(answer.Fields)
				answer.Fields = append(answer.Fields, fieldFigures{Name: name, Types: make(map[string]int64)})
			}
			f := &answer.Fields[index[name]]
			f.Types[string(row[1].Text)] = intOf(row[2])
			f.Count += intOf(row[2])
			f.Values += intOf(row[3])
		}
		slices.SortStableFunc(answer.Fields, func(a, b fieldFigures) int { return cmp.Compare(b.Count, a.Count) })
		answer.More = max(0, len(answer.Fields)-limit)
		answer.Fields = answer.Fields[:len(answer.Fields)-answer.More]
		return answer, nil
	}, nil
}

// serveFacets answers GET /api/facets: the most frequent values of fields.
func (a *API) serveFacets(w http.ResponseWriter, r *http.Request) {
	a.serveFigures(w, r, askFacets, "field", "limit")
}

// facet is the most frequent values of a field.
type facet struct {
	Field  string       `json:"field"`
	Values []facetValue `json:"values"`
	More   int64        `json:"more,omitempty"` // other values
}

type facetValue struct {
	Value json.RawMessage `json:"value"`
	Count int64           `json:"count"`
}

// askFacets has req count the values of fields.
func askFacets(req *request) (shape, error) {
	limit, err := req.most("values", defaultValues, maxBuckets)
	if err != nil {
		return nil, err
	}
	names := strings.Split(req.values.Get("field"), ",")
	if len(names) > maxFacets {
		return nil, fmt.Errorf("parameter field: found %d fields, expected at most %d", len(names), maxFacets)
	}
	var fields []pipe.Field
	for i, name := range names {
		if _, err := fieldParameter("field", name); err != nil {
			return nil, err
		}
		if slices.Contains(names[:i], name) {
			return nil, fmt.Errorf("parameter field: found %s twice", show(name))
		}
		fields = append(fields, req.field(name))
		fields[i].Name = name
	}
	if err := req.count(&pipe.Facets{Fields: fields, Most: limit}); err != nil {
		return nil, err
	}
	req.query.fields = append([]field{}, req.query.read...)
	for i, name := range names {
		fields[i].Cells = len(req.query.fields)
		req.query.fields = append(req.query.fields, resolve(name))
	}
	return func(t *table) (any, error) {
		answer := struct {
			Facets []facet `json:"facets"`
			outcome
		}{outcome: t.outcome}
		for _, name := range names {
			f := facet{Field: name, Values: []facetValue{}}
			for _, row := range t.rows {
				if string(row[0].Text) == name {
					f.Values, f.More = append(f.Values, facetValue{jsonOf(row[1]), intOf(row[2])}), intOf(row[3])
				}
			}
			answer.Facets = append(answer.Facets, f)
		}
		return answer, nil
	}, nil
}

// count has stages count what is in lines.
func (req *request) count(stages ...pipe.Stage) error {
	err := req.addPipes("")
	if err == nil {
		req.pipes.Stages, req.pipes.Lines = append(req.pipes.Stages, stages...), false
	}
	return err
}

// field returns the field called name of the rows of req.
func (req *request) field(name string) pipe.Field {
	p := &pipeParser{lines: true}
	if req.pipes != nil {
		p.columns = req.pipes.Columns
	}
	f, _ := p.fieldOf(name, 0) // a line may have any
	return f
}

// most takes limit, which is of things and not of rows.
func (req *request) most(things string, normal, most int) (int, error) {
	limit := cmp.Or(req.limit, normal)
	if req.limit = 0; limit > most {
		return 0, fmt.Errorf("parameter limit: found %d, expected at most %d %s", limit, most, things)
	}
	return limit, nil
}

// intOf returns a count.
func intOf(v pipe.Value) int64 {
	n, _ := strconv.ParseInt(string(v.Text), 10, 64)
	return n
}

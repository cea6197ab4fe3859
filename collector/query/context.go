package query

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/rollway/rollway/internal/jsonwalk"
)

// Limits of serveContext.
const (
	defaultAround = 20
	maxAround     = 1000
)

// around is what a request for the lines around another asks for.
type around struct {
	request
	offset        uint64
	before, after int
	by            []string // fields that the lines have the same values of
}

// serveContext answers GET /api/context: a line and those before and after it, in the order of
// offsets, that have the same values of some fields. Headers and trailers are those of ServeQuery.
func (a *API) serveContext(w http.ResponseWriter, r *http.Request) {
	if !onlyGet(w, r) {
		return
	}
	req, err := a.parseAround(r)
	if err != nil {
		writeError(w, http.StatusBadRequest, err)
		return
	}
	ctx, out, done, ok := a.start(w, r, req.request)
	if !ok {
		return
	}
	defer done()
	err = a.writeAround(ctx, out, req)
	if missing := (*noLineError)(nil); errors.As(err, &missing) && !out.started {
		writeError(w, http.StatusNotFound, err)
		return
	}
	if out.only {
		out.next = max(req.offset, out.after)
	}
	if err == nil {
		err = out.flush()
	}
	out.finish(r, err)
}

func (a *API) parseAround(r *http.Request) (req around, err error) {
	if req.request, err = a.parseRequest(r, "offset", "before", "after", "by", "q", "since", "until"); err != nil {
		return req, err
	}
	if req.pipes != nil {
		return req, errors.New("parameter q: lines around another take no pipes; leave out what follows the first |")
	}
	offset := req.values.Get("offset")
	if req.offset, err = strconv.ParseUint(offset, 10, 63); err != nil {
		return req, fmt.Errorf("parameter offset: found %s, expected the offset of a line, as /api/query?offsets=true has them", show(offset))
	}
	for name, n := range map[string]*int{"before": &req.before, "after": &req.after} {
		*n = defaultAround
		if s := req.values.Get(name); s != "" {
			if *n, err = strconv.Atoi(s); err != nil || *n < 0 || *n > maxAround {
				return req, fmt.Errorf("parameter %s: found %s, expected a number of lines, from 0 to %d", name, show(s), maxAround)
			}
		}
	}
	by := "service"
	if req.values.Has("by") {
		by = req.values.Get("by")
	}
	if by != "" {
		req.by = strings.Split(by, ",")
	}
	if len(req.by) > maxFacets {
		return req, fmt.Errorf("parameter by: found %d fields, expected at most %d", len(req.by), maxFacets)
	}
	for _, name := range req.by {
		if _, err := fieldParameter("by", name); err != nil {
			return req, err
		}
	}
	return req, nil
}

// noLineError is the error for an offset at which there is nothing to read.
type noLineError struct{ offset uint64 }

func (e *noLineError) Error() string {
	return fmt.Sprintf("parameter offset: found %d, at which no line is stored", e.offset)
}

// writeAround sends the lines before, the line and those after it.
func (a *API) writeAround(ctx context.Context, out *rows, req around) error {
	end, tick := out.end, func() error { return out.tick(patience) }
	var hit []byte
	all := &Query{tenant: req.query.tenant}
	err := a.find(ctx, all, req.offset, min(end, req.offset+1), &out.found, func(_ uint64, line []byte) (bool, error) {
		hit = bytes.Clone(line)
		return true, out.mem.take(len(hit))
	}, tick)
	if err != nil {
		return err
	}
	if hit == nil {
		return &noLineError{req.offset}
	}
	if req.query, err = req.like(hit); err != nil {
		return err
	}
	out.offsets = true
	if req.last, out.end = req.before, req.offset; req.last > 0 {
		if err := a.writeHeld(ctx, out, req.request, out.from, &out.mem); err != nil {
			return err
		}
	}
	out.buf = appendAt(out.buf, req.offset, hit)
	out.end, out.next = end, req.offset+1
	if req.limit = req.after; req.limit == 0 {
		return nil
	}
	out.next = end
	return a.writeFirst(ctx, out, req.request, req.offset+1)
}

// like returns the query for lines with the same values of req.by as line.
func (req *around) like(line []byte) (*Query, error) {
	kids := []*node{req.query.root}
	if kids[0] == nil {
		kids = nil
	}
	for _, name := range req.by {
		f := resolve(name)
		expr := appendQuoted(nil, name)
		switch raw := f.find(line); {
		case raw == nil:
			expr = append(expr, "!=*"...)
		case raw[0] == '{' || raw[0] == '[':
			return nil, &limitError{fmt.Errorf("parameter by: %s is a list or an object in the line at %d; name a field inside, such as %s", show(name), req.offset, show(name+".x"))}
		case raw[0] == '"':
			text, _ := jsonwalk.Text(raw, nil)
			expr = appendQuoted(append(expr, '='), string(text))
		default:
			expr = append(append(expr, '='), raw...)
		}
		q, err := parseAt(string(expr), req.now)
		if err != nil {
			return nil, &limitError{fmt.Errorf("parameter by: the value of %s cannot be searched for: %w", show(name), err)}
		}
		kids = append(kids, q.root)
	}
	if len(kids) == 0 {
		return req.query, nil
	}
	q := compile(join(nodeAnd, kids))
	q.tenant = req.query.tenant
	return q, nil
}

// appendAt appends a line with its offset.
func appendAt(dst []byte, offset uint64, line []byte) []byte {
	dst = strconv.AppendUint(append(dst, `{"offset":`...), offset, 10)
	dst = append(append(dst, `,"line":`...), bytes.TrimSuffix(line, []byte("\n"))...)
	return append(dst, "}\n"...)
}

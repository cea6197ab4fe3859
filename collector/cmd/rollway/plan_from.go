package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/rollway/rollway/collector/config"
	"github.com/rollway/rollway/internal/backoff"
	"github.com/rollway/rollway/internal/plan"
	"github.com/rollway/rollway/slab"
)

// An observation is what two readings of a Writer's Stats show. -o json prints it.
type observation struct {
	Source   string        `json:"source"`
	Elapsed  time.Duration `json:"elapsed_ns"`
	Workload plan.Workload `json:"workload"`
	Stats    slab.Stats    `json:"stats"` // of the second reading
	Advice   []string      `json:"advice"`
}

// observe reads twice and computes the workload in between.
func (p *planFlags) observe(ctx context.Context) (*observation, error) {
	first, last := p.from[0], p.from[len(p.from)-1]
	before, _, err := p.read(ctx, first)
	if err != nil {
		return nil, err
	}
	began, saved := time.Now(), len(p.from) == 2
	if !saved && !backoff.Sleep(ctx, p.interval) {
		return nil, ctx.Err()
	}
	s, name, err := p.read(ctx, last)
	if err != nil {
		return nil, err
	}
	elapsed := time.Since(began)
	if saved {
		elapsed = p.interval
	}
	w, err := plan.Observed(before, s, elapsed)
	switch {
	case err != nil && !saved && !isURL(first):
		return nil, fmt.Errorf("%s: %w; if it is a saved page, give two: -from BEFORE -from AFTER -interval TIME-BETWEEN", last, err)
	case err != nil:
		return nil, fmt.Errorf("%s: %w", last, err)
	}
	return &observation{Source: fmt.Sprintf("%s of %s", appendPlain(nil, name), redacted(last)), Elapsed: elapsed, Workload: w, Stats: s}, nil
}

func isURL(from string) bool { return strings.Contains(from, "://") }

// redacted returns from without a password.
func redacted(from string) string {
	if u, err := url.Parse(from); err == nil && isURL(from) {
		return u.Redacted()
	}
	return from
}

// read gets the page at from and finds the Stats on it, and their name.
func (p *planFlags) read(ctx context.Context, from string) (s slab.Stats, name string, err error) {
	page, err := p.open(ctx, from)
	if err != nil {
		return s, "", err
	}
	defer page.Close()
	text, err := io.ReadAll(io.LimitReader(page, maxAnswer+1))
	if err != nil {
		return s, "", fmt.Errorf("read %s: %w", redacted(from), err)
	}
	if len(text) > maxAnswer {
		return s, "", fmt.Errorf("%s has more than %s, it is not a page of variables", redacted(from), byteCount(maxAnswer))
	}
	if s, name, err = findStats(text, p.name); err != nil {
		err = fmt.Errorf("%s: %w", redacted(from), err)
	}
	return s, name, err
}

// open returns a file or the answer of a server.
func (p *planFlags) open(ctx context.Context, from string) (io.ReadCloser, error) {
	if !isURL(from) {
		f, err := os.Open(from)
		if err != nil {
			return nil, fmt.Errorf("%w (a page that a process serves is named as in http://127.0.0.1:6060/debug/vars)", err)
		}
		return f, nil
	}
	u, err := url.Parse(from)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, usagef("-from %q is not the address of a page: write it as in http://127.0.0.1:6060/debug/vars", from)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, from, nil)
	if err != nil {
		return nil, err
	}
	resp, err := (&http.Client{Timeout: p.timeout}).Do(req)
	if failed, ok := errors.AsType[*url.Error](err); ok {
		return nil, fmt.Errorf("%s: %w", u.Redacted(), failed.Err)
	}
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		defer resp.Body.Close()
		return nil, newStatusError(u.Redacted(), resp)
	}
	return resp.Body, nil
}

// findStats finds the Stats of a slab.Writer on an expvar page: at its top, or
// nested in objects. name chooses one of several.
func findStats(text []byte, name string) (s slab.Stats, _ string, err error) {
	found := map[string]exports{}
	const maxNesting = 4
	if err := collectStats(found, "", text, maxNesting); err != nil {
		return s, "", fmt.Errorf("this is not a page of variables in JSON: %w", err)
	}
	names := slices.Sorted(maps.Keys(found))
	list := string(appendPlain(nil, strings.Join(names, ", ")))
	switch {
	case len(names) == 0:
		return s, "", errors.New(`there is no value with the fields of slab.Stats: publish it with expvar.Publish("slab", expvar.Func(func() any { return w.Stats() }))`)
	case name == "" && len(names) > 1:
		return s, "", fmt.Errorf("there are several Writers, choose one with -name: %s", list)
	case name == "":
		name = names[0]
	case found[name] == nil:
		return s, "", fmt.Errorf("there is no Writer's Stats under the name %q, but: %s", name, list)
	}
	delete(found[name], "LastError") // errors have no form in JSON
	delete(found[name], "PersistError")
	value, err := json.Marshal(found[name])
	if err == nil {
		err = json.Unmarshal(value, &s)
	}
	if err != nil {
		return s, "", fmt.Errorf("the value %q is not the Stats of a slab.Writer: %w", name, err)
	}
	return s, name, nil
}

// exports are the variables of an object.
type exports map[string]json.RawMessage

// collectStats adds the objects in value that look like Stats to found. It fails
// only if value itself is not an object.
func collectStats(found map[string]exports, path string, value []byte, depth int) error {
	var object exports
	if err := json.Unmarshal(value, &object); err != nil {
		return err
	}
	if object["Accepted"] != nil && object["Dropped"] != nil && object["SlabsPeak"] != nil {
		found[cmp.Or(path, "stats")] = object
		return nil
	}
	for key, inner := range object {
		if path != "" {
			key = path + "." + key
		}
		if depth > 0 {
			_ = collectStats(found, key, inner, depth-1) // anything else is skipped
		}
	}
	return nil
}

// judge derives advice. c is planned for the observed workload as changed by flags;
// fixed reports whether flags gave the slabs.
func (o *observation) judge(c plan.Capacity, fixed bool) {
	advise := func(when bool, format string, args ...any) {
		if when {
			o.Advice = append(o.Advice, fmt.Sprintf(format, args...))
		}
	}
	s := o.Stats
	full, gone, long := s.Dropped.Full, s.Dropped.GaveUp, s.Dropped.TooLarge
	advise(full > 0, "%s found no room and were dropped since the start.", lines(int(full)))
	switch {
	case s.Waiting > 0:
		advise(true, "%s waiting for a slab at this moment.", areMany(s.Waiting, "producer"))
	case s.SlabsPeak >= s.Slabs:
		advise(true, "All %d slabs have been taken at once: producers may have had to wait.", s.Slabs)
	default:
		advise(2*s.SlabsPeak <= s.Slabs, "No more than %d of %d slabs have been taken at once: so far they were enough.", s.SlabsPeak, s.Slabs)
	}
	advise(gone > 0 || s.Errors > 0, "%s of the destination failed, and %s were given up: slabs bridge a stall, not an outage.", plural(int(s.Errors), "write"), lines(int(gone)))
	advise(long > 0, "%s were longer than MaxLine.", lines(int(long)))
	w := c.Workload
	advise(w.LineSizeP99 >= 8*w.LineSize, "The longest line has %d times the mean size. If it is an exception, give the usual maximum as -line-p99.", w.LineSizeP99/w.LineSize)
	advise(c.Limit == plan.LimitNone && !fixed && c.SlabCount != s.Slabs, "The Writer has %s; the plan is %d of %v. -slab-size SIZE evaluates those it has.",
		plural(s.Slabs, "slab"), c.SlabCount, config.Size(c.SlabSize))
	advise(c.Limit != plan.LimitThroughput && c.Headroom() < 2, "The destination can take %.2g times what comes: it needs long to recover from a stall.", c.Headroom())
	advise(true, "The rate is a mean over %v. If the busiest second has more, give that as -rate.", o.Elapsed.Round(time.Millisecond))
}

func (o *observation) text() string {
	var t sheet
	w, s := o.Workload, o.Stats
	t.title("observed for %v: %s", o.Elapsed.Round(time.Millisecond), o.Source)
	t.row("rate", "%s, %s", perSecond(w.Rate, "lines"), megabytes(w.Rate*float64(w.LineSize)))
	t.row("line", "%s B in the mean, %s B at most since the start", count(w.LineSize), count(s.LineMax))
	t.row("a write took", "%s in the mean, %s at most since the start", shortTime(w.WriteLatency), shortTime(s.WriteMax))
	t.row("slabs taken", "%d of %d now, %d at most since the start", s.Slabs-s.SlabsFree, s.Slabs, s.SlabsPeak)
	var reasons []string
	for reason, n := range reflect.ValueOf(s.Dropped).Fields() {
		if n.Uint() > 0 {
			reasons = append(reasons, reason.Name+" "+count(int(n.Uint())))
		}
	}
	t.row("dropped", "%s since the start", strings.TrimSuffix(lines(int(s.Dropped.Total()))+": "+strings.Join(reasons, ", "), ": "))
	t.row("failed writes", "%s since the start", count(int(s.Errors)))
	t.title("advice")
	for _, a := range o.Advice {
		t.WriteString("  - " + a + "\n")
	}
	return t.String()
}

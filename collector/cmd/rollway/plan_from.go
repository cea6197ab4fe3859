package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/rollway/rollway/collector/config"
	"github.com/rollway/rollway/internal/plan"
	"github.com/rollway/rollway/slab"
)

// An observation is what two readings of a Writer's Stats show. -json prints it.
type observation struct {
	Source   string        `json:"source"`
	Elapsed  time.Duration `json:"elapsed_ns"`
	Workload plan.Workload `json:"workload"`

	// Since the Writer started.
	WriteMax  time.Duration `json:"write_max_ns"`
	LineMax   int           `json:"line_max_bytes"`
	Slabs     int           `json:"slabs"`
	SlabsPeak int           `json:"slabs_peak"`
	Dropped   uint64        `json:"dropped_lines"`
	Errors    uint64        `json:"failed_writes"`

	Waiting int      `json:"producers_waiting"` // now
	Advice  []string `json:"advice"`

	slabsFree int
	drops     map[string]uint64 // lines by reason, those with any
}

// observe reads twice and computes the workload in between.
func (p *planFlags) observe(ctx context.Context) (*observation, error) {
	first, last := p.from[0], p.from[len(p.from)-1]
	before, _, err := p.read(ctx, first)
	if err != nil {
		return nil, err
	}
	began, saved := time.Now(), len(p.from) == 2
	if !saved {
		select {
		case <-time.After(p.interval):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	s, name, err := p.read(ctx, last)
	if err != nil {
		return nil, err
	}
	elapsed := time.Since(began)
	if saved {
		elapsed = p.interval
	}
	w, err := plan.Observed(before.Stats, s.Stats, elapsed)
	switch {
	case err != nil && !saved && !isURL(first):
		return nil, fmt.Errorf("%s: %w; if it is a saved page, give two: -from BEFORE -from AFTER -interval TIME-BETWEEN", last, err)
	case err != nil:
		return nil, fmt.Errorf("%s: %w", last, err)
	}
	o := &observation{
		Source: fmt.Sprintf("%s of %s", appendPlain(nil, name), redacted(last)), Elapsed: elapsed, Workload: w,
		WriteMax: s.WriteMax, LineMax: s.LineMax, Slabs: s.Slabs, SlabsPeak: s.SlabsPeak, Errors: s.Errors,
		Waiting: s.Waiting, slabsFree: s.SlabsFree, drops: map[string]uint64{},
	}
	for reason, n := range s.drops {
		if n > 0 {
			o.Dropped += n
			o.drops[string(appendPlain(nil, reason))] = n
		}
	}
	return o, nil
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
func (p *planFlags) read(ctx context.Context, from string) (s pageStats, name string, err error) {
	text, err := p.page(ctx, from)
	if err != nil {
		return s, "", err
	}
	if s, name, err = findStats(text, p.name); err != nil {
		err = fmt.Errorf("%s: %w", redacted(from), err)
	}
	return s, name, err
}

// page returns the content of a file or the answer of a server.
func (p *planFlags) page(ctx context.Context, from string) ([]byte, error) {
	if !isURL(from) {
		f, err := os.Open(from)
		if err != nil {
			return nil, fmt.Errorf("%w (a page that a process serves is named as in http://127.0.0.1:6060/debug/vars)", err)
		}
		defer f.Close()
		return readPage(f, from)
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
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, newStatusError(u.Redacted(), resp)
	}
	return readPage(resp.Body, u.Redacted())
}

// readPage reads r to its end, up to maxAnswer bytes.
func readPage(r io.Reader, name string) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(r, maxAnswer+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	if len(text) > maxAnswer {
		return nil, fmt.Errorf("%s has more than %s, it is not a page of variables", name, byteCount(maxAnswer))
	}
	return text, nil
}

// pageStats are the Stats of a Writer as expvar prints them.
type pageStats struct {
	slab.Stats
	drops map[string]uint64 // lines by reason
}

// UnmarshalJSON leaves out the last error, which has no form in JSON.
func (s *pageStats) UnmarshalJSON(text []byte) error {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(text, &fields); err != nil {
		return err
	}
	delete(fields, "LastError")
	text, err := json.Marshal(fields)
	if err != nil {
		return err
	}
	return errors.Join(json.Unmarshal(text, &s.Stats), json.Unmarshal(fields["Dropped"], &s.drops))
}

// findStats finds the Stats of a slab.Writer on an expvar page: at its top, or
// nested in objects. name chooses one of several.
func findStats(text []byte, name string) (s pageStats, _ string, err error) {
	found := map[string]json.RawMessage{}
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
	if err := json.Unmarshal(found[name], &s); err != nil {
		return s, "", fmt.Errorf("the value %q is not the Stats of a slab.Writer: %w", name, err)
	}
	return s, name, nil
}

// collectStats adds the objects in value that look like Stats to found. It fails
// only if value itself is not an object.
func collectStats(found map[string]json.RawMessage, path string, value []byte, depth int) error {
	var object map[string]json.RawMessage
	if err := json.Unmarshal(value, &object); err != nil {
		return err
	}
	if object["Accepted"] != nil && object["Dropped"] != nil && object["SlabsPeak"] != nil {
		if path == "" {
			path = "stats"
		}
		found[path] = value
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
	advise := func(format string, args ...any) { o.Advice = append(o.Advice, fmt.Sprintf(format, args...)) }
	if full := o.drops["Full"]; full > 0 {
		advise("%s found no room and were dropped since the start.", lines(int(full)))
	}
	switch {
	case o.Waiting > 0:
		advise("%s waiting for a slab at this moment.", areMany(o.Waiting, "producer"))
	case o.SlabsPeak >= o.Slabs:
		advise("All %d slabs have been taken at once: producers may have had to wait.", o.Slabs)
	case 2*o.SlabsPeak <= o.Slabs:
		advise("No more than %d of %d slabs have been taken at once: so far they were enough.", o.SlabsPeak, o.Slabs)
	}
	if gone := o.drops["GaveUp"]; gone > 0 || o.Errors > 0 {
		advise("%s of the destination failed, and %s were given up: slabs bridge a stall, not an outage.", plural(int(o.Errors), "write"), lines(int(gone)))
	}
	if n := o.drops["TooLarge"]; n > 0 {
		advise("%s were longer than MaxLine.", lines(int(n)))
	}
	if c.Workload.LineSizeP99 >= 8*c.Workload.LineSize {
		advise("The longest line has %d times the mean size. If it is an exception, give the usual maximum as -line-p99.", c.Workload.LineSizeP99/c.Workload.LineSize)
	}
	if c.Limit == plan.LimitNone && !fixed && c.SlabCount != o.Slabs {
		advise("The Writer has %s; the plan is %d of %v. -slab-size SIZE evaluates those it has.",
			plural(o.Slabs, "slab"), c.SlabCount, config.Size(c.SlabSize))
	}
	if c.Limit != plan.LimitThroughput && c.Headroom() < 2 {
		advise("The destination can take %.2g times what comes: it needs long to recover from a stall.", c.Headroom())
	}
	advise("The rate is a mean over %v. If the busiest second has more, give that as -rate.", o.Elapsed.Round(time.Millisecond))
}

// text formats o for people.
func (o *observation) text() string {
	var t sheet
	w := o.Workload
	t.title("observed for %v: %s", o.Elapsed.Round(time.Millisecond), o.Source)
	t.row("rate", "%s, %s", perSecond(w.Rate, "lines"), megabytes(w.Rate*float64(w.LineSize)))
	t.row("line", "%s B in the mean, %s B at most since the start", count(w.LineSize), count(o.LineMax))
	t.row("a write took", "%s in the mean, %s at most since the start", shortTime(w.WriteLatency), shortTime(o.WriteMax))
	t.row("slabs taken", "%d of %d now, %d at most since the start", o.Slabs-o.slabsFree, o.Slabs, o.SlabsPeak)
	var dropped []string
	for _, reason := range slices.Sorted(maps.Keys(o.drops)) {
		dropped = append(dropped, fmt.Sprintf("%s %s", reason, count(int(o.drops[reason]))))
	}
	t.row("dropped", "%s since the start", strings.TrimSuffix(lines(int(o.Dropped))+": "+strings.Join(dropped, ", "), ": "))
	t.row("failed writes", "%s since the start", count(int(o.Errors)))
	t.title("advice")
	for _, a := range o.Advice {
		t.WriteString("  - " + a + "\n")
	}
	return t.String()
}

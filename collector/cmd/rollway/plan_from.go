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

	"github.com/rollway/rollway/internal/plan"
	"github.com/rollway/rollway/slab"
)

const (
	maxPage    = 8 << 20
	maxNesting = 4 // how deep in a page the Stats may be
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

// A reading is the Stats on one page.
type reading struct {
	name  string
	at    time.Time
	stats slab.Stats
	drops map[string]uint64 // lines by reason, those with any
}

// observe reads twice and computes the workload in between.
func (p *planFlags) observe(ctx context.Context) (*observation, error) {
	first, last := p.from[0], p.from[len(p.from)-1]
	before, err := p.read(ctx, first)
	if err != nil {
		return nil, err
	}
	saved := len(p.from) == 2
	if !saved {
		select {
		case <-time.After(p.interval):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	after, err := p.read(ctx, last)
	if err != nil {
		return nil, err
	}
	elapsed := after.at.Sub(before.at)
	if saved {
		elapsed = p.interval
	}
	w, err := plan.Observed(before.stats, after.stats, elapsed)
	switch {
	case err != nil && !saved && !isURL(first):
		return nil, fmt.Errorf("%s: %w; if it is a saved page, give two: -from BEFORE -from AFTER -interval TIME-BETWEEN", last, err)
	case err != nil:
		return nil, fmt.Errorf("%s: %w", last, err)
	}
	s := after.stats
	o := &observation{
		Source: fmt.Sprintf("%s of %s", after.name, redacted(last)), Elapsed: elapsed, Workload: w,
		WriteMax: s.WriteMax, LineMax: s.LineMax, Slabs: s.Slabs, SlabsPeak: s.SlabsPeak, Errors: s.Errors,
		Waiting: s.Waiting, slabsFree: s.SlabsFree, drops: after.drops,
	}
	for _, n := range o.drops {
		o.Dropped += n
	}
	return o, nil
}

func isURL(from string) bool { return strings.Contains(from, "://") }

// redacted is from without a password.
func redacted(from string) string {
	if u, err := url.Parse(from); err == nil && isURL(from) {
		return u.Redacted()
	}
	return from
}

// read gets the page at from and finds the Stats on it.
func (p *planFlags) read(ctx context.Context, from string) (reading, error) {
	var page []byte
	var err error
	if isURL(from) {
		page, err = readPageURL(ctx, from, p.timeout)
	} else {
		page, err = readPageFile(from)
	}
	if err != nil {
		return reading{}, err
	}
	at := time.Now()
	r, err := findStats(page, p.name)
	if err != nil {
		return reading{}, fmt.Errorf("%s: %w", redacted(from), err)
	}
	r.at = at
	return r, nil
}

func readPageFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("%w (a page that a process serves is named as in http://127.0.0.1:6060/debug/vars)", err)
	}
	defer f.Close()
	return readPage(f, path)
}

func readPageURL(ctx context.Context, from string, timeout time.Duration) ([]byte, error) {
	u, err := url.Parse(from)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, usagef("-from %q is not the address of a page: write it as in http://127.0.0.1:6060/debug/vars", from)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("no answer within %v", timeout))
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, from, nil)
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, pageError(ctx, u, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		message, _ := io.ReadAll(io.LimitReader(resp.Body, 4<<10))
		return nil, fmt.Errorf("%s answers %d %s: %s", u.Redacted(), resp.StatusCode, http.StatusText(resp.StatusCode), serverMessage(message))
	}
	page, err := readPage(resp.Body, u.Redacted())
	if err != nil {
		return nil, pageError(ctx, u, err)
	}
	return page, nil
}

// pageError explains in one sentence why the page at u could not be read.
func pageError(ctx context.Context, u *url.URL, err error) error {
	if errors.Is(context.Cause(ctx), context.Canceled) {
		return context.Canceled // by Ctrl-C
	}
	if ctx.Err() != nil {
		return fmt.Errorf("%s: %w", u.Redacted(), context.Cause(ctx))
	}
	var failed *url.Error
	if errors.As(err, &failed) {
		return fmt.Errorf("%s: %w", u.Redacted(), failed.Err)
	}
	return err
}

// readPage reads r to its end, up to maxPage bytes.
func readPage(r io.Reader, name string) ([]byte, error) {
	page, err := io.ReadAll(io.LimitReader(r, maxPage+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	if len(page) > maxPage {
		return nil, fmt.Errorf("%s has more than %s, it is not a page of variables", name, byteCount(maxPage))
	}
	return page, nil
}

// findStats finds the Stats of a slab.Writer on an expvar page: at its top, or
// nested in objects. name chooses one of several.
func findStats(page []byte, name string) (reading, error) {
	found := map[string]json.RawMessage{}
	if err := collectStats(found, "", page, maxNesting); err != nil {
		return reading{}, fmt.Errorf("this is not a page of variables in JSON: %w", err)
	}
	names := slices.Sorted(maps.Keys(found))
	list := string(appendPlain(nil, strings.Join(names, ", ")))
	switch {
	case len(names) == 0:
		return reading{}, errors.New(`there is no value with the fields of slab.Stats: publish it with expvar.Publish("slab", expvar.Func(func() any { return w.Stats() }))`)
	case name == "" && len(names) > 1:
		return reading{}, fmt.Errorf("there are several Writers, choose one with -name: %s", list)
	case name == "":
		name = names[0]
	case found[name] == nil:
		return reading{}, fmt.Errorf("there is no Writer's Stats under the name %q, but: %s", name, list)
	}
	r, err := decodeStats(found[name])
	if err != nil {
		return reading{}, fmt.Errorf("the value %q is not the Stats of a slab.Writer: %w", name, err)
	}
	r.name = string(appendPlain(nil, name))
	return r, nil
}

// collectStats adds the objects in value that look like Stats to found. It fails
// only if value itself is not an object.
func collectStats(found map[string]json.RawMessage, path string, value []byte, depth int) error {
	var object map[string]json.RawMessage
	if err := json.Unmarshal(value, &object); err != nil {
		return err
	}
	if object["Accepted"] != nil && object["Pending"] != nil && object["SlabsPeak"] != nil {
		if path == "" {
			path = "stats"
		}
		found[path] = value
		return nil
	}
	if depth == 0 {
		return nil
	}
	for key, inner := range object {
		if path != "" {
			key = path + "." + key
		}
		_ = collectStats(found, key, inner, depth-1) // what is not an object is not looked at
	}
	return nil
}

// decodeStats reads the fields that the planner needs; a missing one is an error.
// Other fields may be anything: LastError has no JSON form.
func decodeStats(value []byte) (r reading, err error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(value, &fields); err != nil {
		return r, err
	}
	s := &r.stats
	var drops map[string]uint64
	for name, dst := range map[string]any{
		"Accepted": &s.Accepted, "BytesAccepted": &s.BytesAccepted, "Pending": &s.Pending, "LineMax": &s.LineMax,
		"Writes": &s.Writes, "WriteTime": &s.WriteTime, "WriteMax": &s.WriteMax, "Errors": &s.Errors,
		"Slabs": &s.Slabs, "SlabsFree": &s.SlabsFree, "SlabsPeak": &s.SlabsPeak, "Waiting": &s.Waiting,
		"Dropped": &drops,
	} {
		if fields[name] == nil {
			return r, fmt.Errorf("it has no %s", name)
		}
		if err := json.Unmarshal(fields[name], dst); err != nil {
			return r, fmt.Errorf("%s: %w", name, err)
		}
	}
	r.drops = map[string]uint64{}
	for reason, n := range drops {
		if n > 0 {
			r.drops[string(appendPlain(nil, reason))] = n
		}
	}
	return r, nil
}

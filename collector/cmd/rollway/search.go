package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/rollway/rollway/collector/query"
	"github.com/rollway/rollway/internal/backoff"
)

// A search prints what a query finds. Where an answer ends early because its connection
// broke, or the collector has searched for as long as it may, it asks again from there:
//
//  1. No line is printed twice, and none is left out without a word.
//  2. Lines in the order of offsets continue after the last one. Other answers, of pipes
//     and by time, are asked for again as of the same end; what was printed is compared
//     and skipped.
//  3. The first request must succeed. Later ones are retried for a minute.
//
// It is not safe for concurrent use.
type search struct {
	call   *call
	client *client
	values url.Values // as given
	take   func(line []byte) error
	begin  func(columns []string) error // once, before the first line; nil columns: lines
	flush  func() error                 // before it waits for lines

	offsets bool   // lines come with their offsets, in this order
	asked   bool   // a request has succeeded
	journal string // of the collector; given: it must be this one
	to      string // the end of the first answer, or given
	offset  uint64 // of the line that is taken
	next    string // where to continue
	taken   int    // lines
	missing []string
	sum     maphash.Hash
}

// printQuery prints the answer to a query and returns the offset after the records that
// were searched; for a reader of some lines, after the last of these.
func printQuery(ctx context.Context, c *call, cl *client, values url.Values, out *lineWriter) (end string, err error) {
	return printAround(ctx, c, cl, values, out, nil)
}

// printAround is printQuery; unless it is nil, around has the lines printed with others.
func printAround(ctx context.Context, c *call, cl *client, values url.Values, out *lineWriter, around *surroundings) (end string, err error) {
	s := &search{call: c, client: cl, values: values, take: out.write, begin: out.begin, flush: out.flush}
	if around != nil {
		s.take = func([]byte) error { return around.around(ctx, s.offset) }
	}
	err = s.run(ctx)
	if err == nil {
		err = out.end()
	}
	return cmp.Or(s.to, s.next), err
}

// earlyEnd is what the collector says of an answer that is not complete.
type earlyEnd struct{ reason string }

func (e *earlyEnd) Error() string { return "the answer ends early: " + e.reason }

// lostFor is how long a search tries to get on without a line.
const lostFor = time.Minute

// run returns nil if ctx ends it.
func (s *search) run(ctx context.Context) error {
	s.offsets = !query.Piped(s.values.Get("q")) && s.values.Get("order") != "time"
	since, early := time.Now(), false
	for failures := 0; ; failures++ {
		taken, next := s.taken, s.next
		err := s.ask(ctx)
		out, _ := errors.AsType[*outputError](err)
		status, _ := errors.AsType[*statusError](err)
		end, _ := errors.AsType[*earlyEnd](err)
		moved := s.taken != taken || s.offsets && s.next != next
		switch {
		case out != nil:
			return out.err
		case err == nil, ctx.Err() != nil:
			return s.flush()
		case !s.asked, errors.Is(err, errOther), status != nil && status.code/100 == 4 && status.code != http.StatusTooManyRequests,
			end != nil && (!s.offsets || s.values.Has("last") || early && !moved): // it would end there again
			return s.after(err)
		case moved:
			since, failures, early = time.Now(), -1, end != nil
			continue
		case time.Since(since) > lostFor:
			return s.after(fmt.Errorf("gave up after %s: %w", shortTime(time.Since(since)), err))
		}
		early = end != nil
		pause := backoff.Wait(failures, 100*time.Millisecond, 5*time.Second)
		if status != nil {
			pause = max(pause, min(status.after, lostFor))
		}
		backoff.Sleep(ctx, pause)
	}
}

// after adds to err how much was printed.
func (s *search) after(err error) error {
	if err := s.flush(); err != nil {
		return err
	}
	if s.taken == 0 {
		return err
	}
	return fmt.Errorf("after %s: %w", lines(s.taken), err)
}

// errOther is why a search cannot continue.
var errOther = errors.New("ask again")

// request returns the parameters of the next request; false: all was taken.
func (s *search) request() (url.Values, bool) {
	v := maps.Clone(s.values)
	if s.to != "" {
		v.Set("to", s.to)
	}
	if !s.offsets {
		return v, true
	}
	v.Set("offsets", "true")
	if s.next == "" || s.taken == 0 && v.Has("last") {
		return v, true
	}
	v.Set("from", s.next)
	for _, name := range []string{"limit", "last"} {
		if most, err := strconv.Atoi(v.Get(name)); err == nil {
			v.Del(name)
			v.Set("limit", strconv.Itoa(most-s.taken))
			return v, most > s.taken
		}
	}
	return v, true
}

// ask asks once, and takes what comes. The collector says in a trailer why an answer ends
// early.
func (s *search) ask(ctx context.Context) error {
	values, more := s.request()
	if !more {
		return nil
	}
	resp, err := s.client.get(ctx, "/api/query", values, http.Header{"Te": {"trailers"}})
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if err := s.accept(resp.Header); err != nil {
		return err
	}
	if err := s.read(resp.Body); err != nil {
		return err
	}
	if missing := resp.Trailer.Get("Rollway-Missing"); missing != "" {
		s.call.say("lines are missing: %s", appendPlain(nil, missing))
		s.missing = append(s.missing, missing)
	}
	if hint := cmp.Or(resp.Header.Get("Rollway-Hint"), resp.Trailer.Get("Rollway-Hint")); hint != "" && s.taken == 0 {
		s.call.say("nothing was found: %s", appendPlain(nil, hint))
	}
	next := resp.Trailer.Get("Rollway-Next")
	if text := resp.Trailer.Get("Rollway-Error"); text != "" {
		if s.offsets && !s.values.Has("last") {
			s.next = cmp.Or(next, s.next)
		}
		return &earlyEnd{string(appendPlain(nil, text))}
	}
	s.next = cmp.Or(next, s.next)
	return nil
}

// accept begins an answer.
func (s *search) accept(h http.Header) error {
	id := h.Get("Rollway-Journal")
	if (s.asked || s.journal != "") && id != s.journal {
		return fmt.Errorf("%s has another journal now; %w", s.client.base, errOther)
	}
	if !s.asked {
		s.asked, s.journal, s.to = true, id, h.Get("Rollway-End")
		columns, err := columnsOf(h.Get("Rollway-Columns"))
		if err == nil {
			err = s.begin(columns)
		}
		return err
	}
	return nil
}

// read takes the lines of an answer, without those that were taken before. It flushes
// before it waits.
func (s *search) read(body io.Reader) error {
	in := bufio.NewReaderSize(body, 64<<10)
	skip, sum := 0, maphash.Hash{}
	if !s.offsets {
		skip = s.taken
		sum.SetSeed(s.sum.Seed())
	}
	changed := func() error {
		if skip > 0 && sum.Sum64() != s.sum.Sum64() {
			return fmt.Errorf("the connection broke, and the answer is another one now; %w", errOther)
		}
		return nil
	}
	for n := 0; ; n++ {
		line, err := in.ReadBytes('\n')
		switch {
		case err == io.EOF && len(line) == 0:
			if n <= skip {
				return changed()
			}
			return nil
		case err == io.EOF:
			return io.ErrUnexpectedEOF // a torn line must not be shown as if it were whole
		case err != nil:
			return err
		case n < skip:
			sum.Write(line)
			continue
		case n == skip:
			if err := changed(); err != nil {
				return err
			}
		}
		if err := s.line(line); err != nil {
			return err
		}
		if in.Buffered() == 0 {
			if err := s.flush(); err != nil {
				return &outputError{err}
			}
		}
	}
}

// line takes one line of an answer.
func (s *search) line(line []byte) error {
	next := ""
	if s.offsets {
		offset, rest, ok := cutOffset(line)
		if !ok {
			return fmt.Errorf("%s answers a line without its offset: %.100s; %w", s.client.base, appendPlain(nil, line), errOther)
		}
		s.offset, line, next = offset, rest, strconv.FormatUint(offset+1, 10)
	} else {
		s.sum.Write(line)
	}
	if err := s.take(line); err != nil {
		return &outputError{err}
	}
	s.taken, s.next = s.taken+1, next
	return nil
}

// cutOffset returns what is in {"offset":N,"line":…}, the line with its end.
func cutOffset(row []byte) (offset uint64, line []byte, ok bool) {
	rest, found := bytes.CutPrefix(row, []byte(`{"offset":`))
	digits, line, split := bytes.Cut(rest, []byte(`,"line":`))
	line, ended := bytes.CutSuffix(line, []byte("}\n"))
	offset, err := strconv.ParseUint(string(digits), 10, 64)
	if !found || !split || !ended || err != nil {
		return 0, nil, false
	}
	return offset, append(line, '\n'), true
}

// columnsOf returns the names in the header of an answer; nil: it has lines.
func columnsOf(header string) (names []string, err error) {
	if header == "" {
		return nil, nil
	}
	for name := range strings.SplitSeq(header, ",") {
		text, err := url.PathUnescape(name)
		if err != nil {
			return nil, fmt.Errorf("read the header Rollway-Columns: %w", err)
		}
		names = append(names, text)
	}
	return names, nil
}

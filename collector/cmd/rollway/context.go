package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/rollway/rollway/collector/query"
)

// surroundings print each line of a search with the lines around it. They are not safe for
// concurrent use.
type surroundings struct {
	client *client
	out    *lineWriter
	lines  int    // before, and after
	by     string // field whose value they share
	hits   *query.Query

	shown map[uint64]struct{} // offsets of the lines that were printed
}

// maxSurroundings bounds the offsets that are remembered, so that no line is printed twice.
const maxSurroundings = 1_000_000

// maxSurrounding bounds the bytes around one line.
const maxSurrounding = 64 << 20

// around prints the line at offset, and those around it.
func (s *surroundings) around(ctx context.Context, offset uint64) error {
	n := strconv.Itoa(s.lines)
	values := parameters("offset", strconv.FormatUint(offset, 10), "before", n, "after", n, "by", s.by)
	var body []byte
	err := retry(ctx, lostFor, func() (err error) {
		resp, err := s.client.get(ctx, "/api/context", values, http.Header{"Te": {"trailers"}})
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if body, err = io.ReadAll(io.LimitReader(resp.Body, maxSurrounding+1)); len(body) > maxSurrounding {
			return &earlyEnd{"the lines around one take more than " + byteCount(maxSurrounding) + "; ask for fewer"}
		}
		if err == nil && resp.Trailer.Get("Rollway-Error") != "" {
			err = &earlyEnd{string(appendPlain(nil, resp.Trailer.Get("Rollway-Error")))}
		}
		return err
	}, func(err error) (time.Duration, bool) {
		status, _ := errors.AsType[*statusError](err)
		_, early := errors.AsType[*earlyEnd](err)
		if status != nil {
			return status.after, status.code/100 == 5 || status.code == http.StatusTooManyRequests
		}
		return 0, !early
	})
	if err != nil {
		return fmt.Errorf("read the lines around offset %d: %w", offset, err)
	}
	return s.print(body)
}

// print prints the rows that were not printed before.
func (s *surroundings) print(rows []byte) error {
	first, apart := true, true
	for in := bufio.NewReader(bytes.NewReader(rows)); ; {
		row, err := in.ReadBytes('\n')
		if err != nil {
			return nil
		}
		offset, line, ok := cutOffset(row)
		if !ok {
			return fmt.Errorf("%s answers a line without its offset: %.100s", s.client.base, appendPlain(nil, row))
		}
		if _, was := s.shown[offset]; was {
			apart = false
			continue
		}
		if len(s.shown) >= maxSurroundings {
			return fmt.Errorf("%s are printed, which is the limit with -context; use -limit, -last, -since or -until", lines(len(s.shown)))
		}
		if first && apart && len(s.shown) > 0 {
			if err := s.out.separate(); err != nil {
				return err
			}
		}
		first = false
		s.shown[offset] = struct{}{}
		mark := "  "
		if s.hits.Match(bytes.TrimSuffix(line, []byte("\n"))) {
			mark = "> "
		}
		if err := s.out.marked(mark, line); err != nil {
			return err
		}
	}
}

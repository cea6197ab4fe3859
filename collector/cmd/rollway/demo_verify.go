package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// A verdict compares the lines that came back with those that were logged.
type verdict struct {
	found      int    // lines that were logged, each counted once
	missing    int    // lines that were logged and did not come back
	torn       int    // lines that do not parse, fail their checksum, or were never logged
	repeated   int    // lines that came back before
	disordered int    // lines after a later one of their producer
	first      string // the first bad line, and why it is bad
}

// verify reads canonical lines from r. logged is the number of lines of each
// producer, whose sequence numbers begin at 0. Lines that announce losses belong to no
// producer and are skipped: the lines they announce are missing.
func verify(r io.Reader, logged []int) (v verdict, err error) {
	seen := make([][]bool, len(logged))
	highest := make([]int, len(logged))
	for id, n := range logged {
		seen[id], highest[id] = make([]bool, n), -1
	}
	in := bufio.NewReaderSize(r, 256<<10)
	for {
		line, err := in.ReadBytes('\n')
		if len(line) == 0 && errors.Is(err, io.EOF) {
			break
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return v, err
		}
		var e struct {
			Msg     string `json:"msg"`
			Service string `json:"service"`
			Attrs   struct {
				Producer *int   `json:"producer"`
				Seq      int    `json:"seq"`
				Customer string `json:"customer"`
				Sum      uint32 `json:"sum"`
				Dropped  int    `json:"dropped"`
			} `json:"attrs"`
		}
		torn := err != nil || json.Unmarshal(line, &e) != nil
		a := e.Attrs
		if !torn && a.Producer == nil && a.Dropped > 0 {
			continue
		}
		if torn || a.Producer == nil || *a.Producer < 0 || *a.Producer >= len(logged) || a.Seq < 0 || a.Seq >= logged[*a.Producer] ||
			e.Service != "payment-api" || a.Sum != lineSum(*a.Producer, a.Seq, e.Msg, a.Customer) {
			v.note(&v.torn, "torn", line)
			continue
		}
		id := *a.Producer
		switch {
		case seen[id][a.Seq]:
			v.note(&v.repeated, "repeated", line)
		case a.Seq < highest[id]:
			v.note(&v.disordered, "out of order", line)
			v.found++
		default:
			v.found++
			highest[id] = a.Seq
		}
		seen[id][a.Seq] = true
	}
	for _, list := range seen {
		for _, ok := range list {
			if !ok {
				v.missing++
			}
		}
	}
	return v, nil
}

func (v *verdict) note(counter *int, what string, line []byte) {
	*counter++
	if v.first == "" {
		v.first = fmt.Sprintf("%s: %s", what, appendPlain(nil, line))
	}
}

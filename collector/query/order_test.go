package query

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Lines in the order of their times are those that a plain sort gives, whatever order they
// came in.
func TestOrderByTime(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 1))
	s := newStore(t)
	var all []string
	for i := range 400 {
		var frame []string
		for range 1 + r.IntN(200) {
			at := i*10 + r.IntN(10)
			if r.IntN(20) == 0 {
				at = r.IntN(4000) // late
			}
			level := "INFO"
			if r.IntN(10) == 0 {
				level = "WARN"
			}
			frame = append(frame, testLine(at, level, strconv.Itoa(len(all)+len(frame))))
		}
		s.add(t, frame...)
		all = append(all, frame...)
	}
	_, base := serve(t, s, Options{})
	naive := func(q string, last, limit int) []string {
		var lines []string
		for _, line := range all {
			if q == "" || strings.Contains(line, `"WARN"`) {
				lines = append(lines, line)
			}
		}
		slices.SortStableFunc(lines, func(a, b string) int { return strings.Compare(a[:40], b[:40]) })
		if last > 0 {
			lines = lines[max(0, len(lines)-last):]
		}
		if limit > 0 {
			lines = lines[:min(limit, len(lines))]
		}
		return lines
	}
	for _, q := range []string{"", "level=warn"} {
		for _, n := range []int{0, 1, 7, 1000, 3000, 90_000} {
			for _, name := range []string{"last", "limit"} {
				pairs, want := []string{"order", "time", "q", q}, naive(q, 0, 0)
				if n > 0 {
					pairs = append(pairs, name, strconv.Itoa(n))
					want = naive(q, map[string]int{"last": n}[name], map[string]int{"limit": n}[name])
				}
				resp, body, err := ask(t, base, pairs...)
				if got := strings.Split(strings.TrimSuffix(body, "\n"), "\n"); err != nil || !slices.Equal(got, want) {
					t.Errorf("%q: %s, %v, %d lines, want %d", pairs, resp.Status, err, len(got), len(want))
				}
				if scanned, _ := strconv.Atoi(resp.Trailer.Get("Rollway-Scanned")); n == 7 && scanned > len(all)*9/10 {
					t.Errorf("%q: %d of %d lines were read", pairs, scanned, len(all))
				}
			}
		}
	}
	// Offsets, pipes and a snapshot go with it.
	for _, c := range []struct {
		pairs []string
		want  string
	}{
		{[]string{"q", "level=warn | fields msg | limit 1"}, `{"msg":` + text(naive("level=warn", 0, 1)[0]) + "}\n"},
		{[]string{"last", "1", "offsets", "1"}, fmt.Sprintf(`{"offset":%s,"line":%s}`+"\n", strings.Trim(text(naive("", 1, 0)[0]), `"`), naive("", 1, 0)[0])},
		{[]string{"q", "| stats count()", "last", "30"}, `{"count":30}` + "\n"},
		{[]string{"to", "1"}, all[0] + "\n"},
		{[]string{"q", "absent"}, ""},
	} {
		if _, body, err := ask(t, base, append(c.pairs, "order", "time")...); body != c.want || err != nil {
			t.Errorf("%q: %q, %v, want %q", c.pairs, body, err, c.want)
		}
	}
}

// text returns the msg of a testLine, in its quotes.
func text(line string) string {
	_, rest, _ := strings.Cut(line, `"msg":`)
	msg, _, _ := strings.Cut(rest, ",")
	return msg
}

// What one query holds is bounded, and given back.
func TestOrderByTimeIsBounded(t *testing.T) {
	s := newStore(t)
	numbered(t, s, 2000, 100)
	a, base := serve(t, s, Options{MaxHeld: 100 << 10})
	resp, body, _ := ask(t, base, "order", "time")
	if resp.StatusCode != 400 || !strings.Contains(body, "take more than 102400 bytes (limits.max_query); narrow them by since and until") {
		t.Errorf("%s: %s", resp.Status, body)
	}
	for _, name := range []string{"last", "limit"} {
		if resp, body, err := ask(t, base, "order", "time", name, "500"); err != nil || strings.Count(body, "\n") != 500 {
			t.Errorf("%s: %s, %v, %.200s", name, resp.Status, err, body)
		}
	}
	waitFor(t, "the memory to be given back", func() bool { return a.memory.Used() == 0 })
	if resp, _, _ := ask(t, base, "order", "age"); resp.StatusCode != 400 {
		t.Error(resp.Status)
	}
}

// The newest lines before a time are found as soon as the newest of all: what is left out for its time
// does not have more searched.
func TestNewestBefore(t *testing.T) {
	s := newStore(t)
	all := numbered(t, s, 300_000, 1000)
	_, base := serve(t, s, Options{})
	for n := 25_000; n < len(all); n += 25_000 {
		resp, body, err := ask(t, base, "order", "time", "last", "5", "until", all[n][len(timeStart):len(timeStart)+timeLen])
		if want := strings.Join(all[n-5:n], "\n") + "\n"; err != nil || body != want {
			t.Errorf("%v, got\n%swant\n%s", err, body, want)
		}
		if scanned, _ := strconv.Atoi(resp.Trailer.Get("Rollway-Scanned")); scanned > 40_000 {
			t.Errorf("of %d lines %d were searched", n, scanned)
		}
	}
}

// A line that leaves does not leave the memory of a far larger one to those that come.
func TestTimeOrderMemory(t *testing.T) {
	o := &timeOrder{most: 1000, newest: true}
	held, kept := 0, 0
	for i := range 20_000 {
		size := 200
		if i%100 == 0 {
			size = 200_000
		}
		line := append([]byte(timeStart), bytes.Repeat([]byte{'x'}, size)...)
		held += o.add(uint64(i), line)
	}
	for _, l := range o.lines {
		kept += len(l.text)
	}
	if held > 3*kept {
		t.Errorf("%d bytes are held for %d", held, kept)
	}
}

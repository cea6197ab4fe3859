package query

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
)

// contextOf sends a request to /api/context.
func contextOf(t testing.TB, base string, pairs ...string) (*http.Response, string) {
	t.Helper()
	resp, err := http.Get(base + "/api/context?" + parametersOf(pairs))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(body)
}

// The lines around another are those that a walk over all lines finds.
func TestContext(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	s := newStore(t)
	var all []string
	services := []string{`"service":"a",`, `"service":"b \"x\"",`, ``}
	hosts := []string{`"host":"h1"`, `"host":1`, `"host":true`, `"k":null`}
	for i := range 400 {
		all = append(all, fmt.Sprintf(`{"time":"2026-05-28T12:%02d:%02d.000000000Z","level":"INFO","msg":"m",%s"attrs":{"n":%d,%s}}`,
			i/60, i%60, services[r.IntN(len(services))], i, hosts[r.IntN(len(hosts))]))
	}
	for rest := all; len(rest) > 0; {
		n := min(1+r.IntN(30), len(rest))
		s.add(t, rest[:n]...)
		rest = rest[n:]
	}
	a, base := serve(t, s, Options{})
	valueOf := func(line, name string) string { return string(resolve(name).find([]byte(line))) }
	for range 200 {
		at, before, after := r.IntN(len(all)), r.IntN(30), r.IntN(30)
		by := []string{"", "service", "host", "service,host", "msg"}[r.IntN(5)]
		matches := func(i int) bool {
			for _, name := range strings.Split(by, ",") {
				if by != "" && valueOf(all[i], name) != valueOf(all[at], name) {
					return false
				}
			}
			return true
		}
		at1 := func(i int) string { return fmt.Sprintf("{\"offset\":%d,\"line\":%s}\n", i, all[i]) }
		want := at1(at)
		for i, left := at-1, before; i >= 0 && left > 0; i-- {
			if matches(i) {
				want, left = at1(i)+want, left-1
			}
		}
		for i, left := at+1, after; i < len(all) && left > 0; i++ {
			if matches(i) {
				want, left = want+at1(i), left-1
			}
		}
		resp, body := contextOf(t, base, "offset", fmt.Sprint(at), "before", fmt.Sprint(before), "after", fmt.Sprint(after), "by", by)
		if resp.StatusCode != 200 || resp.Header.Get("Content-Type") != "application/x-ndjson" || body != want {
			t.Fatalf("around %d (%d, %d) by %q: %s, got\n%swant\n%s", at, before, after, by, resp.Status, body, want)
		}
	}
	if _, body := contextOf(t, base, "offset", "200"); strings.Count(body, "\n") != 41 {
		t.Errorf("without parameters %d lines", strings.Count(body, "\n"))
	}
	if _, body := contextOf(t, base, "offset", "200", "by", "", "q", "n>=190", "until", "2026-05-28T12:03:29Z"); strings.Count(body, "\n") != 19 {
		t.Errorf("of some: %s", body)
	}
	for _, c := range []struct {
		code              int
		want, name, value string
	}{
		{404, "parameter offset: found 400, at which no line is stored", "offset", "400"},
		{400, "parameter offset: found `-1`", "offset", "-1"},
		{400, "parameter offset: found `18446744073709551615`", "offset", "18446744073709551615"},
		{400, "parameter before: found `1001`, expected a number of lines, from 0 to 1000", "before", "1001"},
		{400, "parameter after: found `x`", "after", "x"},
		{400, "parameter by: `attrs` is a list or an object in the line at 7; name a field inside", "by", "attrs"},
		{400, "parameter by: found ``", "by", "a,,b"},
		{400, "parameter q: lines around another take no pipes", "q", "| limit 3"},
	} {
		pairs := []string{c.name, c.value}
		if c.name != "offset" {
			pairs = append(pairs, "offset", "7")
		}
		if resp, body := contextOf(t, base, pairs...); resp.StatusCode != c.code || !strings.Contains(body, c.want) {
			t.Errorf("%s=%s: %s %s", c.name, c.value, resp.Status, body)
		}
	}
	waitHeld(t, a, 0)
}

// A tenant sees what is around a line of its own, and nothing else.
func TestContextOnly(t *testing.T) {
	s := newStore(t)
	for i := range 40 {
		s.add(t, lineOf([]string{"mine", "other"}[i%2], i))
	}
	_, base := serveOnly(t, s, Options{})
	resp, body := contextOf(t, base, "offset", "20", "before", "2", "after", "2", "by", "")
	var offsets []uint64
	for line := range strings.Lines(body) {
		var l struct {
			Offset uint64
			Line   json.RawMessage
		}
		if err := json.Unmarshal([]byte(line), &l); err != nil || !strings.Contains(string(l.Line), `"mine"`) {
			t.Error(err, line)
		}
		offsets = append(offsets, l.Offset)
	}
	if fmt.Sprint(offsets) != "[16 18 20 22 24]" || resp.Trailer.Get("Rollway-Next") != "25" || resp.Header.Get("Rollway-End") != "" {
		t.Errorf("%v, next %s", offsets, resp.Trailer.Get("Rollway-Next"))
	}
	for _, offset := range []string{"21", "99"} {
		if resp, body := contextOf(t, base, "offset", offset); resp.StatusCode != 404 || !strings.Contains(body, "found "+offset+", at which no line is stored") {
			t.Errorf("%s %s", resp.Status, body)
		}
	}
}

// An answer can have the offsets of lines.
func TestOffsets(t *testing.T) {
	s := newStore(t)
	all := numbered(t, s, 50, 7)
	_, base := serve(t, s, Options{})
	for _, c := range []struct {
		want  []int
		pairs []string
	}{
		{[]int{0, 10}, []string{"limit", "2"}}, {[]int{30, 40}, []string{"last", "2"}}, {[]int{30, 40}, []string{"from", "21"}},
	} {
		want := ""
		for _, i := range c.want {
			want += fmt.Sprintf("{\"offset\":%d,\"line\":%s}\n", i, all[i])
		}
		if resp, body, err := ask(t, base, append(c.pairs, "q", "level=warn", "offsets", "true")...); err != nil || resp.StatusCode != 200 || body != want {
			t.Errorf("%v: %s, %v, got\n%swant\n%s", c.pairs, resp.Status, err, body, want)
		}
	}
	for _, c := range []struct{ want, q, offsets string }{
		{"parameter offsets: found `maybe`, expected true or false", "", "maybe"}, {"parameter offsets: what pipes give has none", "| limit 1", "true"},
	} {
		if resp, body, err := ask(t, base, "q", c.q, "offsets", c.offsets); err != nil || resp.StatusCode != 400 || !strings.Contains(body, c.want) {
			t.Errorf("%s, %v, %s", resp.Status, err, body)
		}
	}
}

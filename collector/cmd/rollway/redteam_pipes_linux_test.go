package main

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rollway/rollway/internal/testkit"
)

// hostileLines are events for pipes: one with 1,000 attributes and 10,000 keys inside another, one
// of nearly 1 MiB, each n another, one that is nested deeply, and many whose values all differ.
func hostileLines(n int) string {
	var b strings.Builder
	b.WriteString(`{"msg":"keys","o":{`)
	for i := range 10_000 {
		fmt.Fprintf(&b, `"k%d":%d,`, i, i)
	}
	b.WriteString(`"z":1}`)
	for i := range 900 {
		fmt.Fprintf(&b, `,"f%d":"%d-%d"`, i, n, i)
	}
	fmt.Fprintf(&b, "}\n"+`{"msg":"long %d","f0":"%d %s"}`+"\n", n, n, strings.Repeat("a1 ", 300_000))
	fmt.Fprintf(&b, `{"msg":"%s","n":%s1%s}`+"\n", strings.Repeat(fmt.Sprintf("w%d=x", n)+" ", 20_000), strings.Repeat(`{"a":[`, 30), strings.Repeat(`]}`, 30))
	for i := range 1000 {
		fmt.Fprintf(&b, `{"msg":"user %x-%d of %d did %d","f0":"%d.%d","f1":%d,"f2":{"a":"%d"}}`+"\n", n, i, i*n, n, n, i, i*n, i)
	}
	return b.String()
}

// hostilePipes are queries that hold as much as they can.
func hostilePipes() map[string]string {
	fields := func(format string) string {
		var names []string
		for i := range 64 {
			names = append(names, fmt.Sprintf(format, i))
		}
		return strings.Join(names, ",")
	}
	return map[string]string{
		"64 fields by 16 pipes":  "| fields " + fields("f%d") + strings.Repeat("| sort "+fields("f%d"), 15),
		"uniq of 64 fields":      "| stats " + fields("uniq(f%d)") + " by f0",
		"quantiles":              "| stats " + fields("quantile(0.5,f%d)") + " by f1",
		"min and max of texts":   "| stats " + fields("max(f%d)") + " by msg",
		"groups of all fields":   "| stats count() by " + fields("f%d"),
		"patterns":               "| patterns limit 1000000",
		"patterns by a field":    "| patterns by f0, f1",
		"parse by an expression": `| parse ~"(?P<a>.*?)(?P<b>\\d+)(?P<c>.*)(?P<d>[a-z]*)$"` + strings.Repeat(`| parse ~"(?P<e>(a|b|.)*)x(?P<f>.+)"`, 5) + "| sort a, b, c, d, e, f",
		"parse, again and again": strings.Repeat(`| parse "<a> <b> <c> <d>"`, 15) + "| sort a",
		"top":                    "| top 1000000 msg, f0, o",
		"sort by all":            "| sort o, n, f0, msg",
		"an expression":          `msg=~"(x+x+)+y|(\\w+ )*z" | stats uniq(msg)`,
		"a slow expression":      `f0=~"(?i)(.*a){150}q"`,
		"a slow one to parse":    `| parse f0 ~"(?P<x>(?i)(.*a){150}q)" | parse f0 ~"(?P<y>(?i)(.*1){150}q)" | top x, y`,
	}
}

// TestRedteamPipes asks for all that pipes can hold, over lines that are as bad as they may be,
// in a cgroup of the size that docs/INGEST.md documents.
func TestRedteamPipes(t *testing.T) {
	testkit.NoRace(t, "it compares resident memory")
	const inFlight, queries = 64 << 20, 64 << 20
	stored := testkit.Rounds(t, testkit.Redteam, 2, 40)
	a := targetIn(t, inFlight, queries, fmt.Sprintf("journal: {segment_size: 8MiB}\ntimeouts: {query: %dms}\n", testkit.Rounds(t, testkit.Redteam, 500, 5000)))
	for n := range stored {
		if code, body := a.request("POST", "/api/logs", hostileLines(n)); code != 200 {
			t.Fatalf("%d %.300s", code, body)
		}
	}
	a.ready()
	var answers [600]atomic.Int64
	asked := 0
	for name, q := range hostilePipes() {
		var asking sync.WaitGroup
		begin := time.Now()
		for range 12 {
			client := &http.Client{Timeout: time.Minute, Transport: &http.Transport{DialContext: dialFrom, DisableKeepAlives: true}}
			asking.Go(func() {
				resp, err := client.Get(a.addr + "/api/query?q=" + url.QueryEscape(q))
				if err != nil {
					answers[0].Add(1)
					return
				}
				defer resp.Body.Close()
				body, _ := io.ReadAll(io.LimitReader(resp.Body, 300))
				io.Copy(io.Discard, resp.Body)
				answers[resp.StatusCode].Add(1)
				if resp.StatusCode == 400 && strings.Contains(string(body), "column") {
					t.Errorf("%s: %s", name, body)
				}
			})
		}
		asking.Wait()
		asked += 12
		t.Logf("%-24s %5.1f s, resident %d MiB at most", name, time.Since(begin).Seconds(), residentPeak(t, a.cmd.Process.Pid)>>20)
	}
	left := a.unharmed()
	counts := map[int]int64{}
	for code := range answers {
		if n := answers[code].Load(); n > 0 {
			counts[code] = n
		}
	}
	testkit.Attack{
		Attack: fmt.Sprintf("%d queries with pipes, 12 at a time, over lines with 10,000 keys, 1 MiB values and deep nesting, in a cgroup of %d MiB", len(hostilePipes()), a.bound>>20), Times: asked,
		Promised: fmt.Sprintf("not killed; at most %d MiB resident", a.bound>>20),
		Measured: fmt.Sprintf("answers %v; %s", counts, left),
	}.Report(t)
}

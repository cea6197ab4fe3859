package query

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"
)

const manual = "../../docs/QUERY.md"

// argument is a word of a shell, with or without single quotes.
var argument = regexp.MustCompile(`'[^']*'|\S+`)

// TestManual runs each example of the manual and compares its output; -update
// writes it.
func TestManual(t *testing.T) {
	sample, err := os.ReadFile("testdata/sample.ndjson")
	if err != nil {
		t.Fatal(err)
	}
	m := newStore(t)
	m.add(t, strings.Split(strings.TrimSpace(string(sample)), "\n")...)
	_, base := serve(t, m, Options{})
	text, err := os.ReadFile(manual)
	if err != nil {
		t.Fatal(err)
	}
	examples := 0
	var out strings.Builder
	inside := false
	for line := range strings.Lines(string(text)) {
		switch {
		case line == "```console\n":
			inside = true
		case line == "```\n":
			inside = false
		case inside && strings.HasPrefix(line, "$ "):
			examples++
			out.WriteString(line)
			out.WriteString(runExample(t, base, line))
			continue
		case inside:
			continue
		}
		out.WriteString(line)
	}
	if examples < 10 {
		t.Fatalf("only %d examples found", examples)
	}
	if *update {
		if err := os.WriteFile(manual, []byte(out.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got := out.String(); got != string(text) && !*update {
		t.Errorf("the manual's examples give other output (-update writes it):\n%s", got)
	}
}

// runExample runs "$ rollway query …" or "$ curl …" as far as the server goes.
func runExample(t *testing.T, base, line string) string {
	args := argument.FindAllString(line, -1)
	for i := range args {
		args[i] = strings.Trim(args[i], "'")
	}
	target := base + "/api/query?"
	switch {
	case args[1] == "rollway" && args[2] == "query":
		values := url.Values{"q": {args[3]}}
		for i := 4; i+1 < len(args); i += 2 {
			values.Set(strings.TrimPrefix(args[i], "-"), args[i+1])
		}
		target += values.Encode()
	case args[1] == "curl":
		target = strings.Replace(args[len(args)-1], "http://127.0.0.1:4318", base, 1)
	default:
		t.Fatalf("cannot run %q", line)
	}
	resp, err := http.Get(target)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.Header.Get("Content-Type") == "text/event-stream" {
		return firstBlocks(t, resp.Body, 3)
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if len(body) == 0 {
		t.Errorf("%s finds nothing", strings.TrimSpace(line))
	}
	return string(body)
}

// firstBlocks reads n blocks of a stream of events.
func firstBlocks(t *testing.T, r io.Reader, n int) string {
	var b strings.Builder
	for lines := bufio.NewReader(r); n > 0; {
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		b.WriteString(line)
		if line == "\n" {
			n--
		}
	}
	return b.String()
}

func Example() {
	q, err := Parse(`level>=warn http.status>=500 "charge"`)
	if err != nil {
		fmt.Println(err)
		return
	}
	line := []byte(`{"time":"2026-05-28T12:40:00.000000000Z","level":"ERROR","msg":"failed to charge","attrs":{"http":{"status":503}}}`)
	fmt.Println(q.Match(line))
	fmt.Println(q)

	_, err = Parse(`level>=loud`)
	fmt.Println(err)
	// Output:
	// true
	// level>=WARN http.status>=500 "charge"
	// query column 8: found `loud`, expected a level: trace, debug, info, notice, warn, error, panic, fatal, one with a distance such as warn+1, or slog's number (debug -4, info 0, warn 4, error 8, fatal 12)
	//   level>=loud
	//          ^
}

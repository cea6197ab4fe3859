package page

import (
	"reflect"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	text := strings.ReplaceAll(`# Page
'''sh
$ git clone x && cd x
$ curl -d '{"msg":"hi"}' \
    http://127.0.0.1
{"accepted":1}
'''
## Two
### b
<!-- run: background -->
'''sh
$ make run
listening on …
'''
<!-- run: no, not published yet -->
'''sh
$ go install x@latest
'''
'''go
package main
func main() {}
'''
'''go
log.Info("a fragment")
'''
<!-- file: cmd/main.go -->
'''go
package main
'''
`, "'''", "```")
	steps, programs, err := Parse("x.md", text)
	if err != nil {
		t.Fatal(err)
	}
	want := []Step{
		{Line: 3, Command: "git clone x && cd x"},
		{Line: 4, Command: "curl -d '{\"msg\":\"hi\"}' \\\n    http://127.0.0.1", Output: "{\"accepted\":1}\n"},
		{Line: 12, Section: "Two", Part: "b", Command: "make run", Output: "listening on …\n", Background: true},
		{Line: 17, Section: "Two", Part: "b", Command: "go install x@latest", Skip: "not published yet"},
		{Line: 27, Section: "Two", Part: "b", Command: "cat >cmd/main.go <<'END OF FILE'\npackage main\nEND OF FILE"},
	}
	if !reflect.DeepEqual(steps, want) {
		t.Errorf("steps\n got %+v\nwant %+v", steps, want)
	}
	if len(programs) != 1 || programs[0].Line != 20 || programs[0].Source != "package main\nfunc main() {}\n" {
		t.Errorf("programs %+v", programs)
	}
	for _, bad := range []string{"no block", "```sh\n$ open", "```sh\noutput first\n```", "<!-- run: maybe -->\n```sh\n$ x\n```"} {
		if _, _, err := Parse("x.md", bad); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
}

func TestDifference(t *testing.T) {
	for _, c := range []struct{ shown, got, want string }{
		{"a\nb …\nc\n", "a\nd\nc\n", "not printed as line 2: b …"},
		{"a\n…\nz\n", "a\nb\n", "not printed as line 3: z"},
		{"a\n", "a\nb\n", "more was printed than is shown"},
	} {
		if got := Difference(c.shown, c.got); got != c.want {
			t.Errorf("Difference(%q, %q) = %q, want %q", c.shown, c.got, got, c.want)
		}
	}
}

func TestMatches(t *testing.T) {
	for _, c := range []struct {
		shown, got string
		whole      bool
		want       bool
	}{
		{"a\nb\n", "a\nb\n", true, true},
		{"a\nb\n", "a\nb", true, true},
		{"a\nb\n", "a\nb\nc\n", true, false},
		{"a\nb\n", "a\nb\nc\n", false, true},
		{"a.c\n", "abc\n", true, false},
		{"took … s\n", "took 12.5 s\n", true, true},
		{"p50      …\n", "p50   870ns\n", true, true},
		{"p50      …\n", "p50  1.11µs\n", true, true},
		{"p50      …\n", "p50  \n", true, true},
		{"p50      …\n", "p50:  1.11µs\n", true, false},
		{"p50  …  s\n", "p50 1 s\n", true, false},
		{"first\n…\nlast\n", "first\n1\n2\nlast\n", true, true},
		{"first\n…\nlast\n", "first\n1\n2\n", true, false},
		{`{"time":"2026-01-01T00:00:00Z"}`, `{"time":"2031-12-31T23:59:59.123456789+02:00"}`, true, true},
		{"x\n", "", false, false},
	} {
		if got := Matches(c.shown, c.got, c.whole); got != c.want {
			t.Errorf("Matches(%q, %q, %v) = %v", c.shown, c.got, c.whole, got)
		}
	}
}

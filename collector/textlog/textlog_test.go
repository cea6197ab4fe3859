package textlog

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/rollway/rollway/internal/levels"
)

var received = time.Date(2026, 5, 28, 13, 0, 0, 0, time.UTC)

// form is a line of testdata/forms.txt.
type form struct{ time, level, line string }

func forms(t testing.TB) (list []form) {
	text, err := os.ReadFile("testdata/forms.txt")
	if err != nil {
		t.Fatal(err)
	}
	unescape := strings.NewReplacer(`\t`, "\t", `\n`, "\n", `\e`, "\x1b")
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSuffix(line, "\n"); line == "" || line[0] == '#' {
			continue
		}
		list = append(list, form{strings.TrimSpace(line[:32]), strings.TrimSpace(line[32:40]), unescape.Replace(line[40:])})
	}
	return list
}

// told returns what a head says, as in forms.txt.
func told(h Head) (at, level string) {
	at, level = "-", "-"
	if h.HasTime {
		at = time.Unix(h.Sec, int64(h.Nsec)).UTC().Format(time.RFC3339Nano)
	}
	if h.HasLevel {
		level = string(levels.Append(nil, h.Level))
	}
	return at, level
}

func TestForms(t *testing.T) {
	list := forms(t)
	for _, f := range list {
		h, ok := Parse([]byte(f.line), received, time.UTC)
		if at, level := told(h); at != f.time || level != f.level || ok != (h.HasTime || h.HasLevel) {
			t.Errorf("%s %s, expected %s %s: %q", at, level, f.time, f.level, f.line)
		}
	}
	if len(list) < 150 {
		t.Errorf("%d lines", len(list))
	}
}

// TestZone reads times in a configured zone.
func TestZone(t *testing.T) {
	chicago, err := time.LoadLocation("America/Chicago")
	if err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string]string{
		"2026-05-28 07:40:00,123 INFO x":                "2026-05-28T12:40:00.123Z",
		"2026-01-28 07:40:00,123 INFO x":                "2026-01-28T13:40:00.123Z",
		"2026-05-28T12:40:00Z INFO x":                   "2026-05-28T12:40:00Z",
		"2026-05-28 07:40:00 CDT [1] LOG:  so it is":    "2026-05-28T12:40:00Z",
		"2026-05-28 07:40:00 CST [1] LOG:  not in May":  "-",
		"2026-05-28 07:40:00 IST [1] LOG:  not there":   "-",
		"2026-05-28 14:40:00 CEST [1] LOG:  elsewhere":  "2026-05-28T12:40:00Z",
		"May 28 07:40:00 web1 sshd[1]: x":               "2026-05-28T12:40:00Z",
		"Dec  1 07:40:00 web1 sshd[1]: the nearest one": "2025-12-01T13:40:00Z",
	} {
		h, _ := Parse([]byte(line), received, chicago)
		if at, _ := told(h); at != want {
			t.Errorf("%s, expected %s: %s", at, want, line)
		}
	}
}

func TestParseRequest(t *testing.T) {
	for line, want := range map[string]string{
		`192.0.2.1 - frank [28/May/2026:12:40:00 +0000] "POST /pay?x=1&y=2 HTTP/1.1" 503 12 "https://example.com/" "Mozilla/5.0 (\"x\")"`: `192.0.2.1 frank POST /pay x=1&y=2 https://example.com/ Mozilla/5.0 (\"x\") 503 12`,
		`shop:80 ::1 - - [28/May/2026:12:40:00 +0000] "GET / HTTP/1.1" 404 - "-" "-"`:                                                     `::1  GET /    404 `,
		`192.0.2.1 - - [28/May/2026:12:40:00 +0000] "-" 408 0`:                                                                            `192.0.2.1       408 0`,
		`192.0.2.1 - - [28/May/2026:12:40:00 +0000] "GET" 400 0 "open`:                                                                    `192.0.2.1       400 0`,
		`192.0.2.1 - - [28/May/2026:12:40:00 +0000] "GET / HTTP/1.1" 400`:                                                                 `192.0.2.1  GET /    400 `,
		`[28/May/2026 12:40:00] "GET /x HTTP/1.1" 200 1234`:                                                                               `  GET /x    200 1234`,
		`28/May/2026:12:40:00 +0000 "GET /x HTTP/1.1" 200 1234`:                                                                           `  GET /x    200 1234`,
	} {
		h, _ := Parse([]byte(line), received, time.UTC)
		r := ParseRequest([]byte(line), h.Request)
		if got := string(bytes.Join(r[:], []byte(" "))); got != want {
			t.Errorf("%s\n%s, expected\n%s", line, got, want)
		}
	}
}

// The table in docs/INGEST.md says what is read.
func TestTable(t *testing.T) {
	doc, err := os.ReadFile("../../docs/INGEST.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(doc), "\n## Text\n")
	rows := 0
	for line := range strings.Lines(text) {
		cells := strings.Split(line, " | ")
		if len(cells) != 3 || !strings.Contains(cells[1], "`") {
			continue
		}
		rows++
		example := strings.NewReplacer(`\t`, "\t", `\n`, "\n", `\|`, "|").Replace(strings.Trim(cells[1], "`"))
		h, _ := Parse([]byte(example), received, time.UTC)
		if at, level := told(h); at+" "+level+" |\n" != cells[2] {
			t.Errorf("%s: %s is %s %s, the table has %s", cells[0], example, at, level, cells[2])
		}
	}
	if rows < 25 {
		t.Errorf("%d rows", rows)
	}
}

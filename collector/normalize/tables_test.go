package normalize

import (
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/rollway/rollway/internal/jsonline"
	"github.com/rollway/rollway/internal/levels"
	"github.com/rollway/rollway/internal/times"
)

// section returns the cells of the rows of the table below a heading of
// docs/INGEST.md.
func section(t *testing.T, heading string) (rows [][]string) {
	t.Helper()
	doc, err := os.ReadFile("../../docs/INGEST.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, found := strings.Cut(string(doc), "\n## "+heading+"\n")
	if !found {
		t.Fatalf("no section %s", heading)
	}
	text, _, _ = strings.Cut(text, "\n## ")
	for line := range strings.Lines(text) {
		if cells := strings.Split(strings.TrimSpace(line), "|"); len(cells) == 5 && !strings.HasPrefix(line, "|---") {
			rows = append(rows, []string{strings.TrimSpace(cells[1]), strings.TrimSpace(cells[2]), strings.TrimSpace(cells[3])})
		}
	}
	if len(rows) < 10 {
		t.Fatalf("%d rows below %s", len(rows), heading)
	}
	return rows[1:]
}

var quoted = regexp.MustCompile("`[^`]+`")

// The table of levels says what is read, and all of it.
func TestTableOfLevels(t *testing.T) {
	listed := map[string]bool{}
	for _, row := range section(t, "Levels") {
		for _, text := range quoted.FindAllString(row[1]+row[2], -1) {
			text = strings.Trim(text, "`")
			listed[text] = true
			for _, text := range []string{text, strings.ToUpper(text)} {
				got, ok := levels.ParseAny([]byte(text))
				switch want, named := levels.Parse([]byte(row[0])); {
				case !named && ok:
					t.Errorf("%s is %s, and not so in the table", text, levels.Append(nil, got))
				case named && (!ok || got != want):
					t.Errorf("%s is %s, %t; the table has %s", text, levels.Append(nil, got), ok, row[0])
				}
			}
		}
	}
	source, err := os.ReadFile("../../internal/levels/levels.go")
	if err != nil {
		t.Fatal(err)
	}
	_, names, _ := strings.Cut(string(source), "\nfunc byName(")
	names, _, _ = strings.Cut(names, "\n}\n")
	for _, name := range regexp.MustCompile(`"[^"]+"`).FindAllString(names, -1) {
		if name = strings.Trim(name, `"`); !listed[name] {
			t.Errorf("%s is not in the table", name)
		}
	}
	numbers := 0
	for n := -20; n <= 60_000; n++ {
		text := strconv.Itoa(n)
		if _, ok := levels.ParseAny([]byte(text)); ok {
			numbers++
			if !listed[text] && !(n >= -8 && n <= 9) && !(n > 10 && n < 60) {
				t.Errorf("%d is not in the table", n)
			}
		}
	}
	if numbers < 40 {
		t.Errorf("%d numbers are levels", numbers)
	}
}

// The table of times says what is read.
func TestTableOfTimes(t *testing.T) {
	for _, row := range section(t, "Times") {
		for _, text := range quoted.FindAllString(row[1], -1) {
			got := "not taken"
			if sec, nsec, ok := times.Parse([]byte(strings.Trim(text, "`"))); ok {
				got = string(jsonline.AppendUnix(nil, sec, nsec))
			}
			if got != row[2] {
				t.Errorf("%s: %s is %s, the table has %s", row[0], text, got, row[2])
			}
		}
	}
}

// Neither of them allocates, whatever is read.
func TestTablesWithoutAllocation(t *testing.T) {
	var texts [][]byte
	for _, heading := range []string{"Levels", "Times"} {
		for _, row := range section(t, heading) {
			for _, text := range quoted.FindAllString(row[1]+row[2], -1) {
				texts = append(texts, []byte(strings.Trim(text, "`")))
			}
		}
	}
	if n := testing.AllocsPerRun(10, func() {
		for _, text := range texts {
			times.Parse(text)
			levels.ParseAny(text)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

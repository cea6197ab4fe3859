package normalize

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the tables of docs/NAMES.md")

const namesPage = "../../docs/NAMES.md"

// TestNamesPage compares the tables of the page with the table of the program. After a
// change:
//
//	go test ./normalize -run TestNamesPage -update
func TestNamesPage(t *testing.T) {
	page, err := os.ReadFile(namesPage)
	if err != nil {
		t.Fatal(err)
	}
	text := string(page)
	for mark, table := range map[string]string{"names": namesTable(), "members": membersTable()} {
		begin, end := "<!-- "+mark+": made by TestNamesPage -->\n", "<!-- end -->\n"
		before, rest, found := strings.Cut(text, begin)
		_, after, closed := strings.Cut(rest, end)
		if !found || !closed {
			t.Fatalf("%s has no %q", namesPage, begin)
		}
		text = before + begin + table + end + after
	}
	text = examples(t, text)
	switch {
	case text == string(page):
	case *update:
		if err := os.WriteFile(namesPage, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("%s is not current: this test with -update writes it", namesPage)
	}
}

// examples returns the page with what becomes of the first line of each block of JSON in its
// second.
func examples(t *testing.T, text string) string {
	var out strings.Builder
	for {
		before, rest, found := strings.Cut(text, "```json\n")
		if out.WriteString(before); !found {
			return out.String()
		}
		sent, rest, _ := strings.Cut(rest, "\n")
		_, rest, _ = strings.Cut(rest, "```\n")
		b, err := normalizeBody(t, Limits{}, sent)
		if err != nil || b.Records != 1 {
			t.Fatal(sent, err, b.Rejected)
		}
		fmt.Fprintf(&out, "```json\n%s\n%s```\n", sent, b.Lines)
		text = rest
	}
}

func namesTable() string {
	var b strings.Builder
	b.WriteString("| read as | rank | names | only |\n|---|---|---|---|\n")
	for _, r := range names {
		if r.to == "" {
			continue
		}
		var notes []string
		if note := formNotes[r.form]; note != "" {
			notes = append(notes, note)
		}
		if r.beside != "" {
			notes = append(notes, "beside "+quote(r.beside, " or "))
		}
		to := "`" + r.to + "`"
		if r.to == "members" {
			to = "attributes, its members"
		}
		rank := map[uint8]string{first: "first", second: "second", third: "third", last: "last"}[r.rank]
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", to, rank, quote(r.names, " "), strings.Join(notes, "; "))
	}
	return b.String()
}

func membersTable() string {
	var b strings.Builder
	b.WriteString("| member | is read from |\n|---|---|\n")
	for _, list := range roleNames {
		fmt.Fprintf(&b, "| `%s` | %s |\n", list[0], quote(strings.Join(list[1:], " "), " "))
	}
	return b.String()
}

func quote(names, between string) string {
	list := strings.Fields(names)
	for i, name := range list {
		list[i] = "`" + name + "`"
	}
	return strings.Join(list, between)
}

// Each name is in the table once, and is found.
func TestNames(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range names {
		for name := range strings.FieldsSeq(r.names) {
			if seen[name] && r.to != "" && name != "ctx" && name != "s" {
				t.Errorf("%s is there twice", name)
			}
			seen[name] = true
			slot, _ := defaultKeys.ReadAs(name)
			if want := r.to; want != "members" && slot != want && want != "" && r.beside == "" {
				t.Errorf("%s is read as %q, the table has %q", name, slot, want)
			}
		}
	}
	if len(seen) < 150 || len(defaultKeys.list) > len(defaultKeys.cells)/2 {
		t.Errorf("%d names, %d entries", len(seen), len(defaultKeys.list))
	}
	for _, name := range []string{"", "x", strings.Repeat("x", 100), "levelnam", "Host"} {
		if got := defaultKeys.find([]byte(name)).key; got != keyOther {
			t.Errorf("%q is read as %d", name, got)
		}
	}
}

// What a configuration adds is read after the first names and before the others.
func TestAddedNames(t *testing.T) {
	keys, err := NewKeys(map[string][]string{"level": {"status", "s"}, "host": {"node"}, "msg": {"text"}, "error": {"failure"}, "error.type": {"fault"}, "method": {"verb"}})
	if err != nil {
		t.Fatal(err)
	}
	for in, want := range map[string]string{
		`{"status":"warn","log.level":"info"}`:       `{"time":"` + receivedText + `","level":"WARN","attrs":{"log.level":"info"}}`,
		`{"status":"warn","level":"info"}`:           prefix + `,"attrs":{"status":"warn"}}`,
		`{"status":500}`:                             prefix + `,"attrs":{"status":500}}`,
		`{"s":"error"}`:                              `{"time":"` + receivedText + `","level":"ERROR"}`,
		`{"hostname":"a","node":"b"}`:                prefix + `,"attrs":{"host":"b","hostname":"a"}}`,
		`{"text":"x","verb":"GET"}`:                  prefix + `,"msg":"x","attrs":{"method":"GET"}}`,
		`{"level":"info","failure":"x","fault":"E"}`: prefix + `,"error":{"type":"E","message":"x"}}`,
	} {
		b, err := normalizeBody(t, Limits{Keys: keys, NoFingerprint: true}, in)
		if got := strings.TrimSuffix(string(b.Lines), "\n"); err != nil || got != want {
			t.Errorf("%s:\n got %s\nwant %s\n%v", in, got, want, err)
		}
	}
}

func TestNamesThatCannotBeAdded(t *testing.T) {
	for name, want := range map[string]string{
		"lvl":                   `level: "lvl" is read as level already: remove it`,
		"msg":                   `level: "msg" is read as msg already: remove it`,
		"":                      `level: "" is no name of a member: write 1 to 64 bytes without blanks, quotes and backslashes`,
		"a b":                   `level: "a b" is no name of a member: write 1 to 64 bytes without blanks, quotes and backslashes`,
		strings.Repeat("x", 65): `level: "` + strings.Repeat("x", 65) + `" is no name of a member: write 1 to 64 bytes without blanks, quotes and backslashes`,
	} {
		_, err := NewKeys(map[string][]string{"level": {name}})
		var bad *NameError
		if err == nil || !errors.As(err, &bad) || err.Error() != want {
			t.Errorf("%q: %v, want %s", name, err, want)
		}
	}
	if _, err := NewKeys(map[string][]string{"level": {"x"}, "msg": {"x"}}); err == nil {
		t.Error("one name for two")
	}
	if _, err := NewKeys(map[string][]string{"level": strings.Fields("a b c d e f g h i")}); err == nil {
		t.Error("nine names")
	}
	all := map[string][]string{}
	for i, to := range Targets() {
		for k := range maxAdded {
			all[to] = append(all[to], fmt.Sprintf("added_%d_%d", i, k))
		}
	}
	keys, err := NewKeys(all)
	if err != nil || len(keys.rows)+int(firstRow) > 255 {
		t.Fatal(err, len(keys.rows))
	}
	if slot, _ := keys.ReadAs("added_19_7"); slot != Targets()[19] || !slices.Contains(Targets(), "user_agent") {
		t.Errorf("the last name is read as %s", slot)
	}
}

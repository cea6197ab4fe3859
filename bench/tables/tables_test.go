package tables

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/rollway/rollway/bench/allocstudy"
)

const (
	docs    = "../../docs"
	results = docs + "/results"
)

// TestDocumentsAreCurrent: the documents have the tables and pictures that the
// committed results give.
func TestDocumentsAreCurrent(t *testing.T) {
	for _, s := range Sections() {
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			made, err := s.Make(results)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(made.Text, "NaN") || strings.Contains(made.Text, "+Inf") || strings.Contains(made.Text, "<no value>") || strings.Contains(made.Text, "<nil>") || strings.Contains(made.Text, "%!") {
				t.Error("a figure is missing")
			}
			for path, picture := range made.Pictures {
				if there, err := os.ReadFile(filepath.Join(docs, path)); err != nil || string(there) != picture {
					t.Errorf("%s is of other results: run bench tables %s (%v)", path, s.Name, err)
				}
			}
			committed, err := os.ReadFile(filepath.Join(docs, s.Document))
			if err != nil {
				t.Fatal(err)
			}
			if now, err := s.replace(string(committed), made.Text); err != nil || now != string(committed) {
				t.Errorf("%s has tables of other results: run bench tables %s (%v)", s.Document, s.Name, err)
			}
		})
	}
}

// TestWrite: pictures and text are put in their places.
func TestWrite(t *testing.T) {
	dir, s := t.TempDir(), Section{"x", "doc.md"}
	if err := os.WriteFile(dir+"/doc.md", []byte("above\n<!-- x:begin -->\nold\n<!-- x:end -->\nbelow\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.Write(Report{"new\n", map[string]string{"a.svg": "picture"}}, dir); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"doc.md": "above\n<!-- x:begin -->\nnew\n<!-- x:end -->\nbelow\n", "a.svg": "picture"} {
		if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(got) != want {
			t.Errorf("%s is %q, %v", name, got, err)
		}
	}
	if err := (Section{"y", "doc.md"}).Write(Report{}, dir); err == nil {
		t.Error("a document without the marks was taken")
	}
}

// TestMissing: a figure that was not measured is an error, and no zero.
func TestMissing(t *testing.T) {
	for _, s := range Sections() {
		if _, err := s.Make(t.TempDir()); !os.IsNotExist(errorsRoot(err)) {
			t.Errorf("%s without results: %v", s.Name, err)
		}
	}
	for name, file := range map[string]string{"logger": "logger", "writers": "writers", "relay": "relay", "ingest": "ingest", "query": "query", "direct": "direct-pools", "reliability": "reliability", "chaos": "chaos", "published": "ingest"} {
		dir := changed(t, file, func(object map[string]any) {
			for list, field := range map[string]string{"samples": "library", "runs": "server", "tries": "fault", "answers": "engine"} {
				if items, ok := object[list].([]any); ok && len(items) > 0 {
					first := items[0].(map[string]any)[field]
					if first == nil {
						continue
					}
					object[list] = slices.DeleteFunc(items, func(it any) bool { return it.(map[string]any)[field] == first })
				}
			}
		})
		if _, err := section(name).Make(dir); err == nil || !strings.Contains(err.Error(), "measure again") {
			t.Errorf("%s of a part of the results: %v", name, err)
		}
	}
}

func errorsRoot(err error) error {
	for {
		u, ok := err.(interface{ Unwrap() error })
		if !ok {
			return err
		}
		err = u.Unwrap()
	}
}

func section(name string) Section {
	for _, s := range Sections() {
		if s.Name == name {
			return s
		}
	}
	panic(name)
}

// changed is a folder of the committed results, with the objects of one file changed.
func changed(t *testing.T, file string, change func(object map[string]any)) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(results)); err != nil {
		t.Fatal(err)
	}
	var d map[string]any
	if err := (&env{dir: dir}).read(file, &d); err != nil {
		t.Fatal(err)
	}
	var visit func(v any)
	visit = func(v any) {
		switch v := v.(type) {
		case []any:
			for _, it := range v {
				visit(it)
			}
		case map[string]any:
			change(v)
			for _, it := range v {
				visit(it)
			}
		}
	}
	visit(d)
	data, err := json.Marshal(d)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, file+".json"), data, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestTargetsCanFail: with figures of ours that are a thousand times worse, or not
// zero where they must be, targets are not reached.
func TestTargetsCanFail(t *testing.T) {
	worse := func(object map[string]any) {
		own, _ := object["library"].(string)
		server, _ := object["server"].(string)
		engine, _ := object["engine"].(string)
		if name, is := object["name"].(string); !strings.HasPrefix(own+server+strings.ToLower(engine), "rollway") && (!strings.HasPrefix(own, "slab") || strings.Contains(own, "published")) && !(is && name == "long") {
			return
		}
		var scale func(m map[string]any)
		scale = func(m map[string]any) {
			for key, v := range maps.Clone(m) {
				switch v := v.(type) {
				case float64:
					if key != "round" && key != "rate" && key != "events" && key != "others_pct" && key != "conns" && key != "mb_s" && key != "seconds" {
						m[key] = 1 + 1000*v
					}
				case map[string]any:
					scale(v)
				case []any:
					for _, it := range v {
						scale(it.(map[string]any))
					}
				}
			}
		}
		scale(object)
	}
	for name, c := range map[string]struct {
		file   string
		missed int
	}{"logger": {"logger", 11}, "writers": {"writers", 5}, "latency": {"latency", 12}, "relay": {"relay", 20}, "direct": {"direct-headline", 6}, "ingest": {"ingest", 16}, "query": {"query", 6}} {
		made, err := section(name).Make(changed(t, c.file, worse))
		if n := strings.Count(made.Text, "**no** |\n"); err != nil || n < c.missed {
			t.Errorf("%s: %d targets missed, want %d or more: %v", name, n, c.missed, err)
		}
	}
}

// TestBroken: what is wrong in tries of ours is said.
func TestBroken(t *testing.T) {
	for name, want := range map[string]string{"reliability": "tries our own writers did not do what they promise", "chaos": "faults something was not as it must be"} {
		made, err := section(name).Make(changed(t, name, func(object map[string]any) {
			if object["fault"] != nil {
				object["lost"], object["torn"] = 1.0, 1.0
			}
		}))
		if err != nil || !strings.Contains(made.Text, want) {
			t.Errorf("%s does not say %q: %v", name, want, err)
		}
	}
	dir := changed(t, "chaos", func(object map[string]any) {
		if object["missing"] != nil {
			object["missing"], object["tries"] = map[string]any{"kill": "a hammer"}, object["tries"].([]any)[1:]
		}
	})
	if made, err := section("chaos").Make(dir); err != nil || !strings.Contains(made.Text, "not tried, needs a hammer") {
		t.Errorf("what was not tried is not said: %v", err)
	}
}

// TestConclusions compares the verdicts with the conclusions in docs/BENCHMARKS.md, for
// each toolchain of the published results: they follow from the counts that the study
// states, whatever runs here.
func TestConclusions(t *testing.T) {
	never := "[]"
	want := map[string]string{
		"an event without a pool costs 1 allocation of 8 bytes":                          "[13 17 22 26]",
		"that allocation is the event, which newEvent puts on the heap":                  never,
		"with a pool it is 0 allocations":                                                "[13 17 22 26]",
		"messages within 500 bytes are written without a new allocation":                 "[22 26]",
		"a message over the capacity is a new allocation":                                never,
		"what the pool's New allocates is almost zero per call":                          "[13 17 22 26]",
		"an event behind an interface, over the pool, allocates nothing":                 "[13 17 22 26]",
		"using an interface allocates nothing in itself":                                 never,
		"an interface without a pool allocates more than the event alone":                "[13]",
		"a function literal per call allocates, as `func literal escapes to heap` shows": never,
		"a struct in the pool must have no pointer field":                                never,
		"making a slice allocates":                                                       never,
		"an append beyond the capacity allocates":                                        "[13 17 22]",
		"assigning a slice to a second slice variable allocates":                         never,
		"an array is better": never,
		"a pooled slice cut to length 0 and appended to allocates nothing":   "[13 17 22 26]",
		"LoadLocation(\"UTC\") and LoadLocation(\"Local\") allocate nothing": "[13 17 22 26]",
		"LoadLocation of another zone allocates, loaded once it does not":    "[13 17 22 26]",
		"AppendFormat with room enough allocates nothing":                    "[13 17 22 26]",
	}
	minors := []int{13, 17, 22, 26}
	var counts []any
	for _, c := range allocstudy.Cases() {
		for _, minor := range minors {
			bytes := 0.0
			if c.Name == "plain/const" {
				bytes = 8
			}
			counts = append(counts, map[string]any{"case": c.Name, "go": fmt.Sprint(minor), "allocs": c.Want(minor), "bytes": bytes})
		}
	}
	claims := rows(allocationClaims)
	for _, c := range claims {
		got := []int{}
		for _, minor := range minors {
			ok, err := holds(c[1], counts, fmt.Sprint(minor))
			if err != nil {
				t.Fatal(err)
			}
			if ok {
				got = append(got, minor)
			}
		}
		if want[c[0]] != fmt.Sprint(got) {
			t.Errorf("%q holds with Go 1.%v, want %s", c[0], got, want[c[0]])
		}
	}
	if len(want) != len(claims) {
		t.Errorf("%d claims, %d conclusions", len(claims), len(want))
	}
	for _, bad := range []string{"", "plain/const", "plain/const = ", "plain/const + 1", "nothing = 1"} {
		if _, err := holds(bad, counts, "26"); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
}

// TestTurned: a reason is not given for a direction that it is not of.
func TestTurned(t *testing.T) {
	for _, c := range []struct {
		expect string
		same   any
		want   string
	}{{"holds", true, "because"}, {"fails", false, "because"}, {"either", true, "because"}, {"either", false, "because"}, {"holds", false, unexplained}, {"fails", true, unexplained}, {"either", "open", "because"}} {
		e := new(env)
		if _, err := e.claim("p", "says", "published", "here", c.same, c.expect, "because"); err != nil || e.claims[0].why != c.want {
			t.Errorf("expect %s, found %v: %+v, want %q", c.expect, c.same, e.claims, c.want)
		}
	}
	if _, err := new(env).claim("p", "", "", "", 1, "holds", ""); err == nil {
		t.Error("a direction that does not exist was taken")
	}
}

// TestCells: no cell of a table in the documents is too long to read.
func TestCells(t *testing.T) {
	for _, name := range []string{"BENCHMARKS.md", "PUBLISHED.md", "RELAY.md", "RELIABILITY.md"} {
		text, err := os.ReadFile(filepath.Join(docs, name))
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			if !strings.HasPrefix(line, "|") {
				continue
			}
			for cell := range strings.SplitSeq(line, " | ") {
				for row := range strings.SplitSeq(cell, "<br>") {
					if n := utf8.RuneCountInString(row); n > 200 {
						t.Errorf("%s: a cell with %d characters in a row: %.80s", name, n, row)
					}
				}
			}
		}
	}
}

// TestFront: each of the ten figures has a row, a rival and bars.
func TestFront(t *testing.T) {
	made, err := section("front").Make(results)
	if err != nil {
		t.Fatal(err)
	}
	picture := made.Pictures["benchmarks.svg"]
	if rows := strings.Count(made.Text, "[`make bench-"); rows != 10 || strings.Count(picture, "Rollway</text>") != 10 {
		t.Errorf("%d figures in\n%s\n%s", rows, made.Text, picture)
	}
}

func TestNumbers(t *testing.T) {
	for v, want := range map[float64]string{0.471: "0.47", 4.615: "4.62", 47.66: "47.7", 1788.4: "1788"} {
		if got := number(v); got != want {
			t.Errorf("number(%v) = %s, want %s", v, got, want)
		}
	}
	for v, want := range map[float64]string{0: "0", 0.004: "0", 11: "11", 0.5: "0.50"} {
		if got := count(v); got != want {
			t.Errorf("count(%v) = %s, want %s", v, got, want)
		}
	}
	if got := rules("| a | b | c |\n|---\n"); got != "| a | b | c |\n|---|--:|--:|\n" {
		t.Errorf("%q", got)
	}
	if got := rules("| a | b \\| c |\n|---\n"); got != "| a | b \\| c |\n|---|--:|\n" {
		t.Errorf("%q", got)
	}
}

// TestExponent fits powers of sizes.
func TestExponent(t *testing.T) {
	for want, y := range map[float64][]float64{0: {7, 7, 7}, 1: {3, 6, 12}, 2: {1, 4, 16}, -1: {4, 2, 1}} {
		if got, err := exponent([]float64{10, 20, 40}, y); err != nil || math.Abs(got-want) > 1e-9 {
			t.Errorf("%v grow with %v, want %v: %v", y, got, want, err)
		}
	}
	for _, x := range [][]float64{nil, {10}, {10, 10}} {
		if got, err := exponent(x, []float64{1, 2}); err == nil {
			t.Errorf("times of %v are fitted: %v", x, got)
		}
	}
}

// TestGrowth goes on with the line through the times of the two largest corpora.
func TestGrowth(t *testing.T) {
	run := func(bytes, warm, cold float64) any {
		cost := func(s float64) []any { return []any{map[string]any{"wall_s": s}} }
		return map[string]any{"bytes": bytes, "answers": []any{map[string]any{"engine": "e", "query": "q", "warm": cost(warm), "cold": cost(cold)}}}
	}
	g, err := growth([]any{run(1e9, 5, 1), run(10e9, 50, 2), run(100e9, 500, 1)}, "e", "q")
	if err != nil || math.Abs(g.B-1) > 1e-9 || math.Abs(g.Warm-5000) > 1e-6 || g.Cold != 1 || len(g.Times) != 3 || g.Times[0] != 5000 {
		t.Errorf("%+v, %v", g, err)
	}
	if g, err := growth(nil, "e", "q"); err == nil {
		t.Errorf("no runs: %+v", g)
	}
}

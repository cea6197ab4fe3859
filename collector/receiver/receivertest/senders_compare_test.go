package receivertest

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rollway/rollway/internal/testkit"
)

// An expected is one of the events that all clients send, as it should be stored.
type expected struct {
	Name, Level string
	Msg         any // a text, or {"repeat": [text, times]}
	Attrs       map[string]any
	Exception   bool
	TraceID     string `json:"trace_id"`
	SpanID      string `json:"span_id"`
	Logger      string
}

func readExpected(t testing.TB) (list []expected) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "senders", "events.json"))
	testkit.OK(t, err)
	testkit.OK(t, unmarshal(text, &list))
	for i := range list {
		e := &list[i]
		if m, is := e.Msg.(map[string]any); is {
			of := m["repeat"].([]any)
			n, _ := of[1].(json.Number).Int64()
			e.Msg = strings.Repeat(of[0].(string), int(n))
		}
		for name, v := range e.Attrs {
			if m, is := v.(map[string]any); is && m["bytes"] != nil {
				e.Attrs[name] = m["bytes"]
				_, err := base64.StdEncoding.DecodeString(m["bytes"].(string))
				testkit.OK(t, err)
			}
		}
	}
	return list
}

func unmarshal(text []byte, v any) error {
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	return dec.Decode(v)
}

// A difference is a field that is not as expected, in some events.
type difference struct {
	path   string
	events []int // their numbers, from 1; 0: a line that is no event's
	stored string
	why    string
	kind   string // such fields with the same path are one difference
}

// compare returns the differences of a sender, by path.
func (s *sender) compare(t testing.TB, r recording) []difference {
	t.Helper()
	c := &comparison{events: readExpected(t), begin: r.Begin, end: r.End}
	lines := s.replay(t, r)
	if testing.Verbose() {
		t.Logf("stored:\n%s", strings.Join(lines, "\n"))
	}
	stored := make([]map[string]any, len(c.events))
	for _, text := range lines {
		var line map[string]any
		testkit.OK(t, unmarshal([]byte(text), &line))
		if n := c.numberOf(line); n < 0 || stored[n] != nil {
			c.add(0, "line", "other", short(line["msg"]))
		} else {
			stored[n] = line
		}
	}
	for n, e := range c.events {
		if stored[n] == nil {
			c.add(n+1, "event", "missing", "nothing")
			continue
		}
		c.event(n+1, e, stored[n])
	}
	return c.collapsed()
}

// comparison is the work of one compare.
type comparison struct {
	events     []expected
	begin, end time.Time
	attrs      int // compared
	found      []difference
}

func (c *comparison) add(n int, path, kind, stored string) {
	for i := range c.found {
		if d := &c.found[i]; d.path == path && d.kind == kind {
			d.events = append(d.events, n)
			return
		}
	}
	c.found = append(c.found, difference{path: path, kind: kind, events: []int{n}, stored: stored})
}

// numberOf returns the index of the event that a line is, or -1.
func (c *comparison) numberOf(line map[string]any) int {
	if _, v := search(line, "n", ""); v != nil {
		if n, err := strconv.Atoi(fmt.Sprint(v)); err == nil && n >= 1 && n <= len(c.events) {
			return n - 1
		}
	}
	text, _ := line["msg"].(string)
	return slices.IndexFunc(c.events, func(e expected) bool {
		begin, _, _ := strings.Cut(e.Msg.(string), `"`) // which may be escaped
		return strings.Contains(text, begin[:min(len(begin), 12)])
	})
}

// search finds a member at any depth and returns where it is, the shallowest first.
func search(in map[string]any, name, at string) (string, any) {
	if v, is := in[name]; is {
		return at + name, v
	}
	for _, key := range slices.Sorted(maps.Keys(in)) {
		if inner, is := in[key].(map[string]any); is {
			if where, v := search(inner, name, at+key+"."); where != "" {
				return where, v
			}
		}
	}
	return "", nil
}

func (c *comparison) event(n int, e expected, line map[string]any) {
	c.field(n, line, "level", strings.ToUpper(e.Level))
	c.field(n, line, "msg", e.Msg)
	c.field(n, line, "logger", "shop.cart")
	if e.TraceID != "" {
		c.field(n, line, "trace_id", e.TraceID)
		c.field(n, line, "span_id", e.SpanID)
	}
	at, err := time.Parse(time.RFC3339Nano, fmt.Sprint(line["time"]))
	if err != nil || at.Before(c.begin.Add(-time.Second)) || at.After(c.end.Add(time.Second)) {
		c.add(n, "time", "other", "that of receipt")
	}
	if e.Exception {
		c.exception(n, line)
	}
	attrs, _ := line["attrs"].(map[string]any)
	for name, want := range e.Attrs {
		c.attrs++
		if got, is := attrs[name]; !is {
			c.missing(n, line, "attrs."+name, name, want)
		} else if !same(got, want) {
			c.add(n, "attrs."+name, "other", short(got))
		}
	}
}

func (c *comparison) field(n int, line map[string]any, name string, want any) {
	if got, is := line[name]; !is {
		c.missing(n, line, name, name, want)
	} else if !same(got, want) {
		c.add(n, name, "other", short(got))
	}
}

// missing notes a field that is not where it should be.
func (c *comparison) missing(n int, line map[string]any, path, name string, want any) {
	switch where, got := search(line, name, ""); {
	case where == "":
		c.add(n, path, "missing", "nothing")
	case same(got, want):
		c.add(n, path, "at "+strings.TrimSuffix(where, name), "at "+where)
	default:
		c.add(n, path, "other", short(got)+" at "+where)
	}
}

// exception compares an error and its cause. Languages name types by more or fewer packages.
func (c *comparison) exception(n int, line map[string]any) {
	e, is := line["error"].(map[string]any)
	if !is {
		c.add(n, "error", "other", short(line["error"]))
		return
	}
	one := func(path string, e map[string]any, name, message string) {
		kind := fmt.Sprint(e["type"])
		if got := kind[strings.LastIndexAny(kind, ".*\\$:")+1:]; got != name {
			c.add(n, path+"type", "other", short(e["type"]))
		}
		if e["message"] != message {
			c.add(n, path+"message", "other", short(e["message"]))
		}
	}
	one("error.", e, "PaymentError", "no payment for order 7")
	if stack, _ := e["stack"].(string); strings.Count(strings.TrimSpace(stack), "\n") < 1 {
		c.add(n, "error.stack", "other", short(e["stack"]))
	}
	causes, _ := e["causes"].([]any)
	if len(causes) != 1 {
		c.add(n, "error.causes", "other", short(e["causes"]))
		return
	}
	cause, _ := causes[0].(map[string]any)
	one("error.causes.", cause, "DatabaseError", "connection refused")
}

func same(a, b any) bool {
	x, _ := json.Marshal(a)
	y, _ := json.Marshal(b)
	return bytes.Equal(x, y)
}

// short is a value for a table.
func short(v any) string {
	if v == nil {
		return "nothing"
	}
	text, is := v.(string)
	if !is {
		b, _ := json.Marshal(v)
		text = string(b)
	}
	if len(text) > 1000 {
		return fmt.Sprintf("%d bytes", len(text))
	}
	quoted := strconv.Quote(text)
	if !is {
		quoted = text
	}
	if r := []rune(quoted); len(r) > 60 {
		quoted = string(r[:60]) + "…"
	}
	return quoted
}

// collapsed joins what is true of all attributes.
func (c *comparison) collapsed() (list []difference) {
	of := map[string]int{}
	for _, d := range c.found {
		if strings.HasPrefix(d.path, "attrs.") {
			of[d.kind] += len(d.events)
		}
	}
	all := difference{path: "attrs"}
	for _, d := range c.found {
		if strings.HasPrefix(d.path, "attrs.") && d.kind != "other" && of[d.kind] >= c.attrs-2 {
			all.stored = "nothing"
			if at, is := strings.CutPrefix(d.kind, "at "); is {
				all.stored = "below " + strings.TrimSuffix(at, ".")
			}
			for _, n := range d.events {
				if !slices.Contains(all.events, n) {
					all.events = append(all.events, n)
				}
			}
			continue
		}
		list = append(list, d)
	}
	if all.events != nil {
		slices.Sort(all.events)
		list = append(list, all)
	}
	slices.SortFunc(list, func(a, b difference) int { return strings.Compare(a.path+a.kind, b.path+b.kind) })
	return list
}

// senderPage is docs/SENDERS.md.
func senderPage(t testing.TB, list []sender, found [][]difference) []byte {
	t.Helper()
	events := readExpected(t)
	head, err := os.ReadFile(filepath.Join("testdata", "senders", "page.md"))
	testkit.OK(t, err)
	var b bytes.Buffer
	b.Write(head)
	b.WriteString("\n| client | sends | of the twelve events exact |\n|---|---|---|\n")
	for i, s := range list {
		wrong := map[int]bool{}
		for _, d := range found[i] {
			for _, n := range d.events {
				wrong[n] = n > 0
			}
		}
		delete(wrong, 0)
		link := "[" + s.head["client"] + "](#" + s.name + ")"
		if len(found[i]) == 0 {
			link = s.head["client"]
		}
		if s.head["published"] != "" {
			link += " ¹"
		}
		fmt.Fprintf(&b, "| %s | %s | %d |\n", link, s.head["sends"], len(events)-len(wrong))
	}
	for i, s := range list {
		if len(found[i]) == 0 {
			continue
		}
		fmt.Fprintf(&b, "\n### %s\n\n%s, %s.\n\n| field | events | stored | why |\n|---|---|---|---|\n", s.name, s.head["client"], s.head["sends"])
		for _, d := range found[i] {
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", d.path, numbers(d.events, len(events)), cell(d.stored), d.why)
		}
	}
	return b.Bytes()
}

func numbers(list []int, all int) string {
	switch {
	case len(list) == all:
		return "all"
	case len(list) > 0 && list[0] == 0:
		return fmt.Sprintf("%d more", len(list))
	}
	return strings.Trim(strings.Join(strings.Fields(fmt.Sprint(list)), ", "), "[]")
}

// cell is text that a table of Markdown shows as it is.
func cell(text string) string {
	if text == "nothing" || text == "that of receipt" {
		return text
	}
	return "`" + strings.NewReplacer("|", "\\|", "`", "'").Replace(text) + "`"
}

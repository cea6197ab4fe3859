package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// In each body the objects that belong together are on one line of events.
var joins = []struct{ name, body, events string }{
	{"Docker's driver for Splunk", `{"event":{"line":"ERROR: it failed","source":"stderr","tag":"a"},"time":"1779972000.1","host":"h"}
{"event":{"line":"java.io.IOException: closed","source":"stderr","tag":"a"},"time":"1779972000.2","host":"h"}
{"event":{"line":"\tat a.B(C.java:7)","source":"stderr","tag":"a"},"time":"1779972000.3","host":"h"}
{"event":{"line":"  from stdout","source":"stdout","tag":"a"},"time":"1779972000.3","host":"h"}`,
		`{"event":{"line":"ERROR: it failed\njava.io.IOException: closed\n\tat a.B(C.java:7)","source":"stderr","tag":"a"},"time":"1779972000.1","host":"h"}
{"event":{"line":"  from stdout","source":"stdout","tag":"a"},"time":"1779972000.3","host":"h"}`},
	{"Vector to Splunk, in an array", `[{"event": "Traceback (most recent call last):", "host": "h"}, {"event": "  File \"a.py\", line 7, in f", "host": "h"}, {"event": "ValueError: \u00e9", "host": "h"}, {"event": "next", "host": "h"}]`,
		`{"event": "Traceback (most recent call last):\n  File \"a.py\", line 7, in f\nValueError: é", "host": "h"}
{"event": "next", "host": "h"}`},
	{"Filebeat, members in any order", `{"@timestamp":"2026-05-28T12:40:00Z","message":"a","log":{"offset":0,"file":{"path":"/a"}},"host":{"name":"w"}}
{"host":{"name":"w"},"log":{"file":{"path":"/a"},"offset":2},"message":" b","@timestamp":"2026-05-28T12:40:01Z"}
{"@timestamp":"2026-05-28T12:40:00Z","message":" c","log":{"offset":0,"file":{"path":"/b"}},"host":{"name":"w"}}`,
		`{"@timestamp":"2026-05-28T12:40:00Z","message":"a\n b","log":{"offset":0,"file":{"path":"/a"}},"host":{"name":"w"}}
{"@timestamp":"2026-05-28T12:40:00Z","message":" c","log":{"offset":0,"file":{"path":"/b"}},"host":{"name":"w"}}`},
	{"files of Docker", `{"log":"a\n","stream":"stderr","time":"1"}
{"log":"\tat x(Y.java:1)\n","stream":"stderr","time":"2"}`, `{"log":"a\n\tat x(Y.java:1)\n","stream":"stderr","time":"1"}`},
	{"lines of CRI in two parts", `{"message":"2026-05-28T12:40:00Z stdout P one "}
{"message":"2026-05-28T12:40:00Z stdout F two"}`, `{"message":"2026-05-28T12:40:00Z stdout F one two"}`},
	{"a time of its own", `{"message":"a"}
{"message":" b","time":1}
{"message":" c"}`, `{"message":"a"}
{"message":" b","time":1}
{"message":" c"}`},
	{"a level of its own", `{"message":"a","status":"info"}
{"message":" b","status":"warn"}
{"message":" c"}`, `{"message":"a","status":"info"}
{"message":" b","status":"warn"}
{"message":" c"}`},
	{"a name and a value that change places", `{"message":"a","app":"web"}
{"message":" b","web":"app"}`, `{"message":"a","app":"web"}
{"message":" b","web":"app"}`},
	{"a time that is an object", `{"message":"a","time":{"s":1}}
{"message":" b","time":{"s":2}}`, `{"message":"a","time":{"s":1}}
{"message":" b","time":{"s":2}}`},
	{"a message of something else", `{"error":{"message":"a"},"message":"x"}
{"error":{"message":" b"},"message":"x"}`, `{"error":{"message":"a"},"message":"x"}
{"error":{"message":" b"},"message":"x"}`},
	{"no text, and what is no object", `{"message":""}
{"message":" a"}
{"message":7}
{"message":" b"}
" c"
{"message":" d"}
{}`, `{"message":""}
{"message":" a"}
{"message":7}
{"message":" b"}
" c"
{"message":" d"}
{}`},
	{"a far longer time", `{"time":"` + strings.Repeat("x", 300) + `","message":"a"}
{"time":"","message":" b"}
{"time":"2","message":" c"}`, `{"time":"` + strings.Repeat("x", 300) + `","message":"a\n b\n c"}`},
	{"other values of the same names", `{"message":"a","x":1,"y":2}
{"message":" b","y":1,"x":2}
{"x":2,"message":" c","y":1}`, `{"message":"a","x":1,"y":2}
{"message":" b\n c","y":1,"x":2}`},
	{"a name twice", `{"message":"a","x":1,"x":2}
{"message":" b","x":1,"x":1}
{"x":1,"message":" c","x":1}`, `{"message":"a","x":1,"x":2}
{"message":" b\n c","x":1,"x":1}`},
	{"deep members", `{"message":"a","x":{"y":{"offset":1,"z":{"offset":1}}}}
{"message":" b","x":{"y":{"z":{"offset":1},"offset":2}}}
{"message":" c","x":{"y":{"z":{"offset":2},"offset":2}}}`, `{"message":"a\n b","x":{"y":{"offset":1,"z":{"offset":1}}}}
{"message":" c","x":{"y":{"z":{"offset":2},"offset":2}}}`},
	{"not UTF-8", "{\"message\":\"a\",\"x\":\"\xff\"}\n{\"message\":\" \xff\",\"x\":\"\xff\"}\n{\"message\":\" \",\"x\":\"\xfe\"}", "{\"message\":\"a\\n \uFFFD\",\"x\":\"\xff\"}\n{\"message\":\" \",\"x\":\"\xfe\"}"},
	{"more than an event has", `{"message":"` + strings.Repeat("a", 190) + `"}
{"message":" b"}
{"message":" ` + strings.Repeat("c", 40) + `"}
{"message":" d"}`, `{"message":"` + strings.Repeat("a", 190) + `\n b"}
{"message":" ` + strings.Repeat("c", 40) + `\n d"}`},
}

// Docker cuts a line after 16 KiB. A line as long with its end is whole.
func TestJoinerParts(t *testing.T) {
	part := strings.Repeat("p", dockerSplit)
	object := func(text string) string { return `{"log":"` + text + `","stream":"stdout"}` }
	j := &Joiner{Names: Names("log"), Most: 128 << 10}
	var got []string
	body := object("a") + object(part) + object(part) + object("rest") + object("b") + object(part+`\n`) + object("c") + object(part)
	for event := range j.Each([]byte(body)) {
		got = append(got, string(event))
	}
	if want := []string{object("a"), object(part + part + "rest"), object("b"), object(part + `\n`), object("c"), object(part)}; !slices.Equal(got, want) {
		for _, event := range got {
			t.Errorf("%d bytes: %.40s", len(event), event)
		}
	}
}

func joiner() *Joiner { return &Joiner{Names: Names("event", "line", "log", "message"), Most: 430} }

func eventsOf(text []byte) (events []string, count int) {
	j := joiner()
	for event, err := range j.Each(text) {
		if err != nil {
			break
		}
		events = append(events, string(event))
		count += j.Count
	}
	return events, count
}

func TestJoiner(t *testing.T) {
	for _, tt := range joins {
		t.Run(tt.name, func(t *testing.T) {
			want := strings.Split(tt.events, "\n")
			got, count := eventsOf([]byte(tt.body))
			objects := 0
			for range Each([]byte(tt.body)) {
				objects++
			}
			if !slices.Equal(got, want) || count != objects {
				t.Errorf("%d of %d objects\n got %q\nwant %q", count, objects, got, want)
			}
			body := []byte(tt.body + "\n7")
			joiner().InPlace(body)
			var in []string
			for value := range Each(body) {
				in = append(in, string(value))
			}
			if !slices.Equal(in, append(want, "7")) || len(body) != len(tt.body)+2 || bytes.Count(body, lineEnd) != strings.Count(tt.body, "\n")+1 {
				t.Errorf("in place: %s", body)
			}
		})
	}
}

// What is not to be joined is told from the first object.
func TestJoinerApart(t *testing.T) {
	j := joiner()
	if j.Most = 0; j.Next([]byte(`{"message":"a"}`)) != nil || j.Open() {
		t.Error("an event waits for others though lines are not joined")
	}
	for text, want := range map[string]bool{
		`{"log":"a","stream":"stdout"}`:   true,
		` [ {"time":1,"message":"a"}, 7]`: true,
		`{"log":"a","severity":"info"}`:   false,
		`{"level":"info","message":"a"}`:  false,
		`{"msg":"a"}`:                     false,
		`["message"]`:                     false,
		`{"log`:                           false,
		``:                                false,
	} {
		if got := (&Joiner{Names: Names("log", "message"), Most: 100}).Suits([]byte(text)); got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
}

// FuzzJoin joins objects in place: what was JSON stays so, line by line where it was, and has
// the events that Each finds.
func FuzzJoin(f *testing.F) {
	for _, tt := range joins {
		f.Add([]byte(tt.body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		text, values := bytes.Clone(body), 0
		for _, err := range Each(body) {
			if err != nil {
				return
			}
			values++
		}
		events, count := eventsOf(bytes.Clone(body))
		j := joiner()
		j.InPlace(text)
		var got []string
		for value, err := range Each(text) {
			if err != nil {
				t.Fatalf("%q became %q: %v", body, text, err)
			}
			got = append(got, string(value))
		}
		if count != values || bytes.Count(text, lineEnd) != bytes.Count(body, lineEnd) || len(got) < len(events) {
			t.Fatalf("%q: %d of %d objects are %q, in place %q", body, count, values, events, text)
		}
		for _, event := range events {
			if !json.Valid([]byte(event)) {
				t.Fatalf("%q: %s", body, event)
			}
		}
	})
}

// What is left of a text that was not read to its end is in no event of the next one.
func TestEachAnew(t *testing.T) {
	j := Joiner{Names: Names("message"), Most: 1000}
	for range j.Each([]byte(`{"message":"a"}{"message":"b"}`)) {
		break
	}
	for event, err := range j.Each([]byte(`{"message":" c"}`)) {
		if string(event) != `{"message":" c"}` || err != nil {
			t.Errorf("%s, %v", event, err)
		}
	}
}

// BenchmarkJoin joins objects of 40 members, in one order and in another each time.
func BenchmarkJoin(b *testing.B) {
	for _, how := range []string{"same", "other"} {
		b.Run(how, func(b *testing.B) {
			rng := rand.New(rand.NewPCG(1, 2))
			var body []byte
			for n := range 200 {
				members := []string{fmt.Sprintf(`"message":"  line %d"`, n), fmt.Sprintf(`"time":%d`, n)}
				for i := range 38 {
					members = append(members, fmt.Sprintf(`"name%d":"value %d"`, i, i))
				}
				if how == "other" {
					rng.Shuffle(len(members), func(i, k int) { members[i], members[k] = members[k], members[i] })
				}
				body = append(body, "{"+strings.Join(members, ",")+"}\n"...)
			}
			j := Joiner{Names: Names("message"), Most: 128 << 10}
			b.SetBytes(int64(len(body)))
			for b.Loop() {
				for range j.Each(body) {
					if j.Count != 200 {
						b.Fatal(j.Count)
					}
				}
			}
		})
	}
}

package rollway

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"testing"
	"time"
)

func TestAppendJSON(t *testing.T) {
	for _, c := range []struct {
		v    any
		want string
	}{
		{"a\n\xff", `"a\n` + "\uFFFD" + `"`}, {7, `7`}, {time.Second, `1000000000`}, {nil, `null`},
		{&user{7, tags{"a"}}, `{"id":7,"tags":["a"]}`}, {fmt.Errorf("e"), `"e"`}, {panickingValuer{}, `"!PANIC: valuer"`},
		{slog.GroupValue(slog.Int("a", 1), slog.Group("g", slog.Int("b", 2))), `{"a":1,"g":{"b":2}}`}, {slog.GroupValue(), `{}`},
		{make(chan int), `"!ERROR: unsupported type: chan int"`}, {[]byte("hi"), `"aGk="`}, {aTime, `"2026-05-28T12:40:00.123456789Z"`},
	} {
		for _, prefix := range []string{"", "x{"} {
			got := AppendJSON([]byte(prefix), slog.AnyValue(c.v))
			if string(got) != prefix+c.want || !json.Valid(got[len(prefix):]) {
				t.Errorf("%v: got %s, want %s%s", c.v, got, prefix, c.want)
			}
		}
	}
	calls := 0
	if got := AppendJSON(nil, slog.AnyValue(twice{&calls})); len(got) > 64<<20 || !json.Valid(got) {
		t.Errorf("a group that doubles: %d bytes", len(got))
	}
}

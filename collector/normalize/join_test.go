package normalize

import (
	"bytes"
	"slices"
	"strings"
	"testing"
)

func lines(n *Normalizer, text string) (events []string) {
	for l := n.textLines([]byte(text)); l.Next(); {
		events = append(events, string(l.Event))
	}
	return events
}

func TestLines(t *testing.T) {
	long := strings.Repeat("x", 700)
	for _, c := range []struct {
		limits Limits
		text   string
		want   []string
	}{
		{Limits{}, "", nil},
		{Limits{}, "\n \r\n\t\n", nil},
		{Limits{}, "one\r\ntwo\n", []string{"one", "two"}},
		{Limits{}, "one\r\n\tat\r\n\n\nCaused by: x\r\n\r\ntwo", []string{"one\r\n\tat\r\n\n\nCaused by: x", "two"}},
		{Limits{}, " first\n second\nthird", []string{" first\n second", "third"}},
		{Limits{Text: Text{Apart: true}}, "one\n\tat\n\ntwo", []string{"one", "\tat", "two"}},
		{Limits{}, "one" + strings.Repeat("\n x", 1500), []string{"one" + strings.Repeat("\n x", 999), " x" + strings.Repeat("\n x", 500)}},
		{Limits{MaxEventBytes: 16 << 10}, "one\n " + long + "\n " + long + "\n " + long + "\n y", []string{"one\n " + long + "\n " + long, " " + long + "\n y"}},
		{Limits{MaxEventBytes: 1 << 10}, long + "\n x\ny", []string{long, " x", "y"}},
	} {
		if got := lines(New(c.limits), c.text); !slices.Equal(got, c.want) {
			t.Errorf("%.100q: %.400q, expected %.400q", c.text, got, c.want)
		}
	}
}

// FuzzLines: no line of a text is lost or there twice.
func FuzzLines(f *testing.F) {
	f.Add([]byte("one\n\tat x\n\nCaused by: y\r\ntwo\n  \n"))
	f.Add([]byte("E\nTraceback (most recent call last):\n  f\nX: y\n\nDuring handling of the above exception, another exception occurred:\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		for _, most := range []int{0, 512} {
			var got, want [][]byte
			n := New(Limits{MaxEventBytes: most})
			for l := n.textLines(text); l.Next(); {
				if bytes.Count(l.Event, newline) > 0 && len(l.Event) > n.MostJoined() {
					t.Fatalf("%d bytes are joined", len(l.Event))
				}
				got = append(got, bytes.Split(append(bytes.Clone(l.Event), '\r'), newline)...)
			}
			want = bytes.Split(text, newline)
			for _, list := range []*[][]byte{&got, &want} {
				*list = slices.DeleteFunc(*list, func(line []byte) bool { return len(bytes.TrimSpace(line)) == 0 })
				for i := range *list {
					(*list)[i] = bytes.TrimSuffix((*list)[i], []byte("\r"))
				}
			}
			if !slices.EqualFunc(got, want, bytes.Equal) {
				t.Fatalf("%q became %q", want, got)
			}
		}
	})
}

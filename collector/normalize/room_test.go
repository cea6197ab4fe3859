package normalize

import (
	"strings"
	"testing"
	"time"
)

// capped is a Room of so many bytes, which counts how often it is asked.
type capped struct{ most, asked int }

func (c *capped) Grow(n int) bool { c.asked++; return n <= c.most }

// A batch asks before it holds more than it may, rarely, and holds nothing once it
// was refused.
func TestWithin(t *testing.T) {
	n := New(Limits{})
	for _, form := range []struct{ name, body string }{
		{"lines", strings.Repeat("{}\n", 1000)},
		{"an array", "[" + strings.Repeat("{},", 999) + "{}]"},
		{"letters", strings.Repeat("x\n", 1000)},
	} {
		read := func(most, free int) (*Batch, *capped) {
			b, room := new(Batch), &capped{most: most}
			b.KeepDeadLetters(1 << 20)
			b.Within(room, free)
			if err := n.Body(b, []byte(form.body), time.Unix(1779972000, 0)); err != nil {
				t.Fatal(form.name, err)
			}
			return b, room
		}
		whole, room := read(1<<30, 0)
		if whole.Overflowed() || room.asked == 0 || room.asked > 100 || whole.Events() != 1000 {
			t.Errorf("%s: asked %d times, %d events", form.name, room.asked, whole.Events())
		}
		if _, room := read(0, whole.Held()); room.asked != 0 {
			t.Errorf("%s: asked for what was free", form.name)
		}
		b, _ := read(whole.Held()/2, 0)
		if !b.Overflowed() || b.Held() > whole.Held()/2 {
			t.Errorf("%s: holds %d bytes of %d", form.name, b.Held(), whole.Held()/2)
		}
		if b.Reset(); b.Overflowed() {
			t.Errorf("%s: a batch that is empty has overflowed", form.name)
		}
	}
}

// Of many short events no more dead letters are kept than of such as are worth one.
func TestManyDeadLetters(t *testing.T) {
	n, b := New(Limits{}), new(Batch)
	for _, withhold := range []bool{false, true} {
		b.Reset()
		b.KeepDeadLetters(1 << 20)
		b.WithholdText(withhold)
		if err := n.Body(b, []byte(strings.Repeat("x\n", 20_000)), time.Unix(1779972000, 0)); err != nil {
			t.Fatal(err)
		}
		if b.RejectedTotal != 20_000 || len(b.DeadLetters()) != 8192 {
			t.Errorf("withheld %v: %d dead letters of %d events", withhold, len(b.DeadLetters()), b.RejectedTotal)
		}
	}
}

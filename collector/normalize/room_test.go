package normalize

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rollway/rollway/internal/testkit"
)

// capped is a Room of so many bytes, which counts how often it is asked.
type capped struct{ most, asked int }

func (c *capped) Grow(n, _ int) bool { c.asked++; return n <= c.most }

// A batch asks before it holds more than it may, rarely, and holds nothing once it
// was refused.
func TestWithin(t *testing.T) {
	n := New(Limits{})
	for _, form := range []struct{ name, body string }{
		{"lines", strings.Repeat("{}\n", 1000)},
		{"an array", "[" + strings.Repeat("{},", 999) + "{}]"},
		{"letters", strings.Repeat("x\ny\n", 500)},
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
		if _, room := read(0, 4*whole.Held()); room.asked != 0 {
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
		if err := n.Body(b, []byte(strings.Repeat("x\n7\n", 10_000)), time.Unix(1779972000, 0)); err != nil {
			t.Fatal(err)
		}
		if b.RejectedTotal != 20_000 || len(b.DeadLetters()) != 8192 {
			t.Errorf("withheld %v: %d dead letters of %d events", withhold, len(b.DeadLetters()), b.RejectedTotal)
		}
	}
}

// Rejected events in a row that are alike are one dead letter, also of a body that is read
// in two ways; with another text, context or reason they are not.
func TestAlikeDeadLetters(t *testing.T) {
	n := New(Limits{MaxRejections: 1})
	for body, want := range map[string]string{
		strings.Repeat("1\n", 8192):            "1×8192",
		"1\n1\n2\n1\n":                         "1×2 2×1 1×1",
		"x\nx\n\"x\"\nx":                       `x×2 "x"×1 x×1`,
		"{}\n1\n{}\n1\n":                       "1×2",
		"7 7 {}":                               "7×2",
		"7\n7\n7 7 {\n{}\n":                    "7×2 7 7 {×1",
		"7\n[7,7,{},\n7\n7\n[7,7,{},\n{}\n7\n": "7×1 [7,7,{},×1 7×2 [7,7,{},×1 7×1",
	} {
		b := new(Batch)
		b.KeepDeadLetters(1 << 20)
		n.Body(b, []byte(body), time.Now()) // the error is in the batch
		var got []string
		total := 0
		clone := b.CloneRejected()
		n.Body(b, []byte("9\n8\n"), time.Now()) // which does not change the clone
		for _, l := range clone.DeadLetters() {
			got = append(got, fmt.Sprintf("%s×%d", clone.Text(&l), l.Count))
			total += l.Count
		}
		if strings.Join(got, " ") != want || total != clone.RejectedTotal {
			t.Errorf("%q: %q of %d, want %s", body, got, clone.RejectedTotal, want)
		}
	}
	b := new(Batch)
	b.KeepDeadLetters(1000)
	build := n.Build(b, time.Now())
	for _, context := range []string{"a", "a", "b", ""} {
		build.Raw([]byte("x"))
		build.Reject(ReasonSyntax, "")
		build.Context(len(context), func(dst []byte) []byte { return append(dst, context...) })
	}
	build.Done()
	if list := b.DeadLetters(); len(list) != 3 || list[0].Count != 2 || string(b.Context(&list[1])) != "b" {
		t.Errorf("%+v", list)
	}
}

// asked is a Room without a limit that notes what it was asked for.
type asked struct{ memory, lines int }

func (a *asked) Grow(memory, lines int) bool {
	a.memory, a.lines = max(a.memory, memory), max(a.lines, lines)
	return true
}

// Lines that repeat what their events share take up a small part of their size, and come
// out as they were, whatever falls on the border of a chunk. What was asked for is never
// less than what is there.
func TestChunks(t *testing.T) {
	shared, size := strings.Repeat("shared ", 3000), testkit.RaceRounds(t, 10, 40)<<20
	for name, one := range map[string]string{
		"small": `{"msg":"x"}`,
		"large": `{"msg":"` + shared + `"}`,
		"huge":  `{"msg":"` + shared[:700] + `","a":"` + strings.Repeat("y", 900_000) + `"}`,
	} {
		n, b := New(Limits{MaxEvents: 1 << 30}), new(Batch)
		m, single := New(Limits{}), new(Batch)
		room := new(asked)
		b.Within(room, 100)
		build := n.Build(b, time.Unix(1779972000, 0))
		want := new(strings.Builder)
		for i := 0; want.Len() < size; i++ {
			build.Begin()
			build.Attr([]byte("i"))
			build.Int(int64(i))
			build.Message([]byte(one))
			if !build.End() {
				t.Fatal(name, b.Rejected)
			}
			if memory := b.memory(); memory > max(room.memory, 100) {
				t.Fatalf("%s: %d bytes of memory, asked for %d", name, memory, room.memory)
			}
			single.Reset()
			k := m.Build(single, time.Unix(1779972000, 0))
			k.Begin()
			k.Attr([]byte("i"))
			k.Int(int64(i))
			k.Message([]byte(one))
			k.End()
			k.Done()
			want.Write(single.Lines)
		}
		build.Done()
		if got := string(b.AppendTo(nil)); got != want.String() {
			t.Errorf("%s: other lines than were made", name)
		}
		records, size := strings.Count(string(b.Lines), "\n"), len(b.Lines)
		for _, c := range b.Chunks() {
			records, size = records+c.Records, size+c.Size
		}
		if records != b.Records || size != b.Size() || size != want.Len() || room.lines < size-2*chunkBytes {
			t.Errorf("%s: %d records and %d bytes in chunks; %d, %d, %d asked for", name, records, size, b.Records, b.Size(), room.lines)
		}
		if room.memory > rawBytes+4*chunkBytes+scratchTimes<<21 {
			t.Errorf("%s: %d bytes asked for %d bytes of lines", name, room.memory, size)
		}
		if b.Reset(); b.Size() != 0 || len(b.Chunks()) != 0 || b.memory() > 2<<20 {
			t.Errorf("%s: %d bytes are left", name, b.memory())
		}
	}
}

// A body that turns out not to be what it began as is taken back, also where full chunks
// were packed meanwhile.
func TestChunksTakenBack(t *testing.T) {
	n, b := New(Limits{}), new(Batch)
	b.Within(new(asked), 100)
	if err := n.Line(b, []byte(`{"msg":"first"}`), time.Unix(1779972000, 0)); err != nil {
		t.Fatal(err)
	}
	first := string(b.Lines)
	for name, array := range map[string]string{
		"chunks":    "[" + strings.Repeat(`{"msg":"again and again and again"},`, 80_000) + "x]",
		"no chunks": `[{"msg":"once"},x]`,
	} {
		if n.Line(b, []byte(array), time.Unix(1779972000, 0)) == nil {
			t.Fatal(name, "is taken")
		}
		if got := string(b.AppendTo(nil)); got != first || b.Records != 1 || b.Size() != len(first) || b.sealed > len(first) {
			t.Errorf("%s: %d records, %d bytes are left: %.200s", name, b.Records, len(got), got)
		}
	}
	body := strings.Repeat(`{"msg":"a line among many that are alike"}`+"\n", 30_000) + "{\n" + strings.Repeat(`{"msg":"and more of them"}`+"\n", 30_000)
	b.Reset()
	b.Within(new(asked), 100)
	if err := n.Body(b, []byte(body), time.Unix(1779972000, 0)); err != nil || b.Records != 60_000 || b.RejectedTotal != 1 {
		t.Errorf("%v: %d records, %d rejected", err, b.Records, b.RejectedTotal)
	}
	if got := strings.Count(string(b.AppendTo(nil)), "\n"); got != 60_000 {
		t.Errorf("%d lines", got)
	}
}

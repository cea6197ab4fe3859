package chaos

import (
	"bytes"
	"fmt"
	"strconv"
	"sync"

	"github.com/rollway/rollway/collector/journal"
)

// maxEvents is how many events a request has at most.
const maxEvents = 5

// An account is what clients know of the requests they sent. It is safe for
// concurrent use.
type account struct {
	mu        sync.Mutex
	list      []request // by number; guarded by mu
	confirmed int       // of them, acknowledged; guarded by mu
}

type request struct {
	acked bool
	first uint64 // offset of its first event, by the answer
}

func events(number int) int { return 1 + number%maxEvents }

// next begins another request.
func (a *account) next() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.list = append(a.list, request{})
	return len(a.list) - 1
}

// ack notes an acknowledgement. again says that there was one before, same that
// it named the same offset.
func (a *account) ack(number int, first uint64) (again, same bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	r := &a.list[number]
	if r.acked {
		return true, r.first == first
	}
	*r = request{true, first}
	a.confirmed++
	return false, true
}

func (a *account) snapshot() []request {
	a.mu.Lock()
	defer a.mu.Unlock()
	return append([]request(nil), a.list...)
}

// acked returns how many requests are acknowledged.
func (a *account) acked() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.confirmed
}

// message is the text of an event, which hardly can be packed. Now and then it is long, so that
// a write of it takes a while.
func message(dst []byte, number, index int) []byte {
	size := 60 + (number*7+index*13)%200
	if number%61 == 0 && index == 0 {
		size = 150_000
	}
	dst = fmt.Appendf(dst, "r %d %d ", number, index)
	for x := uint32(number*maxEvents + index); size > 0; size-- {
		x = x*1664525 + 1013904223
		dst = append(dst, 'a'+byte(x>>24)%26)
	}
	return dst
}

// body is what a client sends for a request.
func body(number int) []byte {
	var b []byte
	for i := range events(number) {
		b = append(b, `{"msg":"`...)
		b = message(b, number, i)
		b = append(b, "\"}\n"...)
	}
	return b
}

// A view says whose lines are looked up, and which of them the journal may have deleted.
type view struct {
	tenant   string // empty: all lines
	retained bool   // the oldest lines of the journal may be gone
	dropped  bool   // any line may be
}

// lookUp reads the journal in dir and adds to t what is wrong with it by the
// account as it was when before was taken. answered says that nothing may be
// stored that is not acknowledged.
func lookUp(t *Try, dir string, before []request, answered bool, v view) error {
	found := make([][maxEvents]uint8, len(before))
	stored, text := 0, []byte(nil)
	low, begun := uint64(0), !v.retained
	_, err := journal.EachFrame(dir, 0, func(f journal.Frame) error {
		offset := f.First
		if !begun {
			low, begun = offset, true
		}
		for line := range bytes.Lines(f.Lines) {
			if v.tenant != "" && string(journal.TenantOf(line)) != v.tenant {
				offset++
				continue
			}
			number, index := parse(line)
			if number < 0 || number >= len(before) || index < 0 || index >= events(number) || !bytes.Equal(messageOf(line), message(text[:0], number, index)) {
				t.Alien++
			} else {
				stored++
				if found[number][index]++; before[number].acked && offset != before[number].first+uint64(index) {
					t.Misplace++
				}
			}
			offset++
		}
		return nil
	})
	if err != nil {
		return err
	}
	for number, r := range before {
		there := 0
		for i := range events(number) {
			if r.acked && r.first+uint64(i) < low {
				continue
			}
			switch n := found[number][i]; {
			case n > 1:
				t.Twice++
				there++
			case n == 1:
				there++
			case r.acked && v.dropped:
				t.Dropped++
			case r.acked:
				t.Lost++
			}
		}
		switch {
		case r.acked:
			t.Lookups += events(number)
		case there > 0 && there < events(number) && !v.dropped:
			t.Partly++
		case there > 0 && answered:
			t.Silent++
		}
	}
	t.Stored = stored
	return nil
}

// messageOf is the text of a canonical line.
func messageOf(line []byte) []byte {
	_, rest, ok := bytes.Cut(line, []byte(`"msg":"`))
	if !ok {
		return nil
	}
	text, _, _ := bytes.Cut(rest, []byte(`"`))
	return text
}

// parse finds the number of the request and of the event, or -1.
func parse(line []byte) (number, index int) {
	fields := bytes.SplitN(messageOf(line), []byte(" "), 4)
	if len(fields) != 4 || string(fields[0]) != "r" {
		return -1, -1
	}
	number, err := strconv.Atoi(string(fields[1]))
	if err != nil {
		return -1, -1
	}
	if index, err = strconv.Atoi(string(fields[2])); err != nil {
		return -1, -1
	}
	return number, index
}

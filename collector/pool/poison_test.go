//go:build rollway_poison || race

package pool

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

// panics returns what f panics with.
func panics(t *testing.T, f func()) (text string) {
	t.Helper()
	before := Faults()
	defer func() {
		text = fmt.Sprint(recover())
		if Faults() != before+1 {
			t.Errorf("%d faults, want %d", Faults(), before+1)
		}
		faults.Store(int64(before)) // they were wanted
	}()
	f()
	return ""
}

// returnOne is named in the panic.
func returnOne(p *Pool[*scratch], v *scratch) { p.Put(v) }

// What is read after its return is no text, what is written is found when the
// value is to be used again, and the panic says where it was returned.
func TestStaleUse(t *testing.T) {
	p := newPool(100)
	v := p.Get()
	v.b = append(v.b, "secret of a tenant"...)
	stale := v.b
	returnOne(p, v)
	if bytes.Contains(stale, []byte("secret")) {
		t.Errorf("memory that was returned holds %q", stale)
	}
	if text := panics(t, func() { CheckText(append([]byte(`{"msg":"`), stale...)) }); !strings.Contains(text, "memory is used that was returned") {
		t.Error(text)
	}
	if text := panics(t, func() { CheckText([]byte("a\xdbb")) }); !strings.Contains(text, "not UTF-8") {
		t.Error(text)
	}
	p.Check() // only read
	stale[3] = 'x'
	text := panics(t, func() {
		for range 2 * quarantined {
			p.Put(&scratch{})
			p.Get()
		}
	})
	for _, want := range []string{"written to after it was returned", `holds "x"`, "pool.returnOne", "poison_test.go"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in %s", want, text)
		}
	}
}

func TestReturnedTwice(t *testing.T) {
	p := newPool(10)
	v := p.Get()
	returnOne(p, v)
	if text := panics(t, func() { p.Put(v) }); !strings.Contains(text, "returned already") || !strings.Contains(text, "pool.returnOne") {
		t.Error(text)
	}
}

func TestKeepNothing(t *testing.T) {
	KeepNothing(true)
	defer KeepNothing(false)
	p := newPool(10)
	seen := map[*scratch]bool{}
	for range 5 * quarantined {
		v := p.Get()
		if seen[v] {
			t.Fatal("a value was given again")
		}
		seen[v] = true
		p.Put(v)
	}
}

package fingerprint

import (
	"strings"
	"testing"

	"github.com/rollway/rollway/collector/stacktrace"
)

func of(kind, message, stack string) string {
	var h Hash
	h.Type([]byte(kind))
	h.Message([]byte(message), nil)
	h.Stack([]byte(stack))
	return string(h.Append(nil))
}

const python = `Traceback (most recent call last):
  File "/app/main.py", line 9, in <module>
  File "/app/shop.py", line 7, in pay
  File "/usr/lib/python3.12/site-packages/stripe/api.py", line 77, in charge
ZeroDivisionError: order 4711 of 'alice': division by zero`

// Version 1 is as it was: if this fails, the algorithm has become another, and needs a number
// of its own.
func TestVersion1(t *testing.T) {
	for _, c := range []struct{ kind, message, stack, want string }{
		{"ZeroDivisionError", "order 4711 of 'alice': division by zero", python, "1-6ba38632ad1db0f9"},
		{"java.lang.ArithmeticException", "/ by zero", "", "1-7fd241e1589a0026"},
		{"", "dial tcp 10.0.0.7:5432: connection refused", "", "1-0a8fc359f2270997"},
		{"", "", "main.(*Cart).Pay\n\t/app/cart.go:12\nmain.main\n\t/app/main.go:9", "1-341ddaffb36a4999"},
		{"", "", "", ""},
	} {
		if got := of(c.kind, c.message, c.stack); got != c.want {
			t.Errorf("%s: %s is %s, was %s", c.kind, c.message, got, c.want)
		}
	}
}

// The same failure: with other numbers, at another release, of another library.
func TestSame(t *testing.T) {
	want := of("ZeroDivisionError", "order 4711 of 'alice': division by zero", python)
	later := strings.NewReplacer("line 7", "line 8", "/app/", "/srv/release-8/", "line 77, in charge", "line 91, in request").Replace(python)
	frames := func(last bool, list ...stacktrace.Frame) string {
		var h Hash
		h.Type([]byte("builtins.ZeroDivisionError"))
		h.Message([]byte("order 7 of 'bob': division by zero\nin two lines"), nil)
		if last {
			h.Last()
		}
		for _, f := range list {
			h.Frame(f, IsApp(f))
		}
		return string(h.Append(nil))
	}
	main := stacktrace.Frame{Func: []byte("<module>"), File: []byte("main.py")}
	pay := stacktrace.Frame{Func: []byte("shop.Cart.pay"), File: []byte("shop.py")}
	lib := stacktrace.Frame{Func: []byte("x"), File: []byte("/x/site-packages/y.py")}
	for name, got := range map[string]string{
		"another release":      of("ZeroDivisionError", "order 12 of 'bob': division by zero", later),
		"frames, oldest first": frames(true, main, pay, lib),
		"frames, newest first": frames(false, lib, pay, main),
	} {
		if got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	for name, got := range map[string]string{
		"another type":    of("ValueError", "order 4711 of 'alice': division by zero", python),
		"another message": of("ZeroDivisionError", "modulo by zero", python),
		"another place":   of("ZeroDivisionError", "order 4711 of 'alice': division by zero", strings.ReplaceAll(python, "in pay", "in refund")),
		"no stack":        of("ZeroDivisionError", "order 4711 of 'alice': division by zero", ""),
	} {
		if got == want || len(got) != Size {
			t.Errorf("%s: %s", name, got)
		}
	}
}

func TestStable(t *testing.T) {
	stack := func(text string) string { return of("E", "m", text) }
	for _, c := range [][2]string{
		{"E\n    at pay (/app/main-3fa9b1.js:1:2)", "E\n    at async pay (https://x/main-77bc01.js:1:9)"},
		{"E\n\tat com.shop.Cart.pay(Cart.java:12)", "E\n\tat java.base/java.util.List.of(List.java:1)\n\tat com.shop.Cart.pay(Cart.java:19)"},
		{"E\n\tat com.shop.Cart.lambda$pay$0(Cart.java:12)", "E\n\tat com.shop.Cart.lambda$pay$17(Cart.java:12)"},
		{"main.main.func1\n\t/app/main.go:9", "main.main.func2\n\t/src/main.go:10"},
	} {
		if stack(c[0]) != stack(c[1]) {
			t.Errorf("%q and %q differ", c[0], c[1])
		}
	}
	if stack("E\n    at pay (/a.js:1:2)") == stack("E\n    at refund (/a.js:1:2)") {
		t.Error("two functions are one")
	}
	// A stack of libraries alone counts with its frames.
	if stack("E\n\tat java.util.List.of(List.java:1)") == stack("E\n\tat java.util.Set.copy(Set.java:1)") {
		t.Error("two stacks of libraries are one")
	}
}

func TestNoAllocation(t *testing.T) {
	text, scratch, dst := []byte(python), make([]byte, 0, 4096), make([]byte, 0, Size)
	if n := testing.AllocsPerRun(10, func() {
		var h Hash
		h.Type(text[:10])
		h.Message(text[200:], scratch)
		h.Stack(text)
		h.Append(dst)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

package stacktrace

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"
)

const pythonText = `Traceback (most recent call last):
  File "/app/db.py", line 3, in query
    rows = 1 / 0
ZeroDivisionError: division by zero

The above exception was the direct cause of the following exception:

Traceback (most recent call last):
  File "/app/main.py", line 9, in <module>
    pay()
  File "/app/shop.py", line 7, in pay
    raise PaymentError("order 7") from e
shop.PaymentError: order 7
of two lines`

const javaText = `com.shop.PaymentException: order 7
	at com.shop.Cart.pay(Cart.java:12)
	at java.base/java.lang.Thread.run(Thread.java:833)
	at com.shop.Cart$Inner.lambda$run$0(Unknown Source)
	... 3 common frames omitted
Caused by: java.lang.ArithmeticException: / by zero
	at com.shop.Db.query(Db.java:3)
	... 4 more`

const dotnetText = `Shop.PaymentException: order 7
 ---> System.DivideByZeroException: Attempted to divide by zero.
   at Shop.Db.Query(Int32 a) in /app/Db.cs:line 3
   --- End of inner exception stack trace ---
   at Shop.Cart.Pay(Order o, Int32 n) in C:\app\Cart.cs:line 12
   at Shop.Program.Main(String[] args)`

const nodeText = `TypeError [ERR_X]: order 7
    at Cart.pay (/app/cart.js:3:5)
    at async file:///app/main.mjs:9:1
    at new Promise (<anonymous>)
    at process.processTicksAndRejections (node:internal/process/task_queues:95:5)`

const golangText = `panic: order 7 [recovered]

goroutine 1 [running]:
main.(*Cart).Pay(0xc000010000, 0x7)
	/app/cart.go:12 +0x1d
main.main()
	/app/main.go:9 +0x20`

const zapText = "main.(*Cart).Pay\n\t/app/cart.go:12\nmain.main\n\t/app/main.go:9"

const rubyText = "cart.rb:3:in `/': divided by 0 (ZeroDivisionError)\n\tfrom cart.rb:3:in `pay'\n\tfrom /app/main.rb:9:in 'Object#run'"

const phpText = `PHP Fatal error:  Uncaught DivisionByZeroError: Division by zero in /app/cart.php:3
Stack trace:
#0 /app/main.php(9): Shop\Cart->pay(7)
#1 {main}
  thrown in /app/cart.php on line 3`

const rustText = `thread 'main' panicked at src/cart.rs:12:5:
attempt to divide by zero
stack backtrace:
   0: core::panicking::panic
             at /rustc/0/library/core/src/panicking.rs:144:5
   1: shop::cart::pay
             at ./src/cart.rs:12:5`

const elixirText = `** (Shop.PaymentError) order 7
    (shop 0.1.0) lib/shop/cart.ex:12: Shop.Cart.pay/1
    test/cart_test.exs:5: anonymous fn/0 in Shop.CartTest.run/2
    (stdlib 4.0) proc_lib.erl:240: :proc_lib.init_p_do_apply/3`

const dartText = `Unhandled exception:
FormatException: order 7
#0      Cart.pay (package:shop/cart.dart:12:5)
#1      main.<anonymous closure> (file:///app/main.dart:3:3)`

const monologText = `[object] (App\PaymentException(code: 7): order 7 failed at /app/src/Cart.php:12)
[stacktrace]
#0 /app/src/Main.php(3): App\Cart->pay()
#1 {main}

[previous exception] [object] (PDOException(code: 0): db gone at /app/src/Db.php:9)
[stacktrace]
#0 /app/src/Cart.php(11): App\Db->get()`

func TestParse(t *testing.T) {
	for name, c := range map[string]struct{ text, kind, message, frames string }{
		"Python":     {pythonText, "shop.PaymentError", "order 7\nof two lines", "<module> /app/main.py, pay /app/shop.py"},
		"Java":       {javaText, "com.shop.PaymentException", "order 7", "com.shop.Cart.pay Cart.java, java.lang.Thread.run Thread.java, com.shop.Cart$Inner.lambda$run$0 "},
		"Java, CRLF": {strings.ReplaceAll(javaText, "\n", "\r\n"), "com.shop.PaymentException", "order 7", "com.shop.Cart.pay Cart.java, java.lang.Thread.run Thread.java, com.shop.Cart$Inner.lambda$run$0 "},
		"Java, uncaught": {"Exception in thread \"main\" java.lang.ArithmeticException\n\tat com.shop.Db.query(Db.java:3)", "java.lang.ArithmeticException", "",
			"com.shop.Db.query Db.java"},
		"after a message": {"charge failed\n" + javaText, "com.shop.PaymentException", "order 7", "com.shop.Cart.pay Cart.java, java.lang.Thread.run Thread.java, com.shop.Cart$Inner.lambda$run$0 "},
		".NET": {dotnetText, "Shop.PaymentException", "order 7",
			`Shop.Db.Query /app/Db.cs, again Shop.Cart.Pay C:\app\Cart.cs, Shop.Program.Main `},
		"Node":          {nodeText, "TypeError", "order 7", "Cart.pay /app/cart.js,  file:///app/main.mjs, new Promise <anonymous>, process.processTicksAndRejections node:internal/process/task_queues"},
		"Firefox":       {"pay@https://shop/cart.js:3:5\n@https://shop/main.js:9:1", "", "", "pay https://shop/cart.js,  https://shop/main.js"},
		"Go":            {golangText, "", "order 7", "main.(*Cart).Pay /app/cart.go, main.main /app/main.go"},
		"zap":           {zapText, "", "", "main.(*Cart).Pay /app/cart.go, main.main /app/main.go"},
		"Ruby":          {rubyText, "ZeroDivisionError", "divided by 0", "/ cart.rb, pay cart.rb, Object#run /app/main.rb"},
		"PHP":           {phpText, "DivisionByZeroError", "Division by zero", `Shop\Cart->pay /app/main.php, {main} `},
		"Rust":          {rustText, "", "attempt to divide by zero", "core::panicking::panic /rustc/0/library/core/src/panicking.rs, shop::cart::pay ./src/cart.rs"},
		"Elixir":        {elixirText, "Shop.PaymentError", "order 7", "Shop.Cart.pay (shop 0.1.0) lib/shop/cart.ex, anonymous fn/0 in Shop.CartTest.run test/cart_test.exs, :proc_lib.init_p_do_apply (stdlib 4.0) proc_lib.erl"},
		"Dart":          {dartText, "FormatException", "order 7", "Cart.pay package:shop/cart.dart, main.<anonymous closure> file:///app/main.dart"},
		"PHP's Monolog": {monologText, `App\PaymentException`, "order 7 failed", `App\Cart->pay /app/src/Main.php, {main} `},
		"Rust, of old": {"thread 'main' panicked at 'no stock', src/main.rs:3:5\nstack backtrace:\n   0: shop::pay\n             at ./src/cart.rs:12:5", "", "no stock",
			"shop::pay ./src/cart.rs"},
		"PHP's Monolog, without a place": {"[object] (A\\B(code: 0): text only)\n#0 {main}", `A\B`, "text only", "{main} "},
		"PHP's Monolog, at no file":      {"[object] (A\\B(code: 0): looked at by x at 12:30)\n#0 {main}", `A\B`, "looked at by x at 12:30", "{main} "},
		"PHP's Monolog, two lines":       {"[object] (A\\B(code: 0): looked at by x\nor y at /app/x.php:12)\n[stacktrace]\n#0 {main}", `A\B`, "looked at by x\nor y", "{main} "},
		"PHP's Monolog, nothing":         {"[object] (A\\B(code: 0):  at /app/x.php:12)\r\n#0 {main}", `A\B`, "", "{main} "},
		"PHP, frames alone":              {"E: x\n#0 /app/x.php(3): f()", "E", "x", "f /app/x.php"},
		"PHP, internal":                  {"E: x\n#0 [internal function]: f()\n#1 {main}", "E", "x", "{main} "},
		"like PHP's":                     {"RuntimeError: x\n#0 is bad\n    at f (/a.js:1:1)", "RuntimeError", "x\n#0 is bad", "f /a.js"},
		"like Elixir's":                  {"RuntimeError: x\n  x.ex:12: bad\n    at f (/a.js:1:1)", "RuntimeError", "x\n  x.ex:12: bad", "f /a.js"},
		"Elixir, CRLF": {"** (A.B) x\r\n    lib/a.ex:1: A.b(1, 2)\r\n    lib/a.ex:12: (file)\r\n    lib/a.ex:2: A.c/1\r", "A.B", "x",
			"A.b(1, 2) lib/a.ex, (file) lib/a.ex, A.c lib/a.ex"},
		"like Go's":            {"loading\nconfig.go failed\n\tbad config.go: x\nError: y\n    at f (/a.js:1:1)", "loading", "config.go failed\n\tbad config.go: x\nError: y", "f /a.js"},
		"like Go's, with line": {"it failed\nconfig.go failed\n\tbad config.go:12\nError: y\n    at f (/a.js:1:1)", "Error", "y", "f /a.js"},
		"a Go file elsewhere":  {"Error: y\n    at f (/a.go:1:1)", "Error", "y", "f /a.go"},
		"Go's pkg/errors":      {"pay: EOF\n\tof two lines\nmain.pay\n\t/app/main.go:9", "", "", "main.pay /app/main.go"},
		"Go, created":          {"main.f(0x1, 0x2)\n\t/app/main.go:9 +0x1d\ncreated by main.main in goroutine 1\n\t/app/main.go:3 +0x2", "", "", "main.f /app/main.go, created by main.main in goroutine 1 /app/main.go"},
		"a head alone":         {"ZeroDivisionError: division by zero", "ZeroDivisionError", "division by zero", ""},
		"a type alone":         {"shop.PaymentException", "shop.PaymentException", "", ""},
		"words":                {"error: no such file", "", "", ""},
		"a list of points":     {"we met:\n  at noon\n  at one", "we met", "", " noon,  one"},
		"nothing":              {"", "", "", ""},
		"a header alone":       {"Traceback (most recent call last):", "", "", ""},
		"without a newline":    {"Traceback (most recent call last):\n  File \"x.py\", line 1", "", "", " x.py"},
	} {
		if name == "a list of points" {
			c.kind = "" // "we met" has a blank
		}
		got := Parse([]byte(c.text))
		if string(got.Type) != c.kind || string(got.Message) != c.message {
			t.Errorf("%s: type %q, message %q, want %q and %q", name, got.Type, got.Message, c.kind, c.message)
		}
		var frames []string
		Each([]byte(c.text), func(f Frame) {
			again := ""
			if f.Again {
				again = "again "
			}
			frames = append(frames, fmt.Sprintf("%s%s %s", again, f.Func, f.File))
		})
		if got := strings.Join(frames, ", "); got != c.frames {
			t.Errorf("%s: frames\n%s\nwant\n%s", name, got, c.frames)
		}
	}
}

func TestLine(t *testing.T) {
	for text, want := range map[string]string{
		`at Cart.pay (/app/cart.js:3:5)`:                         "Cart.pay /app/cart.js false",
		`    at Cart.pay (/app/cart.js:3:5)`:                     "Cart.pay /app/cart.js false",
		`  File \"/app/shop.py\", line 7, in pay\n    raise X\n`: "pay /app/shop.py true",
		`/app/cart.php:12`:                                       " /app/cart.php false",
		"cart.rb:3:in `pay'":                                     "pay cart.rb false",
		`#0 /app/main.php(9): pay()`:                             "pay /app/main.php false",
	} {
		f, last := Line([]byte(text))
		if got := fmt.Sprintf("%s %s %v", f.Func, f.File, last); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}

func TestNoAllocation(t *testing.T) {
	for _, text := range []string{pythonText, javaText, dotnetText, nodeText, golangText, rubyText, phpText, rustText, elixirText, dartText, monologText} {
		b := []byte(text)
		if n := testing.AllocsPerRun(10, func() { Parse(b) }); n != 0 {
			t.Errorf("%v allocations for %.20q", n, text)
		}
	}
}

// What is told of a text is part of it.
func FuzzParse(f *testing.F) {
	for _, text := range []string{pythonText, javaText, dotnetText, nodeText, golangText, zapText, rubyText, phpText, rustText, elixirText, dartText, monologText, causesOfDotnet, "x\n" + javaText} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		before := bytes.Clone(text)
		got := Parse(text)
		for _, part := range [][]byte{got.Type, got.Message} {
			if !bytes.Contains(text, part) {
				t.Fatalf("%q is not in %q", part, text)
			}
		}
		found, inside := Find(text)
		parts := [][]byte{found, inside.Type, inside.Message}
		Causes(text, func(c Trace) { parts = append(parts, c.Type, c.Message) })
		for _, part := range parts {
			if !bytes.Contains(text, part) {
				t.Fatalf("%q is not in %q", part, text)
			}
		}
		n := 0
		Each(text, func(fr Frame) {
			n++
			if !bytes.Contains(text, fr.Func) || !bytes.Contains(text, fr.File) {
				t.Fatalf("%q, %q are not in %q", fr.Func, fr.File, text)
			}
		})
		Line(text)
		if n > bytes.Count(text, newline)+1 || !bytes.Equal(before, text) {
			t.Fatalf("%d frames in %q, which was %q", n, text, before)
		}
	})
}

const causesOfDotnet = `System.InvalidOperationException: order 7 ---> Shop.DbException: closed: x ---> System.IO.IOException: broken
   at Shop.Db.Query(Int32 a)
   --- End of inner exception stack trace ---
   at Shop.Cart.Pay(Order o)`

func TestCauses(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{pythonText, "ZeroDivisionError: division by zero"},
		{strings.Replace(pythonText, "The above exception was the direct cause of the following exception:", "something else", 1), ""},
		{"Traceback (most recent call last):\n  File \"a\", line 1, in f\nA: 1\n\nDuring handling of the above exception, another exception occurred:\n\nTraceback (most recent call last):\n  File \"a\", line 1, in f\n> File \"a\", line 1, in f\nb.B\n\n" +
			"The above exception was the direct cause of the following exception:\n\nTraceback (most recent call last):\n  File \"a\", line 1, in f\nC: 1", "b.B: |A: 1"},
		{javaText, "java.lang.ArithmeticException: / by zero"},
		{"a.B: x\n\tat a.C(D.java:1)\nCaused by: a.E: y\nof two lines\n\tat a.C(D.java:1)\n\t... 3 more\nCaused by: a.F\n\tat a.C(D.java:1)", "a.E: y\nof two lines|a.F: "},
		{"a.B: x\n\tat a.C(D.java:1)\n\tSuppressed: a.E: y\n\t\tat a.C(D.java:1)\n\tCaused by: a.F: z\n\t\tat a.C(D.java:1)", ""},
		{dotnetText, "System.DivideByZeroException: Attempted to divide by zero."},
		{causesOfDotnet, "Shop.DbException: closed: x|System.IO.IOException: broken"},
		{strings.ReplaceAll(causesOfDotnet, "\n", "\r\n"), "Shop.DbException: closed: x|System.IO.IOException: broken"},
		{"E: x\n    at f (/a.js:1:2)\ncaused by: TypeError: y\n    at f (/a.js:1:2)\ncaused by: Error: z\n    at f", "TypeError: y|Error: z"},
		{"E: x\n    at f (/a.js:1:2) {\n  [cause]: TypeError: y\n      at f (/a.js:1:2)\n}", "TypeError: y"},
		{"no payment\n\nCaused by:\n    0: closed\n    1: broken\n\nStack backtrace:\n   0: f", ": closed|: broken"},
		{"no payment\n\nCaused by:\n    closed", ": closed"},
		{monologText, "PDOException: db gone"}, {elixirText, ""}, {dartText, ""},
		{"a ---> b", ""}, {"Caused by:", ""}, {"", ""}, {nodeText, ""}, {golangText, ""}, {zapText, ""}, {rubyText, ""},
	} {
		var got []string
		Causes([]byte(c.text), func(t Trace) { got = append(got, fmt.Sprintf("%s: %s", t.Type, t.Message)) })
		if strings.Join(got, "|") != c.want {
			t.Errorf("%s\n got %q\nwant %q", c.text, got, c.want)
		}
	}
}

// TestFind looks for traces in texts with something before and after them.
func TestFind(t *testing.T) {
	for _, c := range []struct{ text, begin, kind, message string }{
		{"order failed\n" + pythonText, "Traceback", "shop.PaymentError", "order 7\nof two lines"},
		{"2026-05-28 12:40:00 ERROR Shop: order failed\n" + javaText, "com.shop.Pay", "com.shop.PaymentException", "order 7"},
		{"fail: Shop[0]\n      order failed\n      " + dotnetText, "Shop.Pay", "Shop.PaymentException", "order 7"},
		{"ERROR: x\ncom.shop.Declined: order 7\n\tat a.B(C.java:7)", "com.shop.Declined", "com.shop.Declined", "order 7"},
		{"x\nException in thread \"main\" a.BException: y\n\tat a.B(C.java:7)", "Exception in", "a.BException", "y"},
		{"failed\n" + nodeText, "TypeError", "TypeError", "order 7"},
		{"failed\n" + golangText, "panic: ", "", "order 7"},
		{"failed\n" + rustText, "thread", "", "attempt to divide by zero"},
		{"failed\n" + elixirText, "** (", "Shop.PaymentError", "order 7"},
		{dartText, "FormatException", "FormatException", "order 7"},
		{"[2026-05-28 12:40:00] app.ERROR: x {\"exception\":\"" + monologText + "\"} []", "[object] (", `App\PaymentException`, "order 7 failed"},
		{"[object] (A(code: 0): b at c:1)", "", "", ""}, {"** (A) b", "", "", ""},
		{"ERROR: x\n\tat a.B(C.java:7)", "", "", ""}, {"KeyError: x\nis no trace", "", "", ""}, {"look\n  at (this)", "", "", ""}, {"panic: x", "", "", ""}, {"", "", "", ""},
	} {
		part, got := Find([]byte(c.text))
		if !bytes.HasPrefix(part, []byte(c.begin)) || got.Traced != (c.begin != "") || string(got.Type) != c.kind || string(got.Message) != c.message {
			t.Errorf("%s\nbegins %.30q, %q, %q, traced %v", c.text, part, got.Type, got.Message, got.Traced)
		}
	}
}

// TestLongTexts: a text costs by its length. Where each line looked at all the text, "panic: " took over
// a minute, the tracebacks over ten seconds.
func TestLongTexts(t *testing.T) {
	const size = 2 << 20
	spaces := strings.Repeat(" ", size/2)
	for _, part := range []string{"panic: x\n", "[object] (\n", "[previous exception] x\n", "x y\n",
		"Traceback (most recent call last):\nE: x\n\nDuring handling of the above exception, another \n",
		"Caused by: x\n", "   ---> x", "  [cause]: x\n", "Caused by:\n  1: x\n", "thread 'x\n", "#0 x\n", "** (x\n", "x:in `f'\n", "f@x:1:1\n", "f\n\tx.go:1\n", "x: ", "E: at :1:1 (",
		pythonText, javaText + dotnetText + nodeText + golangText + zapText + rubyText + phpText + rustText + elixirText + dartText + monologText} {
		text := []byte(strings.Repeat(part, size/2/len(part)) + spaces + "\n   at f (/a.js:1:1)")
		begin := time.Now()
		Find(text)
		Parse(text)
		Each(text, func(Frame) {})
		Causes(text, func(Trace) {})
		if took := time.Since(begin); took > 5*time.Second {
			t.Errorf("%q took %v", part, took)
		}
	}
}

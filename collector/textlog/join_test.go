package textlog

import (
	"strings"
	"testing"
)

// streams are lines that a program has written; what begins an event is after "> ".
const streams = `
> 2026-05-28 12:40:00 ERROR c.e.Shop - payment failed
> INFO done
> 2026-05-28 12:40:00 ERROR c.e.Shop - payment failed
	at c.e.Shop.pay(Shop.java:7)
	... 12 more
Caused by: java.io.IOException: closed
at c.e.Shop.read(Shop.java:9)
... 3 common frames omitted
Suppressed: x
> at noon (all) is well
> ... 3 dots
> 2026-05-28 12:40:00,123 - root - ERROR - payment failed
Traceback (most recent call last):
  File "a.py", line 1, in f
    g()
ZeroDivisionError: division by zero

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "a.py", line 1, in f
app.errors.Failed
> next: line
> 2026-05-28 12:40:00,123 - root - INFO - started
> Traceback (most recent call last):
  File "a.py", line 1, in f
KeyError: 'x'
> KeyError: 'y'
> listening
> Traceback (most recent call last):
> this was no traceback at all
> panic: boom

goroutine 1 [running]:
main.main()
	/a/main.go:7 +0x1d
created by main.start in goroutine 7
	/a/main.go:9
> exit status 2
> PHP Fatal error:  Uncaught Exception: x in /a.php:3
Stack trace:
#0 /a.php(7): f()
#1 {main}
  thrown in /a.php on line 3
> #1 in the list
> Error: ENOENT
    at open (fs.js:1:2) {
  code: 'ENOENT'
}
> }
> one

>   indented after a blank line
   and on
> System.Exception: x
   at A.B() in a.cs:line 7
--- End of stack trace from previous location ---
   at A.C()
> {
  "pretty": true
}
> 2026-05-28 12:40:00 ERROR c.e.Shop - payment failed
java.io.IOException: closed
	at c.e.Shop.read(Shop.java:9)
> 2026-05-28 12:40:00 ERROR c.e.Shop - payment failed
com.shop.Payment$DeclinedException
	at c.e.Shop.read(Shop.java:9)
> 2026-05-28 12:40:00 INFO c.e.Shop - started
> java.io.IOException: closed
	at c.e.Shop.read(Shop.java:9)
> WARN: payment failed
TypeError: x is not a function
    at Cart.pay (/app/cart.js:3:5)
> Error: x
> ERROR: x
> Error: disk full
> the last Error: disk full
> an.error: disk full
> 2026-05-28T12:40:00.0Z stderr F ERROR: payment failed
2026-05-28T12:40:00.1Z stderr F java.io.IOException: closed
2026-05-28T12:40:00.1Z stderr F 	at c.e.Shop.read(Shop.java:9)
> 2026-05-28T12:40:00.2Z stdout F   indented
2026-05-28T12:40:00.3Z stdout F   too
> 	at c.e.Shop.read(Shop.java:9)
> 2026-05-28T12:40:00.4Z stdout P {"msg":
2026-05-28T12:40:00.4Z stdout P "x",
2026-05-28T12:40:00.4Z stdout F "a":1}
> 2026-05-28T12:40:00.4Z stdout F done
> 2026-05-28T12:40:00.4Z stdout F 
`

// TestBlankLines: those within traces are of their event.
func TestBlankLines(t *testing.T) {
	for text, want := range map[string]bool{"panic: x": true, "fatal error: x": true, "x": false, "ERROR: x": false} {
		var j Joiner
		if j.Next([]byte(text)); j.Next([]byte(" ")) != want {
			t.Errorf("a blank line continues %q: %v", text, !want)
		}
	}
	var j Joiner
	for i, line := range strings.Split("Traceback (most recent call last):\n  File \"a\", line 1, in f\nE: x\n\nDuring handling of the above exception, another exception occurred:\n\nTraceback (most recent call last):\n  f\nE: y", "\n") {
		if j.Next([]byte(line)) != (i > 0) {
			t.Errorf("line %d, %q", i, line)
		}
	}
}

// TestAppend joins lines to the text of their event.
func TestAppend(t *testing.T) {
	for _, c := range []struct{ lines, want string }{
		{"ERROR: x\n\tat a.B(C.java:7)", "ERROR: x\n\tat a.B(C.java:7)"},
		{"2026-05-28T12:40:00Z stderr F x\n2026-05-28T12:40:01Z stderr F  y\n2026-05-28T12:40:01Z stderr F  z", "2026-05-28T12:40:00Z stderr F x\n y\n z"},
		{"2026-05-28T12:40:00Z stderr P x\n2026-05-28T12:40:01Z stderr P  y\n2026-05-28T12:40:01Z stderr F z\n2026-05-28T12:40:01Z stderr F  a", "2026-05-28T12:40:00Z stderr F x yz\n a"},
		{"2026-05-28T12:40:00Z stderr P x\n2026-05-28T12:40:01Z stderr P  y", "2026-05-28T12:40:00Z stderr P x y"},
	} {
		var j Joiner
		var event []byte
		for i, line := range strings.Split(c.lines, "\n") {
			if more := j.Next([]byte(line)); more != (i > 0) {
				t.Fatalf("%q: line %d continues: %v", c.lines, i, more)
			} else if more {
				event = j.Append(event, []byte(line))
			} else {
				event = []byte(line)
			}
		}
		if string(event) != c.want || j.Plain() != (c.want[0] == 'E') {
			t.Errorf("%q became %q, plain %v", c.lines, event, j.Plain())
		}
	}
}

func TestJoiner(t *testing.T) {
	var j Joiner
	for line := range strings.Lines(streams[1:]) {
		line = strings.TrimSuffix(line, "\n")
		if line == "" {
			j.Blank()
			continue
		}
		text, begins := strings.CutPrefix(line, "> ")
		if got := j.Next([]byte(text)); got == begins {
			t.Errorf("%q continues: %v", text, got)
		}
	}
}

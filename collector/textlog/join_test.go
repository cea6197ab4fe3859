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
`

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

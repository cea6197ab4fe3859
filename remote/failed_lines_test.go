package remote

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestReturnedLinesAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := []byte("a\nb\n")
		r := rememberFailed(p)
		time.Sleep(maxRetryAfter + maxRetryAfter/10) // as long as a peer can ask for
		if !r.begins(p) || !r.begins([]byte("a\nb\nc\n")) || r.begins([]byte("a\nc\n")) || r.begins(p[:2]) || new(failedLines).begins(p) {
			t.Error("lines that came back are not known again, or others are")
		}
		time.Sleep(maxRetryAfter)
		if r.begins(p) {
			t.Error("the same bytes two hours later are taken for lines that came back")
		}
	})
}

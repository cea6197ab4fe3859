package httpfast

import (
	"net/http"
	"testing"
)

// TestAnswersAlike: an answer whose header is remembered from the one before is
// written as a new one is.
func TestAnswersAlike(t *testing.T) {
	long := make([]byte, longRemembered)
	for i := range long {
		long[i] = 'a'
	}
	headers := []http.Header{
		{},
		{"Content-Type": {"a/b"}, "X-Durability": {"buffered"}},
		{"Content-Type": {"a/b"}, "X-Durability": {"synced"}},
		{"Content-Type": {"a/b"}, "Retry-After": {"1"}, "X-Durability": {"synced"}},
		{"Content-Type": {"a/b"}, "X-Other": {"synced"}},
		{"Date": {"today"}},
		{"Connection": {"close"}},
		{"Set-Cookie": {"a", "b"}},
		{"Set-Cookie": {"a"}},
		{"Set-Cookie": {}},
		{"X-Long": {string(long)}},
		{"A": {"1"}, "B": {"1"}, "C": {"1"}, "D": {"1"}, "E": {"1"}, "F": {"1"}, "G": {"1"}, "H": {"1"}, "I": {"1"}},
	}
	var used answer
	write := func(a *answer, h http.Header) string {
		a.reset()
		for name, values := range h {
			a.header[name] = values
		}
		a.Write([]byte("body"))
		return string(a.finish("now"))
	}
	for _, before := range headers {
		for _, h := range headers {
			for range 2 {
				write(&used, before)
				got, want := write(&used, h), write(new(answer), h)
				if got != want {
					t.Errorf("behind %v\n%q\nwithout it\n%q", before, got, want)
				}
				if again := write(&used, h); again != want {
					t.Errorf("the second\n%q\nthe first\n%q", again, want)
				}
			}
		}
	}
}

// Only the first final status counts, and none before it is sent.
func TestFirstStatusCounts(t *testing.T) {
	var a answer
	a.reset()
	for _, code := range []int{http.StatusContinue, http.StatusEarlyHints, http.StatusTeapot, http.StatusOK} {
		a.WriteHeader(code)
	}
	if got, want := string(a.finish("now")), "HTTP/1.1 418 I'm a teapot\r\nDate: now\r\nContent-Length: 0\r\n\r\n"; got != want || a.Status() != http.StatusTeapot {
		t.Errorf("%d\n%q\n%q", a.Status(), got, want)
	}
}

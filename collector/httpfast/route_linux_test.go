package httpfast

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"sync"
	"testing"
)

// TestRoute: who answers is found once for a header block, and Handler answers for
// those for whom Route knows nobody.
func TestRoute(t *testing.T) {
	says := func(text string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, text, r.URL.Path) })
	}
	var mu sync.Mutex
	asked := map[string]int{}
	s := newServer(t, listen(t), Options{Takes: all, Handler: says("handler "), Route: func(r *http.Request) http.Handler {
		mu.Lock()
		asked[r.URL.Path]++
		mu.Unlock()
		if r.URL.Path == "/routed" {
			return says("route ")
		}
		return nil
	}})
	conn := dial(t, s)
	for path, want := range map[string]string{"/routed": "route /routed", "/other": "handler /other"} {
		for range 3 {
			if code, body, _ := ask(t, conn, post(path, "", "x")); code != 200 || body != want {
				t.Errorf("%s: %d %q", path, code, body)
			}
		}
		mu.Lock()
		if asked[path] != 1 {
			t.Errorf("%s was asked for %d times", path, asked[path])
		}
		mu.Unlock()
	}
}

// TestWhole: a handler may take the body instead of reading it.
func TestWhole(t *testing.T) {
	s := newServer(t, listen(t), Options{Takes: all, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b := r.Body.(interface{ Whole() []byte }).Whole()
		read, err := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s %s %v %v", b, read, err, cap(b) == len(b))
	})})
	conn := dial(t, s)
	// Two at once: what follows a body in memory is out of its reach.
	io.WriteString(conn, post("/", "", "one")+post("/", "", "other"))
	answers := bufio.NewReader(conn)
	for _, want := range []string{"one one <nil> true", "other other <nil> true"} {
		resp, err := http.ReadResponse(answers, nil)
		if err != nil {
			t.Fatal(err)
		}
		if body, err := io.ReadAll(resp.Body); resp.StatusCode != 200 || string(body) != want || err != nil {
			t.Errorf("%d %q %v", resp.StatusCode, body, err)
		}
	}
}

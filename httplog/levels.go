package httplog

import (
	"errors"
	"io"
	"net/http"
	"strings"

	"github.com/rollway/rollway"
)

// maxRules bounds the body of a request to LevelHandler.
const maxRules = 64 << 10

// LevelHandler returns a handler that shows and sets the levels of a running program:
//
//	curl localhost:6060/levels                          # info
//	curl -d 'info,db.*=debug' localhost:6060/levels     # info,db.*=debug
//
// GET answers the current rules. PUT and POST replace all of them with those of the
// body, of at most 64 KiB, and answer the new ones. A bad rule changes nothing; the
// answer is 400 with the error.
//
// Anybody who can reach the handler can make the program write much more, or nothing:
// require authentication, or use a listener that only the machine itself reaches.
// Requests that a web page of another origin makes a browser send are refused (403).
func LevelHandler(v *rollway.Levels) http.Handler {
	origins := http.NewCrossOriginProtection()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		switch r.Method {
		case http.MethodGet, http.MethodHead:
		case http.MethodPut, http.MethodPost:
			status, err := http.StatusForbidden, origins.Check(r)
			if err == nil {
				status, err = setLevels(v, http.MaxBytesReader(w, r.Body, maxRules))
			}
			if err != nil {
				http.Error(w, "set levels: "+err.Error(), status)
				return
			}
		default:
			w.Header().Set("Allow", "GET, HEAD, PUT, POST")
			http.Error(w, "method "+r.Method+" is not allowed: GET shows the levels, PUT and POST set them", http.StatusMethodNotAllowed)
			return
		}
		rules := v.String()
		if rules == "" {
			rules = "info" // the level without rules
		}
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		_, _ = io.WriteString(w, rules+"\n") // the client may be gone
	})
}

// setLevels reads rules from body and sets them, or returns the status to
// answer with the error.
func setLevels(v *rollway.Levels, body io.Reader) (int, error) {
	text, err := io.ReadAll(body)
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		return http.StatusRequestEntityTooLarge, errors.New("the body is longer than 64 KiB: give rules as info,db.*=debug")
	} else if err != nil {
		return http.StatusBadRequest, err
	}
	rules := strings.TrimSpace(string(text))
	if rules == "" {
		return http.StatusBadRequest, errors.New("the body is empty: give rules as info,db.*=debug")
	}
	return http.StatusBadRequest, v.Set(rules)
}

package endpoints

import (
	"context"
	"net/http"
	"sync"

	"github.com/rollway/rollway/collector/receiver"
)

// Find returns the protocol of the endpoint that the path of r is one of, and r with what the path
// names; nil: of none. It looks at All.
func Find(r *http.Request) (receiver.Protocol, *http.Request) {
	m := new(match)
	byPath().ServeHTTP(noAnswer{}, r.WithContext(context.WithValue(r.Context(), matchKey{}, m)))
	return m.protocol, m.request
}

type (
	match struct {
		protocol receiver.Protocol
		request  *http.Request
	}
	matchKey struct{}
)

var byPath = sync.OnceValue(func() *http.ServeMux {
	mux := http.NewServeMux()
	for _, e := range All {
		if e.Protocol == nil {
			continue
		}
		mux.HandleFunc(e.Path, func(_ http.ResponseWriter, r *http.Request) {
			*r.Context().Value(matchKey{}).(*match) = match{e.Protocol, r}
		})
	}
	return mux
})

// noAnswer is where the answer goes when no endpoint has the path.
type noAnswer struct{}

func (noAnswer) Header() http.Header         { return http.Header{} }
func (noAnswer) Write(b []byte) (int, error) { return len(b), nil }
func (noAnswer) WriteHeader(int)             {}

package receiver

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"
)

// Headers about how a request is stored.
const (
	// DurabilityHeader asks for a durability, buffered or synced. In an answer of 2xx
	// it says which one the events have.
	DurabilityHeader = "X-Durability"
	// KeyHeader names a request of at most 255 bytes, so that it can be sent again: it
	// is stored once, and each answer is as the first.
	KeyHeader = "Idempotency-Key"
	// HashHeader, with the value body, names a request by its path, its query and its
	// unpacked body, for senders that have no KeyHeader.
	HashHeader = "X-Idempotency"
	// AfterHeader has the KeyHeader of another request of the sender. If that one is
	// being read, it is stored first.
	AfterHeader = "Idempotency-After"
	// ReplayedHeader is true in the answer to a request that was stored before.
	ReplayedHeader = "Idempotent-Replayed"
)

// maxAfter bounds how long a request waits for the one of its AfterHeader.
const maxAfter = 5 * time.Second

// maxKey is the greatest length of a KeyHeader in bytes.
const maxKey = 255

// Values of headers, shared by all answers.
var (
	buffered = []string{"buffered"}
	synced   = []string{"synced"}
	replayed = []string{"true"}
)

// readStoreOptions reads the headers about how a request is stored.
func readStoreOptions(w *workspace, h http.Header) failure {
	ask := &w.options
	switch values := h[DurabilityHeader]; {
	case len(values) == 0:
	case len(values) == 1 && (values[0] == buffered[0] || values[0] == synced[0]):
		ask.Durability = values[0]
	default:
		return closing(http.StatusBadRequest, "%s %.50q is neither buffered nor synced; nothing was stored", DurabilityHeader, h.Get(DurabilityHeader))
	}
	switch keys := h[KeyHeader]; {
	case len(keys) == 0:
	case len(keys) == 1 && isKey(keys[0]):
		ask.Key = keys[0]
	default:
		return closing(http.StatusBadRequest, "%s must be given once and be 1 to %d printable ASCII characters; nothing was stored", KeyHeader, maxKey)
	}
	switch keys := h[AfterHeader]; {
	case len(keys) == 0:
	case len(keys) == 1 && isKey(keys[0]) && ask.Key != "" && keys[0] != ask.Key:
		w.after = keys[0]
	default:
		return closing(http.StatusBadRequest, "%s must be given once, beside a %s, and be that of another request; nothing was stored", AfterHeader, KeyHeader)
	}
	switch values := h[HashHeader]; {
	case len(values) == 0:
	case len(values) == 1 && values[0] == "body":
		w.hashed = true
	default:
		return closing(http.StatusBadRequest, "%s %.50q is not body, the only thing that a request can be named by; nothing was stored", HashHeader, h.Get(HashHeader))
	}
	return failure{}
}

// pending are the requests with a key that have begun and not ended.
type pending struct {
	mu   sync.Mutex
	ends map[string]chan struct{} // by their scoped keys; closed when the request has ended
}

// begin notes that a request with a key has begun, and returns what notes its end.
func (u *pending) begin(key string) (end func()) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.ends[key] != nil {
		return func() {} // the same request again: the first one counts
	}
	if u.ends == nil {
		u.ends = make(map[string]chan struct{})
	}
	ended := make(chan struct{})
	u.ends[key] = ended
	return func() {
		u.mu.Lock()
		delete(u.ends, key)
		u.mu.Unlock()
		close(ended)
	}
}

// wait waits until the request with that key, if it is under way, has ended, or for
// at most maxAfter.
func (u *pending) wait(ctx context.Context, key string) {
	u.mu.Lock()
	ended := u.ends[key]
	u.mu.Unlock()
	if ended == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, maxAfter)
	defer cancel()
	select {
	case <-ended:
	case <-ctx.Done():
	}
}

// ownKey begins the keys that senders have not chosen: no KeyHeader can.
const ownKey = "\x1f"

// hashKey names a request by what it says, if that was asked for and it has no
// name.
func (w *workspace) hashKey(req *http.Request) {
	if !w.hashed || w.options.Key != "" {
		return
	}
	sum := sha256.New()
	io.WriteString(sum, req.URL.Path)
	sum.Write([]byte{0})
	io.WriteString(sum, req.URL.RawQuery)
	sum.Write([]byte{0})
	sum.Write(w.buf)
	w.options.Key = w.scoped(ownKey + "body/" + hex.EncodeToString(sum.Sum(nil)))
}

// scoped makes a key that of its sender alone.
func (w *workspace) scoped(key string) string {
	if w.sender == nil {
		return key
	}
	return w.sender.Scope() + "/" + key
}

// isKey reports whether key may be that of a request.
func isKey(key string) bool {
	return key != "" && len(key) <= maxKey && !strings.ContainsFunc(key, func(c rune) bool { return c < ' ' || c > '~' })
}

// setStoredHeaders tells in an answer of 2xx what was done about ask.
func setStoredHeaders(h http.Header, w *workspace) {
	switch cmp.Or(w.stored.Durability, w.options.Durability) {
	case buffered[0]:
		h[DurabilityHeader] = buffered
	case synced[0]:
		h[DurabilityHeader] = synced
	}
	if w.stored.Duplicate {
		h[ReplayedHeader] = replayed
	}
}

// Package request holds what the middlewares for HTTP and gRPC have in common:
// the id of a request and the caller's trace.
package request

import (
	"context"
	"crypto/rand"
	"log/slog"
	"strings"

	"github.com/rollway/rollway"
)

// Names of the attributes, and of the fields in a request's header or metadata.
const (
	IDKey      = "request_id"
	TraceKey   = "trace_id"
	SpanKey    = "span_id"
	IDField    = "x-request-id"
	TraceField = "traceparent"
	maxID      = 128
)

type idKey struct{}

// Begin returns ctx with what the lines of a request carry: its id, and the caller's
// trace from its traceparent fields. The id is the one that was sent, if that is valid,
// or else the result of newID. It is set in id, which must not change from then on.
func Begin(ctx context.Context, id *string, sent, parents []string, newID func() string) context.Context {
	if len(sent) == 1 && ValidID(sent[0]) {
		*id = sent[0]
	} else {
		*id = newID()
	}
	attrs := make([]slog.Attr, 1, 3)
	attrs[0] = slog.String(IDKey, *id)
	if len(parents) == 1 {
		if traceID, spanID, ok := Trace(parents[0]); ok {
			attrs = append(attrs, slog.String(TraceKey, traceID), slog.String(SpanKey, spanID))
		}
	}
	return rollway.ContextWith(context.WithValue(ctx, idKey{}, id), attrs...)
}

// ID returns the id that Begin put into ctx, or "".
func ID(ctx context.Context) string {
	if id, _ := ctx.Value(idKey{}).(*string); id != nil {
		return *id
	}
	return ""
}

// NewID returns a random id of 26 letters and digits.
func NewID() string { return rand.Text() }

// ValidID reports whether an id from outside is 1 to 128 letters, digits and characters of
// -._~:/+=@, which are safe in a line, a header and a shell.
func ValidID(id string) bool {
	if id == "" || len(id) > maxID {
		return false
	}
	for i := range len(id) {
		if c := id[i]; !('0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'z' || strings.IndexByte("-._~:/+=@", c) >= 0) {
			return false
		}
	}
	return true
}

// Trace returns the ids in a traceparent field of W3C Trace Context: 32 and 16 hexadecimal
// digits that are not all zero. Of later versions it reads what version 00 has, as the
// recommendation asks.
func Trace(parent string) (traceID, spanID string, ok bool) {
	// version 2, trace id 32, span id 16, flags 2, three dashes between
	const size = 2 + 1 + 32 + 1 + 16 + 1 + 2
	if len(parent) < size || parent[2] != '-' || parent[35] != '-' || parent[52] != '-' {
		return "", "", false
	}
	version := parent[:2]
	if version == "ff" || version == "00" && len(parent) != size || len(parent) > size && parent[size] != '-' {
		return "", "", false
	}
	traceID, spanID = parent[3:35], parent[36:52]
	if !isHex(version) || !isHex(parent[53:size]) || !isID(traceID) || !isID(spanID) {
		return "", "", false
	}
	return traceID, spanID, true
}

func isID(s string) bool { return isHex(s) && strings.Trim(s, "0") != "" }

func isHex(s string) bool { return strings.Trim(s, "0123456789abcdef") == "" }

package otlp

import (
	"encoding/base64"
	"net/http"
	"strconv"
	"strings"

	"github.com/rollway/rollway/collector/receiver"
)

// GRPC is OTLP over gRPC, for receiver.Receiver.GRPC.
var GRPC receiver.Protocol = overGRPC{}

// GRPCPath is where its method is.
const GRPCPath = "/opentelemetry.proto.collector.logs.v1.LogsService/Export"

type overGRPC struct{}

const inGRPC = "application/grpc"

var grpcType = []string{inGRPC}

// isGRPC reports whether a request is gRPC with protocol buffers.
func isGRPC(h http.Header) bool {
	switch kind, _, _ := strings.Cut(h.Get("Content-Type"), ";"); strings.TrimSpace(kind) {
	case inGRPC, inGRPC + "+proto":
		return true
	}
	return false
}

func (overGRPC) Decode(q *receiver.Request) error {
	if !isGRPC(q.HTTP.Header) {
		return &receiver.Refusal{Code: http.StatusUnsupportedMediaType, Empty: true, Text: "this path is for gRPC with protocol buffers; send OTLP over HTTP to /v1/logs"}
	}
	r := readers.Get()
	defer r.release()
	return r.read(q, false)
}

// The header fields of an answer that trailers hold, by names that net/http
// sends after the body. An answer without a body has them in its head.
const (
	grpcStatus  = "Grpc-Status"
	grpcMessage = "Grpc-Message"
	grpcDetails = "Grpc-Status-Details-Bin"
)

var (
	grpcOK     = []string{"0"}
	grpcAccept = []string{"identity,gzip,zstd,deflate,snappy"}
)

func (overGRPC) Answer(a *receiver.Answer) {
	if a.Code == http.StatusInternalServerError && a.Stored == 0 {
		a.Code = http.StatusServiceUnavailable
	}
	h := a.Header
	h["Content-Type"], h["Grpc-Accept-Encoding"] = grpcType, grpcAccept
	if a.Code == http.StatusOK {
		a.Body = append(a.Body, 0, 0, 0, 0, 0)
		start := len(a.Body)
		a.Body = appendResponse(a.Body, a.Batch)
		size := len(a.Body) - start
		copy(a.Body[start-4:], []byte{byte(size >> 24), byte(size >> 16), byte(size >> 8), byte(size)})
		h[http.TrailerPrefix+grpcStatus] = grpcOK
		return
	}
	setStatus(h, statusOf(a.Code), a.Text)
}

// setStatus sets the header of an answer that is an error and nothing else.
// One after which to try again says when.
func setStatus(h http.Header, code int, text string) {
	seconds := uint64(0)
	if code == codeUnavailable {
		seconds = 1
	}
	if n, err := strconv.ParseUint(h.Get("Retry-After"), 10, 32); err == nil && n > 0 {
		seconds = n
	}
	h[grpcStatus] = []string{strconv.Itoa(code)}
	h[grpcMessage] = []string{percent(text)}
	h[grpcDetails] = []string{base64.RawStdEncoding.EncodeToString(appendStatus(nil, code, text, seconds))}
}

// percent encodes a message as gRPC wants it in a header.
func percent(s string) string {
	const hexadecimal = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '%' {
			b.Write([]byte{'%', hexadecimal[c>>4], hexadecimal[c&15]})
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

// Unimplemented answers calls of gRPC to services that are not here, such as
// those of traces, and leaves other requests to next.
func Unimplemented(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(r.Header.Get("Content-Type"), inGRPC) {
			next.ServeHTTP(w, r)
			return
		}
		w.Header()["Content-Type"] = grpcType
		setStatus(w.Header(), codeUnimplemented, "there is no such method here; "+GRPCPath+" takes logs")
		w.WriteHeader(http.StatusOK)
	})
}

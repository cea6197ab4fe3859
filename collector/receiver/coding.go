package receiver

import (
	"bytes"
	"cmp"
	"net/http"
	"strings"
)

// coding is how a body is packed.
type coding uint8

const (
	asSent    coding = iota
	inGzip           // RFC 1952
	inZstd           // RFC 8878, with windows as RFC 9659 wants them
	inZlib           // RFC 1950, which HTTP calls deflate
	inDeflate        // RFC 1951 alone, which some clients call deflate
	inSnappy         // Snappy's block format
	inFramed         // Snappy's framing format
	inBrotli         // RFC 7932
	numCodings
)

var codingNames = [numCodings]string{"identity", "gzip", "zstd", "zlib", "raw deflate", "snappy's block format", "snappy's framing format", "brotli"}

// Values of Content-Encoding, besides none.
const (
	codeIdentity = "identity"
	codeGzip     = "gzip"
	codeZstd     = "zstd"
	codeDeflate  = "deflate"
	codeSnappy   = "snappy"
	codeBrotli   = "br"
)

const supported = "supported are gzip, zstd, deflate, snappy, br and identity"

// A Packer is a Protocol whose clients pack bodies without saying so.
type Packer interface {
	// Packing returns the Content-Encoding of a request that names none and
	// whose body does not begin like something packed.
	Packing(h http.Header) string
}

// Header fields that name a coding.
const (
	contentEncoding = "Content-Encoding"
	grpcEncoding    = "Grpc-Encoding"
)

// declared returns what the field says, one of the code constants or "".
func declared(h http.Header, field string) (string, failure) {
	values := h[field]
	if len(values) == 0 {
		return "", failure{}
	}
	switch v := strings.ToLower(strings.TrimSpace(strings.Join(values, ","))); v {
	case "", codeIdentity, codeGzip, codeZstd, codeDeflate, codeSnappy, codeBrotli:
		return v, failure{}
	case "x-gzip":
		return codeGzip, failure{}
	case "zlib":
		return codeDeflate, failure{}
	case "x-snappy-framed":
		return codeSnappy, failure{}
	default:
		if len(v) > 50 {
			v = v[:50] + "…"
		}
		return "", closing(http.StatusUnsupportedMediaType, "%s %q is not supported; %s", field, v, supported)
	}
}

// Beginnings that no JSON text has, and no protocol buffer whose first field
// has a number below 5.
const (
	gzipMagic   = "\x1f\x8b"
	zstdMagic   = "\x28\xb5\x2f\xfd"
	framedMagic = "\xff\x06\x00\x00sNaPpY"
)

// headBytes returns how many bytes codingOf needs of a body that begins with
// first.
func headBytes(first byte) int {
	switch {
	case first == framedMagic[0]:
		return len(framedMagic)
	case first == zstdMagic[0] || first>>4 == 5:
		return len(zstdMagic)
	}
	return len(gzipMagic)
}

// codingOf tells how a body that begins with head is packed. declared is what
// its header says, usual what is meant if the header says nothing.
func codingOf(declared, usual string, head []byte) (coding, failure) {
	if declared != codeDeflate && declared != codeBrotli { // which may begin with anything
		switch {
		case bytes.HasPrefix(head, []byte(framedMagic)):
			return inFramed, failure{}
		case declared == codeSnappy: // in blocks, likewise
		case bytes.HasPrefix(head, []byte(gzipMagic)):
			return inGzip, failure{}
		case bytes.HasPrefix(head, []byte(zstdMagic)):
			return inZstd, failure{}
		}
	}
	switch cmp.Or(declared, usual) {
	case codeGzip:
		return 0, mislabelled(codeGzip, "1f 8b")
	case codeZstd:
		if isSkippable(head) {
			return inZstd, failure{}
		}
		return 0, mislabelled(codeZstd, "28 b5 2f fd")
	case codeDeflate:
		if isZlib(head) {
			return inZlib, failure{}
		}
		return inDeflate, failure{}
	case codeSnappy:
		return inSnappy, failure{}
	case codeBrotli:
		return inBrotli, failure{}
	}
	return asSent, failure{}
}

// isSkippable reports whether a body begins with a frame that zstd skips.
func isSkippable(head []byte) bool {
	return len(head) >= 4 && head[0]>>4 == 5 && head[1] == 0x2a && head[2] == 0x4d && head[3] == 0x18
}

// isZlib tells RFC 1950 from RFC 1951: as the latter its first byte would begin
// a stored block whose padding is not zero, which nobody writes.
func isZlib(head []byte) bool {
	return len(head) >= 2 && head[0]&0x0f == 8 && (int(head[0])<<8|int(head[1]))%31 == 0
}

func mislabelled(name, magic string) failure {
	return closing(http.StatusBadRequest, "Content-Encoding is %s, but the body is not: it does not start with %s; leave the header out or compress the body", name, magic)
}

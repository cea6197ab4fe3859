package normalize

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
)

// Bytes of the ids of traces and spans, by W3C's Trace Context.
const (
	traceIDSize = 16
	spanIDSize  = 8
)

// Texts of ids in base64 are padded, and so tell themselves from ids of other
// kinds.
var (
	idBase64    = base64.StdEncoding.Strict()
	idBase64URL = base64.URLEncoding.Strict()
)

// appendID appends the id of size bytes that text is in base64, or in hexadecimal
// with capital letters, as a JSON string of small hexadecimal letters. False says
// that text is another, which stays as it is.
func appendID(dst, text []byte, size int) ([]byte, bool) {
	var id [traceIDSize + 2]byte // the decoder asks for room for the padding
	switch len(text) {
	case hex.EncodedLen(size):
		if !hasCapital(text) {
			return dst, false
		}
		if _, err := hex.Decode(id[:], text); err != nil {
			return dst, false
		}
	case idBase64.EncodedLen(size):
		if text[len(text)-1] != '=' {
			return dst, false
		}
		encoding := idBase64
		if bytes.ContainsAny(text, "-_") {
			encoding = idBase64URL
		}
		if n, err := encoding.Decode(id[:], text); err != nil || n != size {
			return dst, false
		}
	default:
		return dst, false
	}
	dst = append(dst, '"')
	dst = hex.AppendEncode(dst, id[:size])
	return append(dst, '"'), true
}

func hasCapital(text []byte) bool {
	for _, c := range text {
		if 'A' <= c && c <= 'Z' {
			return true
		}
	}
	return false
}

// idSize is how many bytes the id has that the slot is for; 0: it is for another
// thing.
func idSize(k key) int {
	switch k {
	case keyTraceID:
		return traceIDSize
	case keySpanID:
		return spanIDSize
	}
	return 0
}

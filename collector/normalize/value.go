package normalize

import (
	"github.com/go-json-experiment/json/jsontext"

	"github.com/rollway/rollway/internal/jsonwalk"
)

// scalar reports whether values of the kind have no tokens within them.
func scalar(kind jsontext.Kind) bool {
	return kind != jsontext.KindBeginObject && kind != jsontext.KindBeginArray
}

// appendValue appends a valid JSON value without the white space between its
// tokens. dst may not become longer than limit, the value may not nest more
// than depth levels.
func appendValue(dst, v []byte, kind jsontext.Kind, limit, depth int) ([]byte, reason) {
	if !scalar(kind) {
		return appendCompact(dst, v, limit, depth)
	}
	if len(dst)+len(v) > limit {
		return dst, tooLarge
	}
	return append(dst, v...), ok
}

func appendCompact(dst, v []byte, limit, depth int) ([]byte, reason) {
	start, level := 0, 0
	for i := 0; i < len(v); i++ {
		switch v[i] {
		case '"':
			end, _ := jsonwalk.SkipString(v, i)
			i = end - 1
		case '{', '[':
			if level++; level > depth {
				return dst, tooDeep
			}
		case '}', ']':
			level--
		case ' ', '\n', '\r', '\t':
			if len(dst)+i-start > limit {
				return dst, tooLarge
			}
			dst = append(dst, v[start:i]...)
			for i+1 < len(v) && jsonwalk.IsSpace(v[i+1]) {
				i++
			}
			start = i + 1
		}
	}
	if len(dst)+len(v)-start > limit {
		return dst, tooLarge
	}
	return append(dst, v[start:]...), ok
}

package rollway

import "log/slog"

// zeroJSON is the format of JSON{}.
var zeroJSON = format{plain: true, maxLine: defaultMaxLine}

// AppendJSON appends v as a Logger with the format JSON{} writes it, whatever v
// is: valid JSON in UTF-8 without line breaks. It is for a [LineEncoder] and
// for code that exports attributes. A panic of v's methods becomes the string
// !PANIC, what cannot be encoded !ERROR, each with the reason.
func AppendJSON(dst []byte, v slog.Value) []byte {
	// The limit on groups that grow without end counts from here.
	if len(dst) == 0 {
		return zeroJSON.appendJSONValue(dst, v, 0)
	}
	return append(dst, zeroJSON.appendJSONValue(nil, v, 0)...)
}

package normalize

import "bytes"

// A key is a slot of the canonical line, in its order there, or tells what
// else to do with a member.
type key uint8

const (
	keyTime key = iota
	keyLevel
	keyMsg
	keyService
	keyLogger
	keySource
	keyTraceID
	keySpanID
	keyError
	numSlots

	keyAttrs = numSlots // an object there is merged into attrs
	keyOther = numSlots + 1
)

// slotNames is what stands before a slot's value in a line.
var slotNames = [numSlots]string{
	keyMsg:     `,"msg":`,
	keyService: `,"service":`,
	keyLogger:  `,"logger":`,
	keySource:  `,"source":`,
	keyTraceID: `,"trace_id":`,
	keySpanID:  `,"span_id":`,
	keyError:   `,"error":`,
}

// appendName appends the name that a slot has in a line, as JSON.
func (s Slot) appendName(dst []byte) []byte {
	switch s {
	case keyTime:
		return append(dst, `"time"`...)
	case keyLevel:
		return append(dst, `"level"`...)
	}
	return append(dst, slotNames[s][1:len(slotNames[s])-1]...) // between ',' and ':'
}

// lookup returns the key of a name, which is a JSON string.
func (n *Normalizer) lookup(raw []byte) key {
	name := raw[1 : len(raw)-1]
	if n.body.escapes && bytes.IndexByte(name, '\\') >= 0 {
		name = n.unquoted(raw)
	}
	return lookup(name)
}

// lookup returns the key of a name.
func lookup(name []byte) key {
	switch string(name) {
	case "time", "timestamp", "ts", "@timestamp":
		return keyTime
	case "level", "severity", "lvl":
		return keyLevel
	case "msg", "message", "log", "body":
		return keyMsg
	case "service", "app", "service.name":
		return keyService
	case "logger":
		return keyLogger
	case "source":
		return keySource
	case "trace_id", "traceId", "trace.id":
		return keyTraceID
	case "span_id", "spanId", "span.id":
		return keySpanID
	case "error":
		return keyError
	case "metadata", "attributes", "fields", "context", "attrs":
		return keyAttrs
	}
	return keyOther
}

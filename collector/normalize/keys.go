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

	keyAttrs  = numSlots     // an object there is merged into attrs
	keyFields = numSlots + 1 // the same, but for its message
	keyOther  = numSlots + 2 // those above it are in seconds
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

// String is the name that a slot has in a line; "" for what is no slot.
func (k key) String() string {
	switch {
	case k >= numSlots:
		return ""
	case k == keyTime:
		return "time"
	case k == keyLevel:
		return "level"
	}
	return slotNames[k][len(`,"`) : len(slotNames[k])-len(`":`)]
}

// scope tells where the members of an object are looked up.
type scope uint8

const (
	topLevel    scope = iota // by the tables
	belowFields              // by inFields
	belowAttrs               // not at all
)

// merges reports whether an object under the key is merged into attrs.
func merges(k key) bool { return k == keyAttrs || k == keyFields }

// below is the scope of such an object.
func below(k key) scope {
	if k == keyFields {
		return belowFields
	}
	return belowAttrs
}

func lookupBelow(in scope, raw []byte) key {
	if in == belowFields {
		return inFields(raw)
	}
	return keyOther
}

// lookupIn returns the key of a name, which is a JSON string, in a scope.
func (n *Normalizer) lookupIn(in scope, raw []byte) key {
	if in == topLevel {
		return n.lookup(raw)
	}
	return lookupBelow(in, raw)
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
	case "metadata", "attributes", "context", "attrs":
		return keyAttrs
	case "fields":
		return keyFields
	}
	return lookupSecond(name)
}

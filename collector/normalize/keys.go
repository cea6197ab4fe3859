package normalize

import (
	"bytes"
	"strings"
)

// A key is a slot of the canonical line, in its order there, or tells what else to do
// with a member.
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
	keyFields = numSlots + 1 // the same, except for its message
	keyOther  = numSlots + 2 // those above it are second names
)

// Second names of slots are what some libraries write instead. They count when the
// event is read to its end and has nothing under a first name, those of rank 3 when it
// has none of rank 2 either; of equal rank the one that comes first. What does not
// count is in attrs.
const (
	keyTrace key = keyOther + 1 + iota // objects of the Elastic Common Schema
	keySpan
	keyTime2
	keyInstant
	keyLevel2
	keyPythonLevel  // Python's, and structlog's
	keyMonologLevel // Monolog's
	keyNetLevel     // .NET's
	keySeverity     // a name, or a number of OpenTelemetry
	keyPriority     // a name, or a number of syslog
	keyMsg2
	keyMsgInFields // of Rust's tracing, in an object under fields
	keyShort       // GELF's message
	keyMsg3
	keyService2
	keyLogger2
	keyName     // a logger beside Python's level
	keyChannel  // a logger beside Monolog's level
	keyCategory // a logger beside .NET's level
	keyTarget   // a logger beside a message in fields
	keyTraceID2
	keySpanID2
	numKeys
)

// ofParts is the rank of objects of which only parts have a slot, see takeParts.
const ofParts = 4

// keys are the names that are read.
var keys = [numKeys]struct {
	names  string
	slot   key // of a second name, with its
	rank   uint8
	beside key // what the event must have for it to count; 0: nothing
}{
	keyTime:    {names: "time timestamp ts @timestamp"},
	keyLevel:   {names: "level severity lvl"},
	keyMsg:     {names: "msg message log body"},
	keyService: {names: "service app service.name"},
	keyLogger:  {names: "logger"},
	keySource:  {names: "source"},
	keyTraceID: {names: "trace_id traceId trace.id"},
	keySpanID:  {names: "span_id spanId span.id"},
	keyError:   {names: "error"},
	keyAttrs:   {names: "metadata attributes context attrs"},
	keyFields:  {names: "fields"},

	keyTrace:        {"trace", keyTraceID, ofParts, 0},
	keySpan:         {"span", keySpanID, ofParts, 0},
	keyTime2:        {"@t _time Time Timestamp asctime date datetime eventTime event_time time_iso8601 timeMillis __REALTIME_TIMESTAMP", keyTime, 2, 0},
	keyInstant:      {"instant", keyTime, 2, 0},
	keyLevel2:       {"@l @level LEVEL Level SeverityText detected_level log.level logLevel log_level loglevel severityText severity_text", keyLevel, 2, 0},
	keyPythonLevel:  {"levelname", keyLevel, 2, 0},
	keyMonologLevel: {"level_name", keyLevel, 2, 0},
	keyNetLevel:     {"LogLevel", keyLevel, 2, 0},
	keySeverity:     {"SEVERITY Severity SeverityNumber severityNumber severity_number", keyLevel, 2, 0},
	keyPriority:     {"PRIORITY", keyLevel, 2, 0},
	keyMsg2:         {"@m @message _msg MESSAGE Message RenderedMessage formattedMessage", keyMsg, 2, 0},
	keyMsgInFields:  {"", keyMsg, 2, 0},
	keyShort:        {"short_message", keyMsg, 2, 0},
	keyMsg3:         {"@mt MessageTemplate event", keyMsg, 3, 0},
	keyService2:     {"SYSLOG_IDENTIFIER serviceName service_name", keyService, 2, 0},
	keyLogger2:      {"@module SourceContext log.logger loggerName logger_name", keyLogger, 2, 0},
	keyName:         {"name", keyLogger, 3, keyPythonLevel},
	keyChannel:      {"channel", keyLogger, 3, keyMonologLevel},
	keyCategory:     {"Category", keyLogger, 3, keyNetLevel},
	keyTarget:       {"target", keyLogger, 3, keyMsgInFields},
	keyTraceID2:     {"@tr TraceID TraceId dd.trace_id otelTraceID traceID traceid", keyTraceID, 2, 0},
	keySpanID2:      {"@sp SpanID SpanId dd.span_id otelSpanID spanID spanid", keySpanID, 2, 0},
}

type nameOfKey struct {
	name string
	key  key
}

const keyTableSize = 512

// keyTable finds the names by a hash, with open addressing. Most other names meet a
// free place at once.
var keyTable = func() (table [keyTableSize]nameOfKey) {
	for k := range keys {
		for _, name := range strings.Fields(keys[k].names) {
			at := keyHash([]byte(name))
			for table[at].name != "" {
				at = (at + 1) % keyTableSize
			}
			table[at] = nameOfKey{name, key(k)}
		}
	}
	return table
}()

func keyHash(name []byte) uint {
	n := len(name)
	return (uint(n)*67 + uint(name[0])*19 + uint(name[n/2])*7 + uint(name[n-1])) % keyTableSize
}

// lookup returns the key of a name.
func lookup(name []byte) key {
	if len(name) == 0 {
		return keyOther
	}
	for at := keyHash(name); keyTable[at].name != ""; at = (at + 1) % keyTableSize {
		if keyTable[at].name == string(name) {
			return keyTable[at].key
		}
	}
	return keyOther
}

// slotNames is what comes before a slot's value in a line.
var slotNames = [numSlots]string{
	keyMsg:     `,"msg":`,
	keyService: `,"service":`,
	keyLogger:  `,"logger":`,
	keySource:  `,"source":`,
	keyTraceID: `,"trace_id":`,
	keySpanID:  `,"span_id":`,
	keyError:   `,"error":`,
}

// String is the name that a slot has in a line; "" for other keys.
func (k key) String() string {
	if k >= numSlots {
		return ""
	}
	name, _, _ := strings.Cut(keys[k].names, " ")
	return name
}

// scope tells where the members of an object are looked up.
type scope uint8

const (
	topLevel    scope = iota // in the table
	belowFields              // message alone
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

// lookupIn returns the key of a name, which is a JSON string, in a scope.
func (n *Normalizer) lookupIn(in scope, raw []byte) key {
	switch {
	case in == belowFields && string(raw) == `"message"`:
		return keyMsgInFields
	case in != topLevel:
		return keyOther
	}
	name := raw[1 : len(raw)-1]
	if n.body.escapes && bytes.IndexByte(name, '\\') >= 0 {
		name = n.unquoted(raw)
	}
	return lookup(name)
}

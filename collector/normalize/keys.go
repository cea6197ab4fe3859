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
	keyLine // Docker's, a text
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

// ofParts is the rank of objects that have a slot for parts only, see takeParts.
const ofParts = 4

// seconds tells of the keys above keyOther.
var seconds = [numKeys]struct {
	slot   key
	rank   uint8
	beside key // what the event must have for it to count; 0: nothing
}{
	keyTrace:        {keyTraceID, ofParts, 0},
	keySpan:         {keySpanID, ofParts, 0},
	keyTime2:        {keyTime, 2, 0},
	keyInstant:      {keyTime, 2, 0},
	keyLevel2:       {keyLevel, 2, 0},
	keyPythonLevel:  {keyLevel, 2, 0},
	keyMonologLevel: {keyLevel, 2, 0},
	keyNetLevel:     {keyLevel, 2, 0},
	keySeverity:     {keyLevel, 2, 0},
	keyPriority:     {keyLevel, 2, 0},
	keyMsg2:         {keyMsg, 2, 0},
	keyMsgInFields:  {keyMsg, 2, 0},
	keyShort:        {keyMsg, 2, 0},
	keyMsg3:         {keyMsg, 3, 0},
	keyLine:         {keyMsg, 3, 0},
	keyService2:     {keyService, 2, 0},
	keyLogger2:      {keyLogger, 2, 0},
	keyName:         {keyLogger, 3, keyPythonLevel},
	keyChannel:      {keyLogger, 3, keyMonologLevel},
	keyCategory:     {keyLogger, 3, keyNetLevel},
	keyTarget:       {keyLogger, 3, keyMsgInFields},
	keyTraceID2:     {keyTraceID, 2, 0},
	keySpanID2:      {keySpanID, 2, 0},
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
	case "@t", "_time", "Time", "Timestamp", "asctime", "date", "datetime", "eventTime", "event_time", "time_iso8601", "timeMillis", "__REALTIME_TIMESTAMP":
		return keyTime2
	case "instant":
		return keyInstant
	case "@l", "@level", "LEVEL", "Level", "SeverityText", "detected_level", "log.level", "logLevel", "log_level", "loglevel", "severityText", "severity_text":
		return keyLevel2
	case "levelname":
		return keyPythonLevel
	case "level_name":
		return keyMonologLevel
	case "LogLevel":
		return keyNetLevel
	case "SEVERITY", "Severity", "SeverityNumber", "severityNumber", "severity_number":
		return keySeverity
	case "PRIORITY":
		return keyPriority
	case "@m", "@message", "_msg", "MESSAGE", "Message", "RenderedMessage", "formattedMessage":
		return keyMsg2
	case "short_message":
		return keyShort
	case "@mt", "MessageTemplate", "event":
		return keyMsg3
	case "line":
		return keyLine
	case "SYSLOG_IDENTIFIER", "serviceName", "service_name":
		return keyService2
	case "@module", "SourceContext", "log.logger", "loggerName", "logger_name":
		return keyLogger2
	case "name":
		return keyName
	case "channel":
		return keyChannel
	case "Category":
		return keyCategory
	case "target":
		return keyTarget
	case "trace":
		return keyTrace
	case "span":
		return keySpan
	case "@tr", "TraceID", "TraceId", "dd.trace_id", "otelTraceID", "traceID", "traceid":
		return keyTraceID2
	case "@sp", "SpanID", "SpanId", "dd.span_id", "otelSpanID", "spanID", "spanid":
		return keySpanID2
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
	switch {
	case k >= numSlots:
		return ""
	case k == keyTime:
		return "time"
	case k == keyLevel:
		return "level"
	}
	return strings.Trim(slotNames[k], `,":`)
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

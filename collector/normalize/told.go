package normalize

import (
	"github.com/rollway/rollway/collector/stacktrace"
	"github.com/rollway/rollway/internal/jsonwalk"
)

// errorLevels is how deep an error with causes is: the line, the error, the list and a cause.
const errorLevels = 4

// appendTold appends the causes that the text of a stack tells of.
func (n *Normalizer) appendTold(dst []byte, stack jsonwalk.Span) []byte {
	if stack.Len() == 0 || len(n.attrs)+len(dst)+2*stack.Len() > n.limits.MaxEventBytes {
		return dst
	}
	raw := stack.Of(n.body.text)
	if raw[0] != '"' || !hasLines(raw) {
		return dst
	}
	return n.appendCausesOf(dst, n.textOf(raw))
}

func (n *Normalizer) appendCausesOf(dst, text []byte) []byte {
	if n.limits.MaxDepth < errorLevels {
		return dst
	}
	start := len(dst)
	dst = append(append(dst, roleKeys[roleCauses]...), '[')
	first, left := len(dst), maxCauses
	stacktrace.Causes(text, func(t stacktrace.Trace) {
		if left--; left >= 0 && len(t.Type)+len(t.Message) > 0 {
			dst = appendFound(append(dst, '{'), roleType, t.Type, jsonwalk.Span{})
			dst = appendFound(dst, roleMessage, t.Message, jsonwalk.Span{})
			dst = append(trimComma(dst), '}', ',')
		}
	})
	if len(dst) == first {
		return dst[:start]
	}
	return append(trimComma(dst), ']', ',')
}

// readTrace makes the error of an event that tells of none what a stack trace in its message
// tells: type, message and causes. The stack stays where it is.
func (n *Normalizer) readTrace() {
	ev := &n.ev
	if !n.body.escapes || ev.filled&(errorBit|1<<keyMsg) != 1<<keyMsg || n.limits.Text.Off {
		return
	}
	raw := ev.slots[keyMsg].Of(n.body.text)
	if raw[0] != '"' || !hasLines(raw) || len(n.attrs)+4*len(raw) > n.limits.MaxEventBytes || !n.roomFor(len(n.attrs)+4*len(raw)) {
		return
	}
	text, t := stacktrace.Find(n.textOf(raw))
	if !t.Traced || len(t.Type)+len(t.Message) == 0 {
		return
	}
	dst := appendFound(append(n.failure.value[:0], '{'), roleType, t.Type, jsonwalk.Span{})
	dst = appendFound(dst, roleMessage, t.Message, jsonwalk.Span{})
	n.failure.value = append(trimComma(n.appendCausesOf(dst, text)), '}')
	n.failure.inMessage = true
	ev.filled |= errorBit
}

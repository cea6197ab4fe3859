package normalize

import (
	"cmp"
	"time"

	"github.com/rollway/rollway/collector/textlog"
)

// Text says how messages are read.
type Text struct {
	Closed bool           // payloads stay text
	Apart  bool           // a line that only continues another one is an event itself
	Off    bool           // nothing is taken from the head of a line
	Zone   *time.Location // of times that name none; default UTC
}

// readText takes from the message what the client has not said: the time, the level, each
// alone; and of an access log the request.
func (n *Normalizer) readText() {
	const both = 1<<keyTime | 1<<keyLevel
	ev := &n.ev
	if ev.filled&both == both || ev.filled&(1<<keyMsg) == 0 || n.limits.Text.Off {
		return
	}
	raw := ev.slots[keyMsg].Of(n.body.text)
	if raw[0] != '"' || len(raw) < len(`"15:04:05 x"`) && raw[1] != '[' {
		return
	}
	line := n.unquoted(raw[:min(len(raw), maxPlain)])
	h, found := textlog.Parse(line, n.body.received, cmp.Or(n.limits.Text.Zone, time.UTC))
	if !found {
		return
	}
	if h.HasTime && ev.filled&(1<<keyTime) == 0 {
		n.setTime(h.Sec, h.Nsec)
	}
	if h.HasLevel && ev.filled&(1<<keyLevel) == 0 {
		n.setLevel(h.Level)
	}
	if h.Request > 0 {
		n.addRequest(line, h.Request)
	}
}

// addRequest adds the request of an access log to attrs, unless the event has a status
// already or no room for it.
func (n *Normalizer) addRequest(line []byte, at int) {
	if found, _ := n.names.find([]byte("status")); found >= 0 || n.names.len()+len(textlog.RequestNames) > n.limits.MaxFields ||
		len(n.attrs)+4*len(line) > n.limits.MaxEventBytes || !n.roomFor(len(n.attrs)+4*len(line)) {
		return
	}
	for i, value := range textlog.ParseRequest(line, at) {
		if value == nil {
			continue
		}
		name := textlog.RequestNames[i]
		n.attrs = append(append(n.attrs, '"'), name...)
		n.attrs = append(append(n.attrs, n.names.add([]byte(name))...), `":`...)
		n.attrs = append(textlog.AppendPart(n.attrs, i, value), ',')
	}
}

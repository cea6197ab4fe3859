package normalize

import (
	"cmp"
	"time"

	"github.com/rollway/rollway/collector/textlog"
	"github.com/rollway/rollway/internal/jsonline"
)

// Text says how the message of an event is read that came without a time or a level.
type Text struct {
	Off  bool           // it is not
	Zone *time.Location // of times that name none; default UTC
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

var requestNames = [...][]byte{
	[]byte("remote"), []byte("user"), []byte("method"), []byte("path"), []byte("query"), []byte("status"), []byte("bytes"),
	[]byte("referer"), []byte("user_agent"),
}

// addRequest adds the request of an access log to attrs, under the names that package
// httplog has, unless the event has a status already or no room for it.
func (n *Normalizer) addRequest(line []byte, at int) {
	if found, _ := n.names.find([]byte("status")); found >= 0 ||
		n.names.len()+len(requestNames) > n.limits.MaxFields || len(n.attrs)+4*len(line) > n.limits.MaxEventBytes || !n.roomFor(len(n.attrs)+2*len(line)) {
		return
	}
	r := textlog.ParseRequest(line, at)
	for i, text := range [...][]byte{r.Remote, r.User, r.Method, r.Path, r.Query, nil, nil, r.Referer, r.Agent} {
		number := [len(requestNames)]int64{5: r.Status, 6: r.Bytes}[i]
		name := requestNames[i]
		switch {
		case text != nil:
			n.beginAttr(name)
			n.attrs = jsonline.AppendStringBytes(n.attrs, text)
		case number > 0 || i == 6 && number == 0:
			n.beginAttr(name)
			n.attrs = jsonline.AppendInt(n.attrs, number)
		default:
			continue
		}
		n.attrs = append(n.attrs, ',')
	}
}

// beginAttr begins a member of attrs.
func (n *Normalizer) beginAttr(name []byte) {
	n.attrs = append(append(append(append(n.attrs, '"'), name...), n.names.add(name)...), `":`...)
}

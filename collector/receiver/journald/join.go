package journald

import (
	"bytes"
	"encoding/binary"

	"github.com/rollway/rollway/collector/receiver"
	"github.com/rollway/rollway/collector/textlog"
)

// maxWait is how many bytes of entries wait for the rest of the next one.
const maxWait = 8 << 10

// printed is an entry that is a line of what a service prints, in parts.
type printed struct {
	own                 []byte // fields that each entry has its own of
	before, text, after []byte // the message and the fields around it; a nil text: it is no such line
}

var streamID, ofItsOwn = []byte("_STREAM_ID="), []byte("__")

// printedIn reads a whole entry.
func printedIn(fields []byte) (p printed) {
	if !bytes.Contains(fields, streamID) { // as in most
		return p
	}
	ofStream, messages, own := false, 0, 0
	for rest := fields; len(rest) > 0; {
		f, _ := read(rest)
		at := len(fields) - len(rest)
		rest = rest[f.size:]
		switch string(f.name) {
		case "_STREAM_ID":
			ofStream = true
		case "MESSAGE":
			messages++
			p = printed{fields[:own], fields[own:at], f.value, rest}
		}
		if own == at && bytes.HasPrefix(f.name, ofItsOwn) {
			own = len(fields) - len(rest)
		}
	}
	if !ofStream || messages != 1 {
		return printed{}
	}
	return p
}

// isOf reports whether two lines are of one stream: all else but the message is the same.
func (p *printed) isOf(o *printed) bool {
	if len(p.before) > len(o.before) {
		p, o = o, p
	}
	n := len(p.before)
	return bytes.HasPrefix(o.before, p.before) && bytes.HasPrefix(p.after, o.before[n:]) && bytes.Equal(p.after[len(o.before)-n:], o.after)
}

// whole returns the length of the entry that data begins with, and of the line that ends it;
// 0: it has not come whole; -1: it does not begin with one.
func whole(data []byte) (n int) {
	for n < len(data) {
		f, err := read(data[n:])
		switch {
		case err != nil:
			return -1
		case f.size == 0 || f.size > uint64(len(data)-n):
			return 0
		}
		if n += int(f.size); f.name == nil {
			return n
		}
	}
	return 0
}

// join returns the fields of the entry that data begins with, of size bytes with the line that
// ends it. In its message are those of the entries after it that have arrived and only continue
// it. n is where the last of them ends; 0: the next one, which may do so, has not come whole.
func (s *session) join(c *receiver.Chunk, data []byte, size int) (fields []byte, n int) {
	fields, n = data[:size-1], size
	p, most := printedIn(fields), c.Norm.MostJoined()
	if most == 0 || len(bytes.TrimSpace(p.text)) == 0 {
		return fields, n
	}
	var joiner textlog.Joiner
	joiner.Next(p.text)
	all := append(s.joined[:0], p.text...)
	for range textlog.MaxJoined - 1 {
		more := whole(data[n:])
		if more == 0 && len(data) > n && n <= maxWait && c.Waits() {
			return nil, 0
		}
		if more <= 0 {
			break
		}
		next := printedIn(data[n : n+more-1])
		if next.text == nil || len(all)+len(next.text) >= most || !joiner.Next(next.text) || !p.isOf(&next) {
			break
		}
		all = joiner.Append(all, next.text)
		n += more
	}
	if n > size {
		end := len(all)
		all = append(append(append(all, p.own...), p.before...), "MESSAGE\n"...)
		all = append(binary.LittleEndian.AppendUint64(all, uint64(end)), all[:end]...)
		all = append(append(all, '\n'), p.after...)
		fields = all[end:]
	}
	if s.joined = all; cap(all) > textlog.KeepJoined {
		s.joined = nil
	}
	return fields, n
}

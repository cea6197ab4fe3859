package journald

import (
	"bytes"
	"encoding/binary"

	"github.com/rollway/rollway/collector/receiver"
	"github.com/rollway/rollway/collector/textlog"
)

const (
	keepJoined = 4 << 10 // bytes that a request keeps for joined entries
	maxWait    = 8 << 10 // bytes of entries that wait for the rest of the next one
)

var (
	streamID = []byte("_STREAM_ID=")
	ofAnOwn  = []byte("__") // beginning of fields that each entry has its own of
)

// printed returns the message of an entry that is a line of what a service prints, and the
// fields before and after it; a nil text: it is no such line.
func printed(fields []byte) (before, text, after []byte) {
	if !bytes.Contains(fields, streamID) { // as in most
		return nil, nil, nil
	}
	ofStream, messages := false, 0
	for rest := fields; len(rest) > 0; {
		f, _ := read(rest)
		at := len(fields) - len(rest)
		rest = rest[f.size:]
		switch string(f.name) {
		case "_STREAM_ID":
			ofStream = true
		case "MESSAGE":
			messages++
			before, text, after = fields[:at], f.value, rest
		}
	}
	if !ofStream || messages != 1 {
		return nil, nil, nil
	}
	return before, text, after
}

// shared takes the next field that the lines of a stream have in common off.
func shared(fields *[]byte) (f field) {
	for len(*fields) > 0 {
		f, _ = read(*fields)
		if *fields = (*fields)[f.size:]; !bytes.Equal(f.name, message) && !bytes.HasPrefix(f.name, ofAnOwn) {
			return f
		}
	}
	return field{}
}

// isOf reports whether two entries are of one stream.
func isOf(a, b []byte) bool {
	for {
		f, g := shared(&a), shared(&b)
		if !bytes.Equal(f.name, g.name) || !bytes.Equal(f.value, g.value) {
			return false
		}
		if f.name == nil {
			return true
		}
	}
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
	before, text, after := printed(fields)
	most := c.Norm.MostJoined()
	if most == 0 || len(bytes.TrimSpace(text)) == 0 {
		return fields, n
	}
	var joiner textlog.Joiner
	joiner.Next(text)
	all := append(s.joined[:0], text...)
	for range textlog.MaxJoined - 1 {
		more := whole(data[n:])
		if more == 0 && len(data) > n && n <= maxWait && c.Waits() {
			return nil, 0
		}
		if more <= 0 {
			break
		}
		next := data[n : n+more-1]
		_, text, _ := printed(next)
		if text == nil || len(all)+len(text) >= most || !joiner.Next(text) || !isOf(fields, next) {
			break
		}
		all = joiner.Append(all, text)
		n += more
	}
	if n > size {
		end := len(all)
		all = append(append(all, before...), "MESSAGE\n"...)
		all = append(binary.LittleEndian.AppendUint64(all, uint64(end)), all[:end]...)
		all = append(append(all, '\n'), after...)
		fields = all[end:]
	}
	if s.joined = all; cap(all) > keepJoined {
		s.joined = nil
	}
	return fields, n
}

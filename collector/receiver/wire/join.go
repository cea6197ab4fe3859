package wire

import (
	"bytes"
	"hash/maphash"
	"iter"
	"math/bits"

	"github.com/rollway/rollway/collector/normalize"
	"github.com/rollway/rollway/collector/pool"
	"github.com/rollway/rollway/collector/textlog"
	"github.com/rollway/rollway/internal/jsonline"
	"github.com/rollway/rollway/internal/jsonwalk"
)

// A Joiner puts together objects in a row that are lines of one stream: they have the same
// members with the same values, except their message, their time and their offset in a
// file. Those whose message only continues the one before, see textlog.Joiner, belong to its
// event: the object of its first line, with their messages after its own. What is in doubt
// begins an event.
//
// What Next gets stays as it is until its event is returned.
type Joiner struct {
	// Names are those of the message, as the function Names returns them: of a string at the
	// top of an object, or in a member event.
	Names [][]byte
	// Most is how many bytes of messages an event of several lines may have; 0: lines are
	// not joined. See normalize.Normalizer.MostJoined.
	Most int
	// Plain says that objects with a level are not joined.
	Plain bool
	// Count is how many objects made the event that was returned last.
	Count int

	event struct {
		object []byte        // its first; nil: there is none
		lines  int           // objects
		at     jsonwalk.Span // its message; empty: nothing belongs to it
		line   []byte        // of the first object
		text   []byte        // of all lines, if there are several

		compared bool
		common   uint64 // of object, once it is compared
	}
	joiner textlog.Joiner
	likely int    // where the value of a message began last
	first  []byte // scratch: the first line of the event, if it had escapes
	line   []byte // scratch: any other
	joined []byte // scratch: the event
}

// dockerSplit is how long the parts of a line are that most of Docker's drivers send without
// a mark.
const dockerSplit = 16 << 10

// Names returns names as a Joiner takes them.
func Names(names ...string) (list [][]byte) {
	for _, name := range names {
		list = append(list, []byte(`"`+name+`":`))
	}
	return list
}

// Each is the function of that name. It goes over events instead of objects.
func (j *Joiner) Each(text []byte) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		j.End() // of a text that was not read to its end, as after a panic
		for value, err := range Each(text) {
			var event []byte
			if err == nil {
				event = j.Next(value)
			} else {
				event = j.End()
			}
			if event != nil && !yield(event, nil) {
				return
			}
			if err != nil {
				j.Count = 1
				yield(value, err)
				return
			}
		}
		if event := j.End(); event != nil {
			yield(event, nil)
		}
	}
}

// InPlace joins the objects of a text. What they took up besides becomes white space, and
// lines stay where they are.
func (j *Joiner) InPlace(text []byte) {
	var region jsonwalk.Span // of the event
	put := func(event []byte) {
		if j.Count < 2 {
			return
		}
		all := region.Of(text)
		ends := bytes.Count(all, lineEnd) - bytes.Count(event, lineEnd)
		if len(event)+ends > len(all) {
			return
		}
		rest := all[copy(all, event):]
		for i := range rest {
			if rest[i] = ' '; i >= len(rest)-ends {
				rest[i] = '\n'
			}
		}
	}
	for value, err := range Each(text) {
		if err != nil {
			break
		}
		start := cap(text) - cap(value) // a value is a part of the text
		between := bytes.TrimSpace(text[region.End:start])
		if len(between) > 1 || len(between) == 1 && between[0] != ',' {
			put(j.End())
		}
		if event := j.Next(value); event != nil {
			put(event)
		}
		if region.End = start + len(value); j.Lines() == 1 {
			region.Start = start
		}
	}
	put(j.End())
}

var lineEnd = []byte("\n")

// Suits reports whether the first object of a text may be a line: it has a message, and no
// level.
func (j *Joiner) Suits(text []byte) bool {
	at := jsonwalk.SkipSpace(text, 0)
	if IsArray(text[at:]) {
		at = jsonwalk.SkipSpace(text, at+1)
	}
	if j.Most == 0 || !IsObject(text[at:]) {
		return false
	}
	check, found := jsonwalk.Checker{MaxDepth: maxNested}, false
	for w := check.Members(text, at); w.Next(); {
		if isLevel(w.RawName()) {
			return false
		}
		for _, name := range j.Names {
			found = found || bytes.HasPrefix(name, w.RawName())
		}
	}
	return found
}

// Next takes the next text, which should be an object. Unless it belongs to the event before,
// that event is returned; nil: there is none.
func (j *Joiner) Next(object []byte) (event []byte) {
	e, begun := &j.event, false
	at, line := j.message(object)
	if at.Len() > 0 && e.at.Len() > 0 && e.lines < textlog.MaxJoined && len(e.object)+len(e.text)+len(line) < j.Most {
		if begun = !j.joiner.Next(line); !begun && j.alike(object, at) {
			if e.lines == 1 {
				e.text = append(e.text[:0], e.line...)
			}
			e.text = j.joiner.Append(e.text, line)
			e.lines++
			return nil
		}
	}
	event = j.End()
	e.object, e.lines, e.at, e.line, e.text, e.compared = object, 1, at, line, e.text[:0], false
	if at.Len() > 0 {
		if !begun {
			j.joiner = textlog.Joiner{Split: dockerSplit}
			j.joiner.Next(line)
		}
		j.first, j.line = j.line, j.first
	}
	return event
}

// End returns the last event; nil: there is none.
func (j *Joiner) End() (event []byte) {
	e := &j.event
	event, j.Count = e.object, e.lines
	if e.lines > 1 {
		j.joined = append(j.joined[:0], event[:e.at.Start]...)
		j.joined = jsonline.AppendStringBytes(j.joined, e.text)
		j.joined = append(j.joined, event[e.at.End:]...)
		event = j.joined
	}
	e.object, e.lines, e.at, e.line = nil, 0, jsonwalk.Span{}, nil
	return event
}

// Open reports whether more may belong to the last event.
func (j *Joiner) Open() bool { return j.event.at.Len() > 0 }

// Lines is how many objects the last event has so far.
func (j *Joiner) Lines() int { return j.event.lines }

// Memory is the scratch memory and some more, for package pool.
func (j *Joiner) Memory(more []byte) pool.Memory {
	return pool.Memory{more, j.first, j.line, j.event.text, j.joined}
}

// Shrink gives up scratch memory that is larger than a connection is worth. Next comes first
// again.
func (j *Joiner) Shrink() {
	for _, b := range []*[]byte{&j.first, &j.line, &j.event.text, &j.joined} {
		if cap(*b) > textlog.KeepJoined {
			*b = nil
		}
	}
}

// message finds the message of an object, and its text, if it may be a line of a stream.
func (j *Joiner) message(object []byte) (at jsonwalk.Span, line []byte) {
	if len(object) >= j.Most { // also if that is 0
		return at, nil
	}
	i := -1
	for _, name := range j.Names {
		if from := j.likely - len(name); from >= 0 && j.likely < len(object) && bytes.Equal(object[from:j.likely], name) {
			i = stringAt(object, j.likely)
			break
		}
	}
	for n := 0; i < 0 && n < len(j.Names); n++ {
		if from := bytes.Index(object, j.Names[n]); from >= 0 {
			j.likely = from + len(j.Names[n])
			i = stringAt(object, j.likely)
		}
	}
	if i < 0 {
		return at, nil
	}
	end := jsonwalk.CheckString(object, i)
	if end < 0 {
		return at, nil
	}
	line, j.line = jsonwalk.Text(object[i:end], j.line)
	if len(bytes.TrimSpace(line)) == 0 {
		return at, nil
	}
	return jsonwalk.Span{Start: i, End: end}, line
}

// stringAt returns where a string begins after an offset, or -1.
func stringAt(object []byte, i int) int {
	if i = jsonwalk.SkipSpace(object, i); i < len(object) && object[i] == '"' {
		return i
	}
	return -1
}

// alike reports whether an object with a message differs from that of the event only as
// lines of one stream do.
func (j *Joiner) alike(object []byte, at jsonwalk.Span) bool {
	e := &j.event
	if !e.compared {
		e.compared, e.common = true, j.common(e.object, e.at)
	}
	return e.common != 0 && e.common == j.common(object, at)
}

// common returns a hash of what an object has in common with others of its stream, in any
// order; 0: it cannot be a line.
func (j *Joiner) common(object []byte, at jsonwalk.Span) uint64 {
	if !IsWholeObject(object) {
		return 0
	}
	h := hasher{message: &object[at.Start], plain: j.Plain}
	sum := h.members(object[jsonwalk.SkipSpace(object, 0):], 0, true)
	if !h.found || h.level {
		return 0
	}
	return sum
}

// hasher hashes an object.
type hasher struct {
	message *byte // where it begins
	plain   bool
	found   bool // the message is where one is
	level   bool // there is one, and plain is set
}

// maxDepth is how deep objects are whose members are hashed one by one.
const maxDepth = 2

// Hashes of an object without members, and of values that each line has its own of.
const anyObject, anyMessage, anyOwn = 1, 2, 3

var seed = maphash.MakeSeed()

// members returns the hash of an object. The message may be here or not.
func (h *hasher) members(object []byte, depth int, here bool) uint64 {
	sum := uint64(anyObject)
	for w := Members(object); w.Next(); {
		name, value, hash := w.RawName(), w.RawValue(), uint64(anyOwn)
		switch {
		case &value[0] == h.message:
			h.found, hash = here, anyMessage
		case IsObject(value) && depth < maxDepth:
			hash = h.members(value, depth+1, depth == 0 && w.Is("event"))
		case IsObject(value) || IsArray(value) || !IsOwn(name[1:len(name)-1]):
			hash = Hash(value)
		}
		h.level = h.level || h.plain && depth == 0 && isLevel(name)
		sum += HashMember(name, hash)
	}
	return sum
}

// Hash returns a hash of b, another one in each process.
func Hash(b []byte) uint64 { return maphash.Bytes(seed, b) }

// HashMember returns the hash of a member whose value has this hash. The sum of those of an
// object's members is one that does not depend on their order.
func HashMember(name []byte, value uint64) uint64 {
	high, low := bits.Mul64(^Hash(name), value) // a name and its value must not be exchangeable
	return high ^ low
}

// isLevel reports whether a member, whose name has its quotes, is the level of an event.
func isLevel(name []byte) bool {
	slot, _ := (*normalize.Keys)(nil).ReadAs(string(name[1 : len(name)-1]))
	return slot == "level"
}

// IsOwn reports whether a member is one that each line of a stream has its own of, besides
// its message.
func IsOwn(name []byte) bool {
	switch string(name) {
	case "time", "timestamp", "@timestamp", "date", "offset":
		return true
	}
	return false
}

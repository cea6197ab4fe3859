package receiver

import "github.com/rollway/rollway/collector/receiver/wire"

// Joined is a wire.Joiner of a Session, for objects in frames.
type Joined struct {
	wire.Joiner
	// Add adds an event.
	Add func(c *Chunk, event []byte)

	left int // bytes of the chunk from the first frame of the last event on
}

// Begin begins a chunk.
func (j *Joined) Begin(c *Chunk) { j.Most = c.Norm.MostJoined() }

// Take takes what should be an object, whose frame begins left bytes before the end of the
// chunk. It adds the events that nothing more can belong to.
func (j *Joined) Take(c *Chunk, object []byte, left int) {
	if event := j.Next(object); event != nil {
		j.Add(c, event)
	}
	if j.Lines() == 1 {
		j.left = left
	}
	if !j.Open() {
		j.Flush(c)
	}
}

// Flush adds the last event.
func (j *Joined) Flush(c *Chunk) {
	if event := j.End(); event != nil {
		j.Add(c, event)
	}
	j.Shrink()
}

// Hold is Chunk.Hold for the last event, which is forgotten then, or else added. It returns
// how many bytes of the chunk Decode is to leave.
func (j *Joined) Hold(c *Chunk) int {
	if j.Open() && !c.full && c.Hold(j.left) {
		j.End()
		j.Shrink()
		return j.left
	}
	j.Flush(c)
	return 0
}

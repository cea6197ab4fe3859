package relay

// A choice decides between buffers and splice(2), for one direction between plain
// sockets. Splice saves the copy, but its calls cost more. So a direction begins
// with buffers, splices once reads fill them, and goes back to buffers when splice
// moves little at a time.
type choice struct {
	full   int    // reads in a row that filled the buffer
	rounds int    // of splice since mark was set
	mark   uint64 // pump.bytes before these rounds
	never  bool   // the kernel cannot splice these sockets
}

const (
	fullReads  = 4        // in a row that fill the buffer, after which the direction splices
	bulkRounds = 16       // of splice, over which the average is taken
	bulkLeast  = 32 << 10 // bytes a round on average, below which the direction goes back to buffers
)

// isBulk reports whether splice is to take over, after a round that moved n bytes
// through a buffer with room for most.
func (p *pump) isBulk(n, most int) bool {
	c := &p.choice
	if n < most || c.never || !p.spliceable() {
		c.full = 0
		return false
	}
	c.full++
	return c.full >= fullReads
}

// startBulk begins to splice.
func (p *pump) startBulk() {
	p.lowWater(false)
	p.choice = choice{mark: p.bytes.Load()}
}

// staysBulk reports whether splice is to go on after a round.
func (p *pump) staysBulk() bool {
	c := &p.choice
	if c.rounds++; c.rounds < bulkRounds {
		return true
	}
	moved := p.bytes.Load() - c.mark
	c.rounds, c.mark = 0, c.mark+moved
	return moved >= bulkRounds*bulkLeast
}

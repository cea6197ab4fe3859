package columns

// Find calls f with each path of a block whose lines have size bytes, until f returns true,
// and reports whether it did. A path is the keys that lead to a value, as they are in the
// lines, each ended by a byte 00. The path of a line that is stored whole is empty. any
// reports whether a value with the path matches: it calls match with the text of values as
// they are in the lines, of equal ones perhaps once only. Find reads the columns that any is
// called for, and no others. It returns true for a block without columns, or with damage:
// the lines may have anything.
func (b *Block) Find(block []byte, size int, f func(path string, any func(match func(value []byte) bool) bool) bool) bool {
	if b.open(block, size) != nil {
		return true
	}
	for i := range b.columns {
		c := &b.columns[i]
		if f(b.paths[i], func(match func([]byte) bool) bool {
			if c.ends == nil && !b.read(c) {
				return true
			}
			for k := range c.ends {
				if match(c.string(k)) {
					return true
				}
			}
			return false
		}) {
			return true
		}
	}
	return b.bad
}

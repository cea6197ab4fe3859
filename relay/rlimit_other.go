//go:build !unix

package relay

// descriptorLimit is how many descriptors the process may have; negative: any
// number.
func descriptorLimit() int { return -1 }

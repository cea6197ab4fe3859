//go:build !race

package receive

// poison does something under the race detector only.
func (w *work) poison() {}

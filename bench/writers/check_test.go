//go:build !race

// Without the race detector: phuslu/log's AsyncWriter sets itself up at its
// first Write without a lock, which the detector reports.

package writers

import "testing"

func TestNoWriterTearsRepeatsOrReorders(t *testing.T) {
	if err := Check(5_000); err != nil {
		t.Error(err)
	}
}

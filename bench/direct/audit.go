package direct

import (
	"fmt"

	"github.com/rollway/rollway/bench/internal/lines"
)

// newAudit returns one that takes the padding of direct I/O away.
func newAudit(producers int, parse lines.Parse) *lines.Audit {
	a := lines.NewAudit(producers, parse)
	a.Padded = true
	return a
}

// outcome compares what was found with what was accepted, as figures of a sample:
// taken[p][i] is whether the logger took record i of producer p. It is an error if
// a logger that is not lossy has lost, torn or repeated a record, or changed the
// order of a producer's, or if a record was refused and found.
func outcome(a *lines.Audit, taken [][]bool, size int, lossy bool) (map[string]float64, error) {
	accepted, lost, unasked := 0, 0, 0
	for p, records := range taken {
		for i, took := range records {
			switch found := a.Has(p, i); {
			case took && !found:
				accepted++
				lost++
			case took:
				accepted++
			case found:
				unasked++
			}
		}
	}
	if broken := lost + a.Torn + a.Repeated + a.Reordered; !lossy && broken > 0 || unasked > 0 || a.Found != accepted-lost {
		return nil, fmt.Errorf("accepted %d records, found %d, lost %d, torn %d, repeated %d, out of order %d, refused and found %d",
			accepted, a.Found, lost, a.Torn, a.Repeated, a.Reordered, unasked)
	}
	extra := map[string]float64{
		"accepted": float64(accepted), "lost": float64(lost), "torn": float64(a.Torn),
		"repeated": float64(a.Repeated), "reordered": float64(a.Reordered),
		"nul_bytes": float64(a.NULs), "padding_bytes": float64(a.Padding),
	}
	if payload := accepted * size; payload > 0 {
		extra["file_per_payload"] = float64(a.Bytes) / float64(payload)
	}
	return extra, nil
}

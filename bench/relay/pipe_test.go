package relay

import (
	"fmt"
	"testing"
)

// TestReadsAsPublished compares the in-memory tests with the counts that the
// original printed for every size of buffer.
func TestReadsAsPublished(t *testing.T) {
	r := &rig{dir: t.TempDir()}
	r.cert, r.key, r.both = r.dir+"/cert", r.dir+"/key", r.dir+"/both"
	if err := r.certify(); err != nil {
		t.Fatal(err)
	}
	want := map[string]float64{pipeA: 322, pipeB: 1281, pipeBurst: 1281, pipeMTU: 7184, pipeMedia: 322, pipeDown: 10_001, pipeUp: 64}
	seen := 0
	for _, p := range pipeTransfers(Settings{Short: true}) {
		for _, kib := range pooled {
			t.Run(fmt.Sprintf("%s, %s, %d KiB", p.name, p.wrap, kib), func(t *testing.T) {
				s, err := p.take(r, job{Pump: pumpPool, Size: kib << 10, Cert: r.cert, Key: r.key})
				if err != nil {
					t.Fatal(err)
				}
				if s.Ops != p.length || s.NsPerOp <= 0 {
					t.Errorf("%d bytes at %v ns", s.Ops, s.NsPerOp)
				}
				if n, ok := want[p.name]; ok && p.wrap != wrapTLS {
					seen++
					if s.Extra["reads"] != n {
						t.Errorf("%v reads, the original had %v", s.Extra["reads"], n)
					}
				}
			})
		}
	}
	if seen != len(want)*len(pooled) {
		t.Errorf("%d counts were compared, not %d", seen, len(want)*len(pooled))
	}
}

func TestPipesInMemory(t *testing.T) {
	for _, name := range []string{pumpSplice, pumpPool, pumpStack} {
		t.Run(name, func(t *testing.T) {
			p, err := pumpOf(name, 4<<10)
			if err != nil {
				t.Fatal(err)
			}
			m := pipes{pump: p}
			for _, n := range []int{2, 5} {
				if err := m.grow(n); err != nil || len(m.idle) != 2*n {
					t.Fatalf("%d ends of %d relays: %v", len(m.idle), n, err)
				}
			}
			for _, c := range m.idle {
				c.Close()
			}
			if err := m.burst(3); err != nil {
				t.Error(err)
			}
		})
	}
	if _, err := pumpOf("else", 1); err == nil {
		t.Error("a pump of no kind was made")
	}
}

func TestSpawnHoldsGoroutines(t *testing.T) {
	for _, name := range []string{pumpPool, pumpStack} {
		var p pipes
		for _, n := range []int{3, 7} {
			if err := p.spawn(n, name, 4<<10); err != nil || len(p.idle) != n {
				t.Errorf("%s: %d goroutines, want %d: %v", name, len(p.idle), n, err)
			}
		}
		close(p.free)
		p.held.Wait()
	}
}

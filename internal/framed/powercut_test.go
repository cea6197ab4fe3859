package framed

import (
	"bytes"
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

var (
	seedFlag = flag.Uint64("seed", 0, "replay the random run with this seed")
	runsFlag = flag.Int("runs", 100, "how many random runs")
)

// seeded returns the source of a random run, and says how to repeat it if it
// fails.
func seeded(t *testing.T) *rand.Rand {
	seed := *seedFlag
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("repeat with: go test ./internal/framed -run '^%s$' -args -seed %d", t.Name(), seed)
		}
	})
	return rand.New(rand.NewPCG(seed, 1))
}

// platter is a disk that loses power: of what was written since the last sync,
// each block of 512 bytes has reached it or has not.
type platter struct {
	now, durable []byte
}

func (p *platter) write(b []byte, at int64) { copy(p.now[at:], b) }
func (p *platter) sync()                    { p.durable = bytes.Clone(p.now) }

func (p *platter) cut(rnd *rand.Rand) {
	keep := rnd.Float64() // as many blocks: most cuts are not half and half
	for at := 0; at < len(p.now); at += MinBlock {
		if rnd.Float64() > keep {
			copy(p.now[at:at+MinBlock], p.durable[at:])
		}
	}
	p.sync()
}

// One file is begun again and again, with records of the same lengths in
// batches of the same lengths, and the power fails at any point, several
// unsynced flushes deep. What was synced is there, to the record; nothing else
// is delivered but what was written since the file was begun; what is missing
// is counted.
func TestPowerCuts(t *testing.T) {
	rnd := seeded(t)
	for range *runsFlag {
		p := &platter{now: make([]byte, 256<<10)}
		p.sync()
		block := MinBlock << rnd.IntN(4)
		shape := rnd.Uint64()
		for generation := range uint64(1 + rnd.IntN(6)) {
			powerCut(t, rnd, p, block, shape, generation+1)
		}
	}
}

func powerCut(t *testing.T, rnd *rand.Rand, p *platter, block int, shape, generation uint64) {
	seg, err := NewSegment(block, generation)
	if err != nil {
		t.Fatal(err)
	}
	head := make([]byte, SegmentHeaderSize)
	seg.PutHeader(head)
	p.write(head, 0)
	p.sync()
	numbers, same := NewNumbers(), rand.New(rand.NewPCG(shape, 2))
	var written []string
	synced := 0
	for range rnd.IntN(30) {
		records := sameLengths(same, generation, len(written), 12)
		number := numbers.Next()
		buf, used := fill(number, records)
		if roundUp(seg.Next+int64(used), block) > int64(len(p.now)) {
			break
		}
		at := seg.Next
		p.write(seg.Seal(buf, used, len(records), number), at)
		written = append(written, records...)
		if rnd.IntN(3) == 0 {
			p.sync()
			synced = len(written)
		}
	}
	p.cut(rnd)
	got := mustRead(t, p.now)
	what := fmt.Sprintf("generation %d, %d written, %d synced", generation, len(written), synced)
	if len(got.records) < synced {
		t.Fatalf("%s: %d delivered, %v", what, len(got.records), got.findings)
	}
	equal(t, got.records[:synced], written[:synced])
	subsequence(t, what, got.records[synced:], written[synced:])
	if got.Generation != generation || len(got.records)+int(got.Lost) > len(written) && !anyEstimated(got.findings) {
		t.Fatalf("%s: %d delivered, %+v, %v", what, len(got.records), got.Summary, got.findings)
	}
}

func anyEstimated(all []Finding) bool {
	for _, f := range all {
		if f.Estimated {
			return true
		}
	}
	return false
}

// sameLengths returns at most so many records that differ by generation, in
// number and lengths that do not.
func sameLengths(same *rand.Rand, generation uint64, first, most int) []string {
	records := make([]string, 1+same.IntN(most))
	for i := range records {
		records[i] = numbered(generation, first+i, same.IntN(300))
	}
	return records
}

// numbered is a record that says which one it is, length bytes and a little
// more.
func numbered(generation uint64, n, length int) string {
	name := fmt.Sprintf("%04d-%08d ", generation, n)
	return name + string(bytes.Repeat([]byte(name), length/len(name)+1)[:length])
}

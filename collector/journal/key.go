package journal

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"
	"sort"
	"time"
	"unicode/utf8"

	"github.com/rollway/rollway/internal/recordlog"
)

// MaxKeyBytes is the greatest length of an idempotency key with its sender's name.
const MaxKeyBytes = 511

// ErrKeyReused is what AppendKeyed's error wraps when the key is remembered with another
// number of events: it belongs to another batch.
var ErrKeyReused = errors.New("idempotency key of another batch")

// A Receipt is where a batch is stored.
type Receipt struct {
	First     uint64 // offset of the first record; the others follow it
	Records   int
	Duplicate bool // stored by an earlier AppendKeyed of the key
}

// keyHash is the first half of a key's SHA-256.
type keyHash [16]byte

func hashKey(key string) keyHash {
	sum := sha256.Sum256([]byte(key))
	return keyHash(sum[:16])
}

// keyed is what is remembered of a batch with a key.
type keyed struct {
	hash    keyHash
	first   uint64
	at      int64 // unix nanoseconds of the append
	records uint32
	events  uint32 // that the records are of
}

// keyTable remembers the newest keys in the order of their batches; guarded by Journal.mu.
type keyTable struct {
	limit int
	age   int64              // nanoseconds
	ring  []keyed            // from head on, round the end
	head  int                // index of the oldest
	n     int                // remembered
	gone  uint64             // forgotten since Open: the oldest one's number
	where map[keyHash]uint64 // numbers

	pending map[keyHash]chan struct{} // being appended; closed and removed afterwards
}

func (t *keyTable) init(limit int, age time.Duration) {
	t.limit, t.age = limit, int64(age)
	t.where, t.pending = make(map[keyHash]uint64), make(map[keyHash]chan struct{})
}

// reserve makes room for n keys in an empty table.
func (t *keyTable) reserve(n int) {
	n = min(n, t.limit)
	t.ring, t.where = make([]keyed, n), make(map[keyHash]uint64, n)
}

// at returns the i-th oldest key.
func (t *keyTable) at(i int) *keyed { return &t.ring[(t.head+i)%len(t.ring)] }

func (t *keyTable) find(hash keyHash, now int64) (keyed, bool) {
	t.expire(now)
	number, ok := t.where[hash]
	if !ok {
		return keyed{}, false
	}
	return *t.at(int(number - t.gone)), true
}

// add remembers k, which is newer than all others.
func (t *keyTable) add(k keyed) {
	if t.n >= t.limit {
		t.forget()
	}
	if t.n == len(t.ring) {
		grown := make([]keyed, min(max(2*t.n, 64), t.limit))
		for i := range t.n {
			grown[i] = *t.at(i)
		}
		t.ring, t.head = grown, 0
	}
	t.n++
	*t.at(t.n - 1) = k
	t.where[k.hash] = t.gone + uint64(t.n-1)
}

func (t *keyTable) expire(now int64) {
	for t.n > 0 && now-t.at(0).at > t.age {
		t.forget()
	}
}

func (t *keyTable) forget() {
	if hash := t.at(0).hash; t.where[hash] == t.gone {
		delete(t.where, hash)
	}
	t.head = (t.head + 1) % len(t.ring)
	t.n--
	t.gone++
}

// between returns the keys of the offsets [first, end).
func (t *keyTable) between(first, end uint64) []keyed {
	from := sort.Search(t.n, func(i int) bool { return t.at(i).first >= first })
	var out []keyed
	for i := from; i < t.n && t.at(i).first < end; i++ {
		out = append(out, *t.at(i))
	}
	return out
}

// keyTime is the clock of keys: the wall clock's time when the journal was opened, and from
// then on a clock that nobody sets.
func (j *Journal) keyTime() int64 { return j.opened.Add(time.Since(j.opened)).UnixNano() }

// AppendKeyed is Append for a batch that its sender may send again. While the key is
// remembered (Options.MaxKeys, Options.KeyAge), also after a restart, the batch is stored
// once, and later ones get the receipt of the first, even if more or fewer of the same
// events became records. One that comes while the first is being stored waits for it. The
// key of a batch that was not stored is forgotten. A batch with another number of events
// fails with [ErrKeyReused]. A batch of events without a record is not stored, and gets an
// empty receipt unless its key is remembered. An empty key does not count.
func (j *Journal) AppendKeyed(ctx context.Context, key string, b Batch) (Receipt, error) {
	if key == "" {
		first, err := j.Append(ctx, b)
		return Receipt{First: first, Records: b.Records}, err
	}
	switch {
	case len(key) > MaxKeyBytes:
		return Receipt{}, fmt.Errorf("append to journal: idempotency key has %d bytes; it may have %d", len(key), MaxKeyBytes)
	case !utf8.ValidString(key):
		return Receipt{}, errors.New("append to journal: idempotency key is not UTF-8")
	}
	recordless := b.Events > 0 && b.Records == 0 && len(b.Lines)+len(b.Before) == 0
	if err := b.check(); err != nil && !recordless {
		return Receipt{}, err
	}
	hash := hashKey(key)
	for {
		j.mu.Lock()
		if k, ok := j.keys.find(hash, j.keyTime()); ok {
			defer j.mu.Unlock()
			return j.repeatLocked(k, &b)
		}
		before := j.keys.pending[hash]
		if before == nil && !recordless {
			break
		}
		j.mu.Unlock()
		if before == nil {
			return Receipt{}, nil
		}
		select {
		case <-before:
		case <-ctx.Done():
			return Receipt{}, fmt.Errorf("append to journal: wait for the same batch: %w", ctx.Err())
		}
	}
	over := make(chan struct{})
	j.keys.pending[hash] = over
	j.mu.Unlock()
	defer func() {
		j.mu.Lock()
		delete(j.keys.pending, hash)
		j.mu.Unlock()
		close(over)
	}()
	first, err := j.append(ctx, b, &hash)
	return Receipt{First: first, Records: b.Records}, err
}

// repeatLocked answers a batch whose key is remembered as k. It releases mu while it waits
// for the disk.
func (j *Journal) repeatLocked(k keyed, b *Batch) (Receipt, error) {
	if int(k.events) != b.events() {
		return Receipt{}, fmt.Errorf("append to journal: %w: that one has %d events, this one %d", ErrKeyReused, k.events, b.events())
	}
	j.counters.Duplicates++
	j.counters.DuplicateRecords += uint64(b.Records)
	r := Receipt{First: k.first, Records: int(k.records), Duplicate: true}
	if !b.Synced || j.lost != nil {
		return r, j.lost
	}
	// Not only in syncer.dirty, which a segment leaves when its fsync fails.
	i := sort.Search(len(j.segs), func(i int) bool { return j.segs[i].first > k.first })
	if i == 0 || k.first >= j.segs[i-1].end { // deleted
		return r, nil
	}
	w := j.waiterLocked()
	err := j.syncToLocked(w, j.segs[i-1], k.first+uint64(k.records))
	j.releaseLocked(w)
	return r, err
}

// Frames have the keys of their batches. A sealed segment has a section of the keys that
// were remembered at that time, so that Open need not read its frames. Both have the same
// entries. docs/FORMAT.md has the same table.
//
//	Entry of a key, 40 bytes, in the order of offsets
//	       0    16  first half of the key's SHA-256
//	      16     8  offset of the key's first record
//	      24     8  time of the append
//	      32     4  number of records stored under the key, also in the next frames
//	      36     4  number of events that they are of
const keyEntrySize = 40

func (k *keyed) append(dst []byte) []byte {
	dst = append(dst, k.hash[:]...)
	dst = binary.LittleEndian.AppendUint64(dst, k.first)
	dst = binary.LittleEndian.AppendUint64(dst, uint64(k.at))
	dst = binary.LittleEndian.AppendUint32(dst, k.records)
	return binary.LittleEndian.AppendUint32(dst, k.events)
}

// parseKey reads the entry that b begins with.
func parseKey(b []byte) keyed {
	return keyed{
		hash: keyHash(b[:16]), first: binary.LittleEndian.Uint64(b[16:]), at: int64(binary.LittleEndian.Uint64(b[24:])),
		records: binary.LittleEndian.Uint32(b[32:]), events: binary.LittleEndian.Uint32(b[36:]),
	}
}

// parseKeys appends the keys of frame h, with its checked body, to dst. It stops at what
// makes no sense.
func parseKeys(dst []keyed, h *recordlog.Frame, body []byte) []keyed {
	least := h.First
	for b := body[:h.KeysLen]; len(b) >= keyEntrySize; b = b[keyEntrySize:] {
		k := parseKey(b)
		whole := k.first+uint64(k.records) <= h.End() || k.first == h.First // or continues in the next frames
		if k.first < least || k.first >= h.End() || k.records == 0 || !whole {
			break
		}
		least = k.first + 1
		dst = append(dst, k)
	}
	return dst
}

// recoverKeys fills j.keys from the segments that were scanned and the key sections of the
// others, the newest first until there are enough.
func (j *Journal) recoverKeys() {
	scanned := j.scannedKeys
	j.scannedKeys = nil
	now := j.keyTime()
	var found [][]keyed
	n := 0
	for i := len(j.segs) - 1; i >= 0 && n < j.o.MaxKeys; i-- {
		s := j.segs[i]
		keys, ok := scanned[s.first]
		if !ok && s.sealed && now-s.written.UnixNano() > int64(j.o.KeyAge) {
			break
		}
		if !ok && s.sealed && !s.keyless {
			var err error
			if keys, err = j.keysOf(s); err != nil {
				j.find(Finding{Kind: recordlog.Damaged, File: segmentName(s.first, extSealed), Detail: "its keys are forgotten: " + err.Error()})
			}
		}
		if len(keys) == 0 {
			continue
		}
		if now-keys[len(keys)-1].at > int64(j.o.KeyAge) {
			break // and so are those before
		}
		found, n = append(found, keys), n+len(keys)
	}
	j.keys.reserve(n)
	for _, keys := range slices.Backward(found) {
		for _, k := range keys {
			k.at = min(k.at, now) // the clock may have been set back
			j.keys.add(k)
		}
	}
}

// keysOf returns the keys of a sealed segment from their section, or from its frames if
// that is damaged or missing.
func (j *Journal) keysOf(s *segment) ([]keyed, error) {
	path := j.path(s.first, extSealed)
	f, err := j.fs.OpenFile(path, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close() // only read from
	size, err := f.Size()
	if err != nil {
		return nil, err
	}
	if foot, err := recordlog.ReadFooter(f, path, size); err == nil {
		keys, err := readKeys(f, foot)
		if err == nil {
			return keys, nil
		}
		j.find(Finding{Kind: recordlog.Damaged, File: segmentName(s.first, extSealed), Detail: "its frames are read for keys: " + err.Error()})
	}
	sc, err := scan(f, path, candidate{first: s.first, ext: extSealed, size: size}, s.end, j.o.MaxKeys)
	sc.forgetDamaged()
	j.recovery.Scanned += size
	return sc.keys, err
}

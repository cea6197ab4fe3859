package journal

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
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

// keyHash is the beginning of a key's SHA-256.
type keyHash [12]byte

func hashKey(key string) keyHash {
	sum := sha256.Sum256([]byte(key))
	return keyHash(sum[:])
}

// keyOwner is the beginning of the SHA-256 of the name of whose keys count together.
type keyOwner [4]byte

func hashOwner(name string) keyOwner {
	sum := sha256.Sum256([]byte(name))
	return keyOwner(sum[:])
}

// keyed is what is remembered of a batch with a key.
type keyed struct {
	hash    keyHash
	owner   keyOwner
	first   uint64
	at      int64 // unix nanoseconds of the append
	records uint32
	events  uint32 // that the records are of
}

// keyTime is the clock of keys: the wall clock's time when the journal was opened, and from
// then on a clock that nobody sets.
func (j *Journal) keyTime() int64 { return j.opened.Add(time.Since(j.opened)).UnixNano() }

// AppendKeyed is Append for a batch that its sender may send again. While the key is
// remembered, also after a restart, the batch is stored once, and later ones get the
// receipt of the first, even if more or fewer of the same events became records. Keys are
// remembered for Options.KeyAge; beyond Options.MaxKeys the oldest of the owner with the
// most goes first. One that comes while the first is being stored waits for it. The
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
//	       0    12  the beginning of the key's SHA-256
//	      12     4  the beginning of the SHA-256 of the name of whose key it is
//	      16     8  offset of the key's first record
//	      24     8  time of the append
//	      32     4  number of records stored under the key, also in the next frames
//	      36     4  number of events that they are of
const keyEntrySize = 40

func (k *keyed) append(dst []byte) []byte {
	dst = append(append(dst, k.hash[:]...), k.owner[:]...)
	dst = binary.LittleEndian.AppendUint64(dst, k.first)
	dst = binary.LittleEndian.AppendUint64(dst, uint64(k.at))
	dst = binary.LittleEndian.AppendUint32(dst, k.records)
	return binary.LittleEndian.AppendUint32(dst, k.events)
}

// parseKey reads the entry that b begins with.
func parseKey(b []byte) keyed {
	return keyed{
		hash: keyHash(b), owner: keyOwner(b[12:]), first: binary.LittleEndian.Uint64(b[16:]), at: int64(binary.LittleEndian.Uint64(b[24:])),
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
// others, the oldest first, as they were remembered.
func (j *Journal) recoverKeys() {
	scanned := j.scannedKeys
	j.scannedKeys = nil
	now := j.keyTime()
	for _, s := range j.segs {
		keys, ok := scanned[s.first]
		if !ok && s.sealed && !s.keyless && now-s.written.UnixNano() <= int64(j.o.KeyAge) {
			var err error
			if keys, err = j.keysOf(s); err != nil {
				j.find(Finding{Kind: recordlog.Damaged, File: segmentName(s.first, extSealed), Detail: "its keys are forgotten: " + err.Error()})
			}
		}
		for _, k := range keys {
			k.at = min(k.at, now) // the clock may have been set back
			if now-k.at <= int64(j.o.KeyAge) {
				j.keys.add(k)
			}
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

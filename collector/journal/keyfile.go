package journal

import (
	"cmp"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io/fs"
	"os"
	"slices"
)

// A key file lists the keys of a sealed segment that were remembered when it was
// sealed, so that Open need not read the segment. docs/FORMAT.md has the same
// table.
//
//	Key file: a header of 40 bytes and one entry of 40 bytes per key
//	  offset  size  field
//	       0     8  magic: 89 52 57 4B 0D 0A 1A 0A
//	       8     4  format version: 1
//	      12     4  segment id
//	      16     8  offset of the segment's first record
//	      24     4  number of entries
//	      28     4  checksum of the entries
//	      32     4  zero
//	      36     4  checksum of bytes 0-35
//
//	Entry, in the order of offsets
//	       0    16  first half of the key's SHA-256
//	      16     8  offset of the key's first record
//	      24     8  time of the append
//	      32     4  number of records stored under the key
//	      36     4  number of events that they are of; 0: as many

const (
	keyFileHeaderSize = 40
	keyEntrySize      = 40
)

var keyFileMagic = []byte("\x89RWK\r\n\x1a\n")

func appendKeyFile(dst []byte, id uint32, first uint64, keys []keyed) []byte {
	dst = append(dst, make([]byte, keyFileHeaderSize)...)
	for _, k := range keys {
		dst = append(dst, k.hash[:]...)
		dst = binary.LittleEndian.AppendUint64(dst, k.first)
		dst = binary.LittleEndian.AppendUint64(dst, uint64(k.at))
		dst = binary.LittleEndian.AppendUint32(dst, k.records)
		dst = binary.LittleEndian.AppendUint32(dst, k.more())
	}
	copy(dst, keyFileMagic)
	binary.LittleEndian.PutUint32(dst[8:], 1)
	binary.LittleEndian.PutUint32(dst[12:], id)
	binary.LittleEndian.PutUint64(dst[16:], first)
	binary.LittleEndian.PutUint32(dst[24:], uint32(len(keys)))
	binary.LittleEndian.PutUint32(dst[28:], crc32.Checksum(dst[keyFileHeaderSize:], castagnoli))
	binary.LittleEndian.PutUint32(dst[36:], crc32.Checksum(dst[:36], castagnoli))
	return dst
}

// more is the number of events if it is not that of records, and else 0.
func (k *keyed) more() uint32 {
	if k.events == k.records {
		return 0
	}
	return k.events
}

// parseKeyFile returns errDamaged unless b is the whole key file of a segment.
func parseKeyFile(b []byte, id uint32, first uint64) ([]keyed, error) {
	if len(b) < keyFileHeaderSize || string(b[:8]) != string(keyFileMagic) ||
		crc32.Checksum(b[:36], castagnoli) != binary.LittleEndian.Uint32(b[36:]) ||
		binary.LittleEndian.Uint32(b[8:]) != 1 || binary.LittleEndian.Uint32(b[12:]) != id || binary.LittleEndian.Uint64(b[16:]) != first {
		return nil, errDamaged
	}
	entries := b[keyFileHeaderSize:]
	n := int64(binary.LittleEndian.Uint32(b[24:]))
	if int64(len(entries)) != n*keyEntrySize || crc32.Checksum(entries, castagnoli) != binary.LittleEndian.Uint32(b[28:]) {
		return nil, errDamaged
	}
	keys := make([]keyed, n)
	for i := range keys {
		e := entries[i*keyEntrySize:]
		keys[i] = keyed{
			hash: keyHash(e[:16]), first: binary.LittleEndian.Uint64(e[16:]),
			at: int64(binary.LittleEndian.Uint64(e[24:])), records: binary.LittleEndian.Uint32(e[32:]),
		}
		k := &keys[i]
		events := binary.LittleEndian.Uint32(e[36:])
		if k.events = cmp.Or(events, k.records); k.more() != events {
			return nil, errDamaged
		}
	}
	return keys, nil
}

// writeKeyFile makes the key file of s durable, before the name that says that s
// is sealed; a segment without keys has none.
func (j *Journal) writeKeyFile(s *segment, keys []keyed) (err error) {
	if len(keys) == 0 {
		return nil
	}
	f, err := j.fs.OpenFile(j.path(s.first, extKeys), os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o640)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if _, err := f.WriteAt(appendKeyFile(nil, s.id, s.first, keys), 0); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	return j.fs.SyncDir(j.dir)
}

// readKeyFile returns the keys of a sealed segment from its key file, or, when
// that is damaged, from the segment itself.
func (j *Journal) readKeyFile(s *segment) ([]keyed, error) {
	f, err := j.fs.OpenFile(j.path(s.first, extKeys), os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close() // only read from
	size, err := f.Size()
	if err == nil && size > keyFileHeaderSize+keyEntrySize*int64(maxKeys) {
		err = errDamaged
	}
	if err == nil {
		b := make([]byte, size)
		if _, err = f.ReadAt(b, 0); err == nil {
			var keys []keyed
			if keys, err = parseKeyFile(b, s.id, s.first); err == nil {
				return keys, nil
			}
		}
	}
	j.find(Finding{Kind: Damaged, File: segmentName(s.first, extKeys), Bytes: size, Detail: "its segment is read instead: " + err.Error()})
	seg, err := j.fs.OpenFile(j.path(s.first, extSealed), os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	defer seg.Close() // only read from
	sc, err := scan(seg, j.path(s.first, extSealed), candidate{first: s.first, ext: extSealed, size: s.size}, s.end, j.o.MaxKeys)
	j.recovery.Scanned += s.size
	return sc.keys, err
}

// recoverKeys fills j.keys, from the segments that were scanned and from the key
// files of others, the newest first until there are enough.
func (j *Journal) recoverKeys() {
	scanned, files := j.scannedKeys, j.keyFiles
	j.scannedKeys, j.keyFiles = nil, nil
	now := j.keyTime()
	var found [][]keyed
	n := 0
	for i := len(j.segs) - 1; i >= 0 && n < j.o.MaxKeys; i-- {
		s := j.segs[i]
		keys, ok := scanned[s.first]
		if !ok && files[s.first] {
			var err error
			if keys, err = j.readKeyFile(s); err != nil {
				j.find(Finding{Kind: Damaged, File: segmentName(s.first, extKeys), Detail: "keys are forgotten: " + err.Error()})
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
	for first := range files {
		if !slices.ContainsFunc(j.segs, func(s *segment) bool { return s.first == first }) {
			if err := j.removeFile(j.path(first, extKeys)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				j.find(Finding{Kind: Foreign, File: segmentName(first, extKeys), Detail: err.Error()})
			}
		}
	}
}

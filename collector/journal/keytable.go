package journal

import (
	"container/heap"
	"slices"
	"time"
)

// keyTable remembers keys in the order of their batches; guarded by Journal.mu. When it is
// full, the oldest key of the owner with the most goes, so that nobody makes the keys of
// others be forgotten.
type keyTable struct {
	limit  int
	age    int64 // nanoseconds
	n      int   // remembered
	keys   []keyNode
	unused int32 // first of those in keys that are free, by newer; none: -1
	oldest int32
	newest int32
	where  map[keyHash]int32 // in keys
	of     map[keyOwner]*ownKeys
	most   ownerHeap

	pending map[keyHash]chan struct{} // being appended; closed and removed afterwards
}

// A keyNode is a key in the list of all, and in that of its owner.
type keyNode struct {
	keyed
	older, newer int32 // of all; -1: none
	next         int32 // of its owner, the next newer; -1: none
}

// ownKeys are the keys of one owner.
type ownKeys struct {
	owner          keyOwner
	n, at          int // at: in keyTable.most
	oldest, newest int32
}

func (t *keyTable) init(limit int, age time.Duration) {
	t.limit, t.age = limit, int64(age)
	t.where, t.of, t.pending = make(map[keyHash]int32), make(map[keyOwner]*ownKeys), make(map[keyHash]chan struct{})
	t.unused, t.oldest, t.newest = -1, -1, -1
}

func (t *keyTable) find(hash keyHash, now int64) (keyed, bool) {
	t.expire(now)
	i, ok := t.where[hash]
	if !ok {
		return keyed{}, false
	}
	return t.keys[i].keyed, true
}

// add remembers k, which is newer than all others.
func (t *keyTable) add(k keyed) {
	if t.n >= t.limit {
		t.forget(t.most[0])
	}
	i := t.unused
	if i >= 0 {
		t.unused = t.keys[i].newer
	} else {
		i = int32(len(t.keys))
		t.keys = append(t.keys, keyNode{})
	}
	t.keys[i] = keyNode{keyed: k, older: t.newest, newer: -1, next: -1}
	if t.newest >= 0 {
		t.keys[t.newest].newer = i
	} else {
		t.oldest = i
	}
	t.newest = i
	t.where[k.hash] = i
	t.n++
	o := t.of[k.owner]
	if o == nil {
		o = &ownKeys{owner: k.owner, oldest: i}
		t.of[k.owner] = o
		heap.Push(&t.most, o)
	} else {
		t.keys[o.newest].next = i
	}
	o.newest = i
	o.n++
	heap.Fix(&t.most, o.at)
}

func (t *keyTable) expire(now int64) {
	for t.n > 0 && now-t.keys[t.oldest].at > t.age {
		t.forget(t.of[t.keys[t.oldest].owner]) // whose oldest it is
	}
}

// forget forgets the oldest key of an owner.
func (t *keyTable) forget(o *ownKeys) {
	i := o.oldest
	k := &t.keys[i]
	if t.where[k.hash] == i {
		delete(t.where, k.hash)
	}
	if k.older >= 0 {
		t.keys[k.older].newer = k.newer
	} else {
		t.oldest = k.newer
	}
	if k.newer >= 0 {
		t.keys[k.newer].older = k.older
	} else {
		t.newest = k.older
	}
	o.oldest = k.next
	k.newer, t.unused = t.unused, i
	t.n--
	if o.n--; o.n > 0 {
		heap.Fix(&t.most, o.at)
		return
	}
	heap.Remove(&t.most, o.at)
	delete(t.of, o.owner)
}

// between returns the keys of the offsets [first, end).
func (t *keyTable) between(first, end uint64) (out []keyed) {
	for i := t.newest; i >= 0 && t.keys[i].first >= first; i = t.keys[i].older {
		if t.keys[i].first < end {
			out = append(out, t.keys[i].keyed)
		}
	}
	slices.Reverse(out)
	return out
}

// ownerHeap has the owner with the most keys first.
type ownerHeap []*ownKeys

func (h ownerHeap) Len() int           { return len(h) }
func (h ownerHeap) Less(i, j int) bool { return h[i].n > h[j].n }
func (h ownerHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i]; h[i].at, h[j].at = i, j }
func (h *ownerHeap) Push(o any)        { o.(*ownKeys).at = len(*h); *h = append(*h, o.(*ownKeys)) }
func (h *ownerHeap) Pop() any {
	last := len(*h) - 1
	o := (*h)[last]
	(*h)[last], *h = nil, (*h)[:last]
	return o
}

package allocstudy

// Claim is something that the article says, and what the study found of it.
type Claim struct {
	Says    string
	Holds   func(of func(name string) Count) bool // with the counts of one toolchain
	Because string
}

// Claims lists the article's claims in its order. The counts that a claim
// depends on are checked by Program.Count before they are used.
func Claims() []Claim {
	type counts = func(string) Count
	return []Claim{
		{
			Says:    "an event without a pool costs 1 allocation of 8 bytes",
			Holds:   func(of counts) bool { return of("plain/const").Allocs == 1 && of("plain/const").Bytes == 8 },
			Because: "reproduced to the byte",
		},
		{
			Says:    "that allocation is the event, which newEvent puts on the heap",
			Holds:   func(of counts) bool { return of("plain/const").Bytes >= 40 },
			Because: "an event has 40 bytes; the 8 are `[]byte(msg)`, which goes to an `io.Writer`. newEvent is inlined, so the event stays on the stack; the article's line is about the copy that nobody calls",
		},
		{
			Says:    "with a pool it is 0 allocations",
			Holds:   func(of counts) bool { return of("pooled/const").Allocs == 0 && of("pooled/4").Allocs == 0 },
			Because: "for a message of 4 bytes, constant or not. What the pool saves is the copy, not the event",
		},
		{
			Says:    "messages within 500 bytes are written without a new allocation",
			Holds:   func(of counts) bool { return of("pooled/33").Allocs == 0 && of("pooled/500").Allocs == 0 },
			Because: "before Go 1.22 `[]byte(msg)` is a heap copy from 33 bytes on, pool or not; since then it is no copy where nobody changes it. `append(b, msg...)` of the string itself never allocated",
		},
		{
			Says:    "a message over the capacity is a new allocation",
			Holds:   func(of counts) bool { return of("pooled/501").Allocs > of("pooled/500").Allocs },
			Because: "once: the grown buffer goes back to the pool, and from then on the pool holds the larger one for good, which is why a logger has to drop what grew too far",
		},
		{
			Says:    "what the pool's New allocates is almost zero per call",
			Holds:   func(of counts) bool { return of("pooled/4").Allocs < 0.01 },
			Because: "as long as collections are rare: the pool is empty after two of them. With two before each call it is 4 allocations, 2 of them the pool's own",
		},
		{
			Says:    "an event behind an interface, over the pool, allocates nothing",
			Holds:   func(of counts) bool { return of("pooliface/const").Allocs == 0 && of("pooliface/4").Allocs == 0 },
			Because: "what is in the interface is a pointer that exists already",
		},
		{
			Says:    "using an interface allocates nothing in itself",
			Holds:   func(of counts) bool { return of("box/event").Allocs == 0 && of("box/string").Allocs == 0 },
			Because: "a pointer in an interface is free, a value that is kept is copied to the heap. Constants and (since Go 1.15) integers below 256 are not, so a benchmark with constants does not see it",
		},
		{
			Says:    "an interface without a pool allocates more than the event alone",
			Holds:   func(of counts) bool { return of("iface/const").Allocs > of("plain/const").Allocs },
			Because: "the event is on the heap, 2 allocations and 56 bytes, only where the compiler cannot see its type: always before Go 1.16, and since then when a call that is not inlined returns it",
		},
		{
			Says:    "a function literal per call allocates, as `func literal escapes to heap` shows",
			Holds:   func(of counts) bool { return of("closure/literal").Allocs > of("closure/named").Allocs },
			Because: "a literal that captures nothing, like the article's, is static data whatever -m prints. One that captures a variable and is kept is 1 allocation, one that is only called is none",
		},
		{
			Says:    "a struct in the pool must have no pointer field",
			Holds:   func(of counts) bool { return of("pointer/existing").Allocs > 0 },
			Because: "the field costs nothing; a new variable that it points to costs 1 allocation (and its []byte and func fields are pointers too)",
		},
		{
			Says:    "making a slice allocates",
			Holds:   func(of counts) bool { return of("slices/make").Allocs > 0 },
			Because: "only if it leaves the function, or its size is known at run time (since Go 1.25 not even then for the 32 bytes here)",
		},
		{
			Says:    "an append beyond the capacity allocates",
			Holds:   func(of counts) bool { return of("slices/grow32").Allocs > 0 && of("slices/growwrite").Allocs > 0 },
			Because: "since Go 1.25 a slice that stays in the function begins with 32 bytes of stack, so 32 bytes appended to nil are free and 64 cost 1 allocation instead of 4",
		},
		{
			Says:    "assigning a slice to a second slice variable allocates",
			Holds:   func(of counts) bool { return of("slices/assign").Allocs > 0 },
			Because: "it copies pointer, length and capacity",
		},
		{
			Says:    "an array is better",
			Holds:   func(of counts) bool { return of("slices/arraywrite").Allocs < of("slices/makewrite").Allocs },
			Because: "than a make of constant size it is the same: none if it stays, 1 if it goes to an `io.Writer`. Better than both is a slice from a pool",
		},
		{
			Says:    "a pooled slice cut to length 0 and appended to allocates nothing",
			Holds:   func(of counts) bool { return of("slices/pooled").Allocs == 0 },
			Because: "if the pool holds a pointer. With the slice itself in the pool, Put boxes it: 1 allocation, for the slice header",
		},
		{
			Says:    `LoadLocation("UTC") and LoadLocation("Local") allocate nothing`,
			Holds:   func(of counts) bool { return of("zone/utc").Allocs == 0 && of("zone/local").Allocs == 0 },
			Because: "they return what is there",
		},
		{
			Says:    "LoadLocation of another zone allocates, loaded once it does not",
			Holds:   func(of counts) bool { return of("zone/load").Allocs > 1 && of("zone/once").Allocs == 0 },
			Because: "every call reads and parses the zone's file again, for a name that was loaded before too: there is no cache. The allocations are the least of it, see the times",
		},
		{
			Says:    "AppendFormat with room enough allocates nothing",
			Holds:   func(of counts) bool { return of("zone/appendroom").Allocs == 0 && of("zone/appendtight").Allocs > 0 },
			Because: "and with too little, 1 allocation, like Format",
		},
	}
}

package allocstudy

// Case is one call that is measured.
type Case struct {
	Name     string
	Call     string // the statement, in testdata/study_test.go.tmpl
	Parallel bool   // measured on every processor too, as the article did

	// Allocs is what a call allocates: exactly, or at least where the count
	// depends on the machine. Every toolchain is compared with it.
	Allocs  []Since
	AtLeast bool
}

// Since is a count from a minor version of Go on.
type Since struct {
	Minor  int // 22 for go1.22
	Allocs float64
}

// Want is the count for a minor version.
func (c Case) Want(minor int) float64 {
	var allocs float64
	for _, s := range c.Allocs {
		if s.Minor <= minor {
			allocs = s.Allocs
		}
	}
	return allocs
}

// always is a count that no toolchain changed.
func always(allocs float64) []Since { return []Since{{0, allocs}} }

// Cases lists what is measured, in the order of the tables.
func Cases() []Case {
	return []Case{
		{Name: "plain/const", Call: `plain("test")`, Parallel: true, Allocs: always(1)},
		{Name: "plain/4", Call: `plain(m4)`, Parallel: true, Allocs: always(1)},
		{Name: "plain/40", Call: `plain(m40)`, Parallel: true, Allocs: always(1)},
		{Name: "pooled/const", Call: `pooled("test")`, Parallel: true, Allocs: always(0)},
		{Name: "pooled/4", Call: `pooled(m4)`, Parallel: true, Allocs: always(0)},
		{Name: "pooled/32", Call: `pooled(m32)`, Parallel: true, Allocs: always(0)},
		{Name: "pooled/33", Call: `pooled(m33)`, Parallel: true, Allocs: []Since{{0, 1}, {22, 0}}},
		{Name: "pooled/500", Call: `pooled(m500)`, Parallel: true, Allocs: []Since{{0, 1}, {22, 0}}},
		{Name: "pooled/501", Call: `pooled(m501)`, Parallel: true, Allocs: []Since{{0, 1}, {22, 0}}},
		{Name: "pooled/emptied", Call: `runtime.GC(); runtime.GC(); pooled(m4)`, Allocs: always(2), AtLeast: true},
		{Name: "direct/4", Call: `direct(m4)`, Parallel: true, Allocs: always(0)},
		{Name: "direct/500", Call: `direct(m500)`, Parallel: true, Allocs: always(0)},
		{Name: "pooliface/const", Call: `pooliface("test")`, Parallel: true, Allocs: always(0)},
		{Name: "pooliface/4", Call: `pooliface(m4)`, Parallel: true, Allocs: always(0)},
		{Name: "iface/const", Call: `iface("test")`, Parallel: true, Allocs: []Since{{0, 2}, {16, 1}}},
		{Name: "iface/4", Call: `iface(m4)`, Parallel: true, Allocs: []Since{{0, 2}, {16, 1}}},
		{Name: "iface/called", Call: `ifaceCalled(m4)`, Parallel: true, Allocs: always(2)},

		{Name: "box/event", Call: `boxEvent(m4)`, Allocs: always(1)},
		{Name: "box/const", Call: `boxAny("test")`, Allocs: always(0)},
		{Name: "box/string", Call: `boxAny(m4)`, Allocs: always(1)},
		{Name: "box/7", Call: `boxAny(n7)`, Allocs: []Since{{0, 1}, {15, 0}}},
		{Name: "box/1000", Call: `boxAny(n1000)`, Allocs: always(1)},
		{Name: "box/pointer", Call: `boxAny(request)`, Allocs: always(0)},

		{Name: "closure/named", Call: `closureNamed(m4)`, Allocs: always(0)},
		{Name: "closure/literal", Call: `closureLiteral(m4)`, Allocs: always(0)},
		{Name: "closure/capturing", Call: `closureCapturing(m4, n7)`, Allocs: always(1)},
		{Name: "closure/notkept", Call: `closureCapturingNotKept(n7)`, Allocs: always(0)},

		{Name: "pointer/existing", Call: `point(m4, request)`, Allocs: always(0)},
		{Name: "pointer/new", Call: `pointerNew(m4, n7)`, Allocs: always(1)},
		{Name: "pointer/local", Call: `pointerLocal(n7)`, Allocs: always(0)},

		{Name: "slices/make", Call: `sliceMake()`, Allocs: always(0)},
		{Name: "slices/sized", Call: `sliceSized(n32)`, Allocs: []Since{{0, 1}, {25, 0}}},
		{Name: "slices/makewrite", Call: `sliceMakeWrite()`, Allocs: always(1)},
		{Name: "slices/assign", Call: `sliceAssign(bytes64)`, Allocs: always(0)},
		{Name: "slices/grow32", Call: `sliceGrow(n32)`, Allocs: []Since{{0, 3}, {25, 0}}},
		{Name: "slices/grow64", Call: `sliceGrow(n64)`, Allocs: []Since{{0, 4}, {25, 1}}},
		{Name: "slices/growwrite", Call: `sliceGrowWrite(n64)`, Allocs: always(4)},
		{Name: "slices/array", Call: `array()`, Allocs: always(0)},
		{Name: "slices/arraywrite", Call: `arrayWrite()`, Allocs: always(1)},
		{Name: "slices/pooled", Call: `slicePooled(n64)`, Allocs: always(0)},
		{Name: "slices/pooledvalue", Call: `slicePooledValue(n64)`, Allocs: always(1)},

		{Name: "zone/utc", Call: `zoneLoad(utc)`, Allocs: always(0)},
		{Name: "zone/local", Call: `zoneLoad(local)`, Allocs: always(0)},
		{Name: "zone/load", Call: `zoneLoad(saigon)`, Allocs: always(8), AtLeast: true},
		{Name: "zone/once", Call: `zoneIn(loaded)`, Allocs: always(0)},
		{Name: "zone/fixed", Call: `zoneFixed(ict, 25200)`, Allocs: always(3)},
		{Name: "zone/appendroom", Call: `appendRoom()`, Allocs: always(0)},
		{Name: "zone/appendtight", Call: `appendTight()`, Allocs: always(1)},
		{Name: "zone/format", Call: `format()`, Allocs: always(1)},
		{Name: "zone/unix", Call: `unix()`, Allocs: always(0)},
	}
}

package allocstudy

// Case is one call that is measured.
type Case struct {
	Name     string
	Group    string // package of the design
	Title    string
	Call     string // the statement, in testdata/main.go.tmpl
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
		{Name: "plain/const", Group: "plain", Title: `no pool, constant "test"`, Call: `plain.Info("test")`, Parallel: true, Allocs: always(1)},
		{Name: "plain/4", Group: "plain", Title: "no pool, 4 bytes", Call: `plain.Info(m4)`, Parallel: true, Allocs: always(1)},
		{Name: "plain/40", Group: "plain", Title: "no pool, 40 bytes", Call: `plain.Info(m40)`, Parallel: true, Allocs: always(1)},
		{Name: "pooled/const", Group: "pooled", Title: `pool, constant "test"`, Call: `pooled.Info("test")`, Parallel: true, Allocs: always(0)},
		{Name: "pooled/4", Group: "pooled", Title: "pool, 4 bytes", Call: `pooled.Info(m4)`, Parallel: true, Allocs: always(0)},
		{Name: "pooled/32", Group: "pooled", Title: "pool, 32 bytes", Call: `pooled.Info(m32)`, Parallel: true, Allocs: always(0)},
		{Name: "pooled/33", Group: "pooled", Title: "pool, 33 bytes", Call: `pooled.Info(m33)`, Parallel: true, Allocs: []Since{{0, 1}, {22, 0}}},
		{Name: "pooled/500", Group: "pooled", Title: "pool, 500 bytes", Call: `pooled.Info(m500)`, Parallel: true, Allocs: []Since{{0, 1}, {22, 0}}},
		{Name: "pooled/501", Group: "pooled", Title: "pool, 501 bytes", Call: `pooled.Info(m501)`, Parallel: true, Allocs: []Since{{0, 1}, {22, 0}}},
		{Name: "pooled/emptied", Group: "pooled", Title: "pool, 4 bytes, after two collections each", Call: `runtime.GC(); runtime.GC(); pooled.Info(m4)`, Allocs: always(2), AtLeast: true},
		{Name: "direct/4", Group: "direct", Title: "pool, string appended, 4 bytes", Call: `direct.Info(m4)`, Parallel: true, Allocs: always(0)},
		{Name: "direct/500", Group: "direct", Title: "pool, string appended, 500 bytes", Call: `direct.Info(m500)`, Parallel: true, Allocs: always(0)},
		{Name: "pooliface/const", Group: "pooliface", Title: `interface over pool, constant "test"`, Call: `pooliface.Info("test")`, Parallel: true, Allocs: always(0)},
		{Name: "pooliface/4", Group: "pooliface", Title: "interface over pool, 4 bytes", Call: `pooliface.Info(m4)`, Parallel: true, Allocs: always(0)},
		{Name: "iface/const", Group: "iface", Title: `interface without pool, constant "test"`, Call: `iface.Info("test")`, Parallel: true, Allocs: []Since{{0, 2}, {16, 1}}},
		{Name: "iface/4", Group: "iface", Title: "interface without pool, 4 bytes", Call: `iface.Info(m4)`, Parallel: true, Allocs: []Since{{0, 2}, {16, 1}}},
		{Name: "iface/called", Group: "iface", Title: "the same, the type hidden by a call", Call: `iface.InfoCalled(m4)`, Parallel: true, Allocs: always(2)},

		{Name: "box/event", Group: "box", Title: "event as a value in an interface", Call: `box.Event(m4)`, Allocs: always(1)},
		{Name: "box/const", Group: "box", Title: `constant "test" in an interface`, Call: `box.Any("test")`, Allocs: always(0)},
		{Name: "box/string", Group: "box", Title: "string in an interface", Call: `box.Any(m4)`, Allocs: always(1)},
		{Name: "box/7", Group: "box", Title: "int 7 in an interface", Call: `box.Any(n7)`, Allocs: []Since{{0, 1}, {15, 0}}},
		{Name: "box/1000", Group: "box", Title: "int 1000 in an interface", Call: `box.Any(n1000)`, Allocs: always(1)},
		{Name: "box/pointer", Group: "box", Title: "pointer in an interface", Call: `box.Any(request)`, Allocs: always(0)},

		{Name: "closure/named", Group: "closure", Title: "declared function kept", Call: `closure.Named(m4)`, Allocs: always(0)},
		{Name: "closure/literal", Group: "closure", Title: "function literal that captures nothing, kept", Call: `closure.Literal(m4)`, Allocs: always(0)},
		{Name: "closure/capturing", Group: "closure", Title: "function literal that captures, kept", Call: `closure.Capturing(m4, n7)`, Allocs: always(1)},
		{Name: "closure/notkept", Group: "closure", Title: "function literal that captures, only called", Call: `closure.CapturingNotKept(n7)`, Allocs: always(0)},

		{Name: "pointer/existing", Group: "pointer", Title: "pointer field set to what exists", Call: `pointer.Existing(m4, request)`, Allocs: always(0)},
		{Name: "pointer/new", Group: "pointer", Title: "pointer field set to a new variable", Call: `pointer.New(m4, n7)`, Allocs: always(1)},
		{Name: "pointer/local", Group: "pointer", Title: "pointer to a new variable, not kept", Call: `pointer.Local(n7)`, Allocs: always(0)},

		{Name: "slices/make", Group: "slices", Title: "make of constant size, used here", Call: `slices.Make()`, Allocs: always(0)},
		{Name: "slices/sized", Group: "slices", Title: "make of 32 bytes known at run time, used here", Call: `slices.MakeSized(n32)`, Allocs: []Since{{0, 1}, {25, 0}}},
		{Name: "slices/makewrite", Group: "slices", Title: "make of constant size, to an io.Writer", Call: `slices.MakeWrite()`, Allocs: always(1)},
		{Name: "slices/assign", Group: "slices", Title: "slice assigned to a second variable", Call: `slices.Assign(bytes64)`, Allocs: always(0)},
		{Name: "slices/grow32", Group: "slices", Title: "32 bytes appended to nil, used here", Call: `slices.Grow(n32)`, Allocs: []Since{{0, 3}, {25, 0}}},
		{Name: "slices/grow64", Group: "slices", Title: "64 bytes appended to nil, used here", Call: `slices.Grow(n64)`, Allocs: []Since{{0, 4}, {25, 1}}},
		{Name: "slices/growwrite", Group: "slices", Title: "64 bytes appended to nil, to an io.Writer", Call: `slices.GrowWrite(n64)`, Allocs: always(4)},
		{Name: "slices/array", Group: "slices", Title: "array, used here", Call: `slices.Array()`, Allocs: always(0)},
		{Name: "slices/arraywrite", Group: "slices", Title: "array, to an io.Writer", Call: `slices.ArrayWrite()`, Allocs: always(1)},
		{Name: "slices/pooled", Group: "slices", Title: "64 bytes appended to a pooled slice, to an io.Writer", Call: `slices.Pooled(n64)`, Allocs: always(0)},
		{Name: "slices/pooledvalue", Group: "slices", Title: "the same, the slice itself in the pool", Call: `slices.PooledValue(n64)`, Allocs: always(1)},

		{Name: "zone/utc", Group: "zone", Title: `LoadLocation("UTC") per call`, Call: `zone.Load(utc)`, Allocs: always(0)},
		{Name: "zone/local", Group: "zone", Title: `LoadLocation("Local") per call`, Call: `zone.Load(local)`, Allocs: always(0)},
		{Name: "zone/load", Group: "zone", Title: `LoadLocation("Asia/Ho_Chi_Minh") per call`, Call: `zone.Load(saigon)`, Allocs: always(8), AtLeast: true},
		{Name: "zone/once", Group: "zone", Title: "the same once, In per call", Call: `zone.In(loaded)`, Allocs: always(0)},
		{Name: "zone/fixed", Group: "zone", Title: `FixedZone("ICT", 7 h) per call`, Call: `zone.Fixed(ict, 25200)`, Allocs: always(3)},
		{Name: "zone/appendroom", Group: "zone", Title: "AppendFormat, capacity 64", Call: `zone.AppendRoom()`, Allocs: always(0)},
		{Name: "zone/appendtight", Group: "zone", Title: "AppendFormat, capacity 16", Call: `zone.AppendTight()`, Allocs: always(1)},
		{Name: "zone/format", Group: "zone", Title: "Format", Call: `zone.Format()`, Allocs: always(1)},
		{Name: "zone/unix", Group: "zone", Title: "UnixNano", Call: `zone.Unix()`, Allocs: always(0)},
	}
}

// byName returns the case with this name; it must exist.
func byName(name string) Case {
	for _, c := range Cases() {
		if c.Name == name {
			return c
		}
	}
	panic("no case is named " + name)
}
